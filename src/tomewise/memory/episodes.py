"""Episodes: summaries of consecutive windows of passages, in document order (ComoRAG, section 2.2, appendix B.2)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import floor, log2
from typing import TYPE_CHECKING

from tomewise.calls import CallCount, write_number
from tomewise.concurrency import run_in_thread
from tomewise.errors import UsageError
from tomewise.language.per_role import find_name
from tomewise.language.roles import NARRATE, SummaryIn, SummaryOut
from tomewise.memory.ask_each import Replies, ask_each
from tomewise.memory.reply_lengths import rehearse_replies
from tomewise.memory.steps import sum_tokens
from tomewise.types import (
    Change,
    Embedder,
    Estimate,
    LanguageModel,
    LayerReport,
    Node,
    NodeId,
    Passage,
    Report,
    content_id,
)

if TYPE_CHECKING:
    from tomewise.store.contract import Store

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


@dataclass(frozen=True, slots=True)
class _SourceText:
    """A passage, or a window of the level below. A failed call leaves `text` None; `passages` are those below it."""

    node: NodeId
    text: str | None
    passages: tuple[NodeId, ...]


@dataclass(frozen=True, slots=True)
class _Window:
    """A window that is to become a node."""

    node: NodeId
    document: str
    level: int
    position: int
    members: tuple[_SourceText, ...]

    @property
    def is_complete(self) -> bool:
        return all(member.text is not None for member in self.members)

    @property
    def texts(self) -> list[str]:
        return [member.text for member in self.members if member.text is not None]

    @property
    def passages(self) -> tuple[NodeId, ...]:
        return tuple(dict.fromkeys(node for member in self.members for node in member.passages))


@dataclass(frozen=True, slots=True)
class _Base:
    """All passages of the documents with passages to take in, and the windows that exist for these documents."""

    documents: Mapping[str, Mapping[int, Passage]]
    existing: Mapping[int, Node]

    @property
    def keys(self) -> dict[NodeId, int]:
        """Keys of the passages by id, in document order."""
        return {passage.id: key for passages in self.documents.values() for key, passage in passages.items()}

    @property
    def rows(self) -> dict[str, list[_SourceText]]:
        return {
            document: [_SourceText(passage.id, passage.text, (passage.id,)) for passage in passages.values()]
            for document, passages in self.documents.items()
        }


class EpisodesLayer:
    """Summaries of windows in document order; `levels` above 1 summarise the summaries in the same way.

    `stride` counts passages. It is at most the window size, so that no passage is left out; 0 stands for the window
    size, so that windows touch and do not overlap, as in the released code. The window size depends on the document
    alone, so that other documents do not change it. A document of one passage has no windows. The next build asks again
    for a window whose call failed; until then the windows above it are missing too. Layers with different settings can
    exist side by side.
    """

    kind = "episode"
    needs = ("passages",)

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
        self.writes = (self.name,)
        self._store = store
        self._model = model
        self._embedder = embedder
        self._stride = stride
        self._levels = levels

    @property
    def calls(self) -> CallCount:
        # Windows that touch hold two passages or more.
        most = self._levels * (1 if self._stride else 0.5)
        return CallCount(f"1 a window, at most {write_number(most)} a passage", most)

    async def update(self, change: Change, report: Report) -> LayerReport:
        """Summarise the missing windows of every document that has passages to take in."""
        base = await run_in_thread(self._load_base, change)
        summaries = {node.id: node.text for node in base.existing.values()}
        rows, nodes, failed = base.rows, list[Node](), dict[NodeId, str]()
        for level in range(self._levels):
            level_windows = self._cut_level(rows, level)
            due = [window for window in level_windows if window.node not in summaries and window.is_complete]
            replies = await self._ask_summaries(due, report)
            summaries |= {node: reply.summary for node, reply in replies.items()}
            failed |= {
                node: reason for w in level_windows if (reason := replies.failed.get(w.node)) for node in w.passages
            }
            nodes += [
                self._make_node(window, summaries[window.node]) for window in level_windows if window.node in summaries
            ]
            rows = _make_rows(level_windows, summaries)
        return await run_in_thread(self._commit, base, nodes, failed)

    async def estimate(self, change: Change) -> Estimate:
        """One call for each window that does not exist yet."""
        base = await run_in_thread(self._load_base, change)
        summaries = {node.id: node.text for node in base.existing.values()}
        rows, asked = base.rows, list[SummaryIn]()
        for level in range(self._levels):
            level_windows = self._cut_level(rows, level)
            asked += [_make_input(window) for window in level_windows if window.node not in summaries]
            rows = _make_rows(
                level_windows, {window.node: _make_stand_in(window) for window in level_windows} | summaries
            )
        return Estimate(
            layer=self.name,
            model=find_name(self._model, NARRATE),
            calls=len(asked),
            input_tokens=await sum_tokens(asked, partial(self._model.reckon, NARRATE)),
            output_tokens=await rehearse_replies(self._model, NARRATE, asked)
            or sum(_estimate_reply_tokens(summary_input) for summary_input in asked),
        )

    def _load_base(self, change: Change) -> _Base:
        touched = {passage.document for passage in self._store.passages(change.added).values()}
        documents: dict[str, dict[int, Passage]] = defaultdict(dict)
        for key, passage in self._store.passages_of(sorted(touched)).items():
            documents[passage.document][key] = passage
        front = {key for passages in documents.values() for key in passages}
        above: set[int] = set()
        while front:
            parents = self._store.find_derived(front, f"made-of:{self.name}").values()
            front = {key for keys in parents for key in keys} - above
            above |= front
        return _Base(documents, self._store.nodes_at(sorted(above)))

    def _cut_level(self, rows: Mapping[str, Sequence[_SourceText]], level: int) -> list[_Window]:
        """The windows of one level."""
        level_windows = []
        for document, row in rows.items():
            size = choose_window_size(len(row))
            for position, span in enumerate(cut_windows(len(row), size, min(self._stride or size, size))):
                members = tuple(row[place] for place in span)
                node = content_id("w", self.name, level, *(member.node for member in members))
                level_windows.append(_Window(node, document, level, position, members))
        return level_windows

    def _make_node(self, window: _Window, text: str) -> Node:
        return Node(
            id=window.node,
            layer=self.name,
            text=text,
            sources=tuple(member.node for member in window.members),
            level=window.level,
            position=window.position,
            data={"document": window.document},
        )

    async def _ask_summaries(self, due: Sequence[_Window], report: Report) -> Replies[NodeId, SummaryOut]:
        inputs = {window.node: _make_input(window) for window in due}
        return await ask_each(self._model, NARRATE, inputs, report, "episodes narrated")

    def _commit(self, base: _Base, nodes: Sequence[Node], failed: Mapping[NodeId, str]) -> LayerReport:
        """Write new windows, and remove windows that the current cut does not contain."""
        wanted = {node.id for node in nodes}
        stale = [key for key, node in base.existing.items() if node.id not in wanted]
        existing = {node.id for node in base.existing.values()}
        fresh = [node for node in nodes if node.id not in existing]
        vectors = self._embedder.embed([node.text for node in fresh])
        missed = {key: failed[node] for node, key in base.keys.items() if node in failed}
        taken_keys = [key for key in base.keys.values() if key not in missed]
        taken = len((self._store.intake(self.name).done | set(taken_keys)) - missed.keys())
        record = {
            "taken": taken,
            "model": find_name(self._model, NARRATE),
            "stride": self._stride,
            "levels": self._levels,
        }
        with self._store.write() as writing:
            writing.remove_nodes(stale)
            keys = writing.put_nodes(fresh)
            writing.put_vectors(self.name, [keys[node.id] for node in fresh], vectors)
            writing.record_intake(self.name, taken_keys, missed)
            writing.record_build(self.name, record)
        return LayerReport(layer=self.name, added=len(fresh), removed=len(stale), failed=missed)


def _make_input(window: _Window) -> SummaryIn:
    return SummaryIn(texts=window.texts, max_tokens=_SUMMARY_TOKENS)


def _make_rows(level_windows: Sequence[_Window], summaries: Mapping[NodeId, str]) -> dict[str, list[_SourceText]]:
    """Turn the windows of a level into the texts of the next level."""
    rows: dict[str, list[_SourceText]] = defaultdict(list)
    for window in level_windows:
        rows[window.document].append(_SourceText(window.node, summaries.get(window.node), window.passages))
    return rows


def _make_stand_in(window: _Window) -> str:
    """Make a text as long as the missing summary will be, for estimates."""
    return " ".join(window.texts)[: 4 * _estimate_reply_tokens(_make_input(window))]


def _estimate_reply_tokens(summary_input: SummaryIn) -> int:
    """Estimate the tokens of a summary: its limit, or half of its texts where that is less."""
    return min(summary_input.max_tokens, sum(len(text) for text in summary_input.texts) // 8)
