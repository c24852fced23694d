"""Episodes: summaries of consecutive windows of passages, in document order (ComoRAG, section 2.2, appendix B.2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import floor, log2
from typing import Any

from tomewise.calls import CallCount, write_number
from tomewise.errors import UsageError
from tomewise.language.roles import NARRATE, SummaryIn, SummaryOut
from tomewise.language.wrapped import join_names
from tomewise.memory.ask_each import Replies
from tomewise.memory.mapped import Ask, DocumentLayer, Plan, PlanResult, Window
from tomewise.memory.token_estimates import estimate_from_sample, estimate_thoughts
from tomewise.store.contract import Store
from tomewise.types import Change, Cost, DocumentId, Embedder, LanguageModel, NodeId, Passage, Report, content_id

NAME = "episodes"
_SUMMARY_TOKENS = 500
_STEPS = ((5, 2), (20, 3), (50, 5), (100, 8), (200, 10))


def choose_window_size(passages: int) -> int:
    """Choose how many passages a window spans, by the number of passages in the document.

    The sizes are those of appendix B.2; for documents of up to 5 passages the size is 2, as in the released code.
    """
    for bound, size in _STEPS:
        if passages <= bound:
            return size
    return min(20, max(10, floor(2 * log2(passages))))


def cut_windows(count: int, size: int, stride: int) -> list[range]:
    """Cut `count` positions into windows that start `stride` apart; the last window reaches the end.

    A single position shows no sequence of events. So a last window of one position is merged into the window before.
    """
    spans = [range(start, min(count, start + size)) for start in range(0, max(1, count - size + stride), stride)]
    if len(spans[-1]) == 1:
        spans[-2:] = [range(spans[-2].start, count)] if len(spans) > 1 else []
    return spans


class EpisodesLayer(DocumentLayer[SummaryIn, SummaryOut]):
    """Summaries of windows in document order; `levels` above 1 summarise the summaries in the same way.

    `stride` counts passages. It is at most the window size, so that no passage is left out; 0 means the window
    size, so that windows touch and do not overlap, as in the released code. The window size depends on the document
    alone, so that other documents do not change it. A document of one passage has no windows. The next build asks again
    for a window whose call failed; until then the windows above it are missing too. Layers with different settings can
    exist side by side.
    """

    kind = "episode"
    role = NARRATE
    label = "episodes narrated"

    def __init__(
        self,
        store: Store,
        model: LanguageModel,
        embedder: Embedder,
        *,
        stride: int = 0,
        levels: int = 1,
    ) -> None:
        if stride < 0 or levels < 1:
            raise UsageError(
                f"episodes: stride {stride}, levels {levels}: set stride to 0 or more and levels to 1 or more"
            )
        settings = ([f"stride={stride}"] if stride > 0 else []) + ([f"levels={levels}"] if levels > 1 else [])
        self.name = f"{NAME}:{','.join(settings)}" if settings else NAME
        super().__init__(store, model, embedder)
        self._stride = stride
        self._levels = levels

    @property
    def calls(self) -> CallCount:
        # Windows that touch hold two passages or more.
        most = self._levels * (1 if self._stride else 0.5)
        return CallCount(f"1 a window, at most {write_number(most)} a passage", most)

    def make_windows(self, document: DocumentId, passages: Mapping[int, Passage]) -> Iterator[tuple[Window, SummaryIn]]:
        """The windows of all levels. The texts of those above the lowest level are known once these are summarised."""
        texts = {passage.id: passage.text for passage in passages.values()}
        row: dict[NodeId, tuple[int, ...]] = {passage.id: (key,) for key, passage in passages.items()}
        for level in range(self._levels):
            if not row:
                return
            size, nodes, above = choose_window_size(len(row)), list(row), dict[NodeId, tuple[int, ...]]()
            for position, span in enumerate(cut_windows(len(row), size, min(self._stride or size, size))):
                members = tuple(nodes[span.start : span.stop])
                window = Window(
                    node=content_id("w", self.name, level, *members),
                    document=document,
                    position=position,
                    level=level,
                    sources=members,
                    keys=tuple(dict.fromkeys(key for member in members for key in row[member])),
                )
                above[window.node] = window.keys
                yield window, _make_input([] if level else [texts[member] for member in members])
            row = above

    def read_text(self, reply: SummaryOut) -> str:
        """The summary of a window."""
        return reply.summary

    async def ask(self, plan: Plan[Window, SummaryIn], report: Report) -> Replies[int, SummaryOut]:
        """Ask level by level: a window is due once the windows that it consists of have summaries."""
        texts = {node.id: node.text for node in plan.existing.values()}
        replies: Replies[int, SummaryOut] = Replies()
        for level in range(self._levels):
            due = {
                index: _fill_texts(ask, texts)
                for index, ask in plan.due.items()
                if ask.subject.level == level and (level == 0 or texts.keys() >= set(ask.subject.sources))
            }
            found = await self.ask_about(due, report)
            texts |= {due[index].node: reply.summary for index, reply in found.items()}
            replies |= found
            replies.failed |= found.failed
        return replies

    def foresee(self, change: Change) -> Iterator[Ask[Window, SummaryIn]]:
        """Every window that does not exist yet, with texts as long as the missing summaries will be."""
        plan = self.plan(change)
        texts = {node.id: node.text for node in plan.existing.values()}
        for ask in plan.due.values():
            filled = _fill_texts(ask, texts)
            texts[ask.node] = " ".join(filled.role_input.texts)[: 4 * _estimate_reply_tokens(filled.role_input)]
            yield filled

    async def estimate_calls(self, groups: Sequence[Sequence[SummaryIn]]) -> Cost:
        """One call a window; a summary is as long as its limit, or as half of its texts where that is less."""
        inputs = [role_input for group in groups for role_input in group]
        sampled = await estimate_from_sample(self._model, NARRATE, inputs)
        output_tokens = sampled or sum(map(_estimate_reply_tokens, inputs))
        output_tokens += estimate_thoughts(self._model, NARRATE, len(groups))
        return replace(await super().estimate_calls(groups), output_tokens=output_tokens)

    def make_record(self, result: PlanResult[Window, SummaryIn, SummaryOut]) -> dict[str, Any]:
        """The record has the settings too, and `taken`, the number of all passages that were processed."""
        taken = (self._store.intake(self.name).done | set(result.taken)) - result.failed.keys()
        return {
            "taken": len(taken),
            "model": join_names(self._model, self.roles),
            "stride": self._stride,
            "levels": self._levels,
        }


def _make_input(texts: Sequence[str]) -> SummaryIn:
    return SummaryIn(texts=list(texts), max_tokens=_SUMMARY_TOKENS)


def _fill_texts(ask: Ask[Window, SummaryIn], texts: Mapping[NodeId, str]) -> Ask[Window, SummaryIn]:
    """The ask with the texts of the level below; at the lowest level it has those of its passages already."""
    if ask.subject.level == 0:
        return ask
    return replace(ask, role_input=_make_input([texts[source] for source in ask.subject.sources]))


def _estimate_reply_tokens(summary_input: SummaryIn) -> int:
    """Estimate the tokens of a summary: its limit, or half of its texts where that is less."""
    return min(summary_input.max_tokens, sum(len(text) for text in summary_input.texts) // 8)
