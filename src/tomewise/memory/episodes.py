"""Episodes: the course of a document as summaries of windows over its passages (ComoRAG, section 2.2, appendix B.2)."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import floor, log2
from typing import TYPE_CHECKING

from tomewise.errors import UsageError
from tomewise.language.roles import NARRATE, SummaryIn, SummaryOut
from tomewise.memory.ask_each import Replies, ask_each
from tomewise.memory.reply_lengths import rehearsed
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
    from tomewise.store.sqlite.store import SqliteStore

NAME = "episodes"
_SUMMARY_TOKENS = 500
_STEPS = ((5, 2), (20, 3), (50, 5), (100, 8), (200, 10))


def window_size(passages: int) -> int:
    """How many passages a window spans in a document of so many (appendix B.2; up to 5 passages: 2, as released)."""
    for bound, size in _STEPS:
        if passages <= bound:
            return size
    return min(20, max(10, floor(2 * log2(passages))))


def windows(count: int, size: int, stride: int) -> list[range]:
    """Windows over `count` positions, each `stride` after the one before, the last one reaching the end.

    None holds a single position, which would tell nothing of a course: the last one joins the window before it.
    """
    spans = [range(start, min(count, start + size)) for start in range(0, max(1, count - size + stride), stride)]
    if len(spans[-1]) == 1:
        spans[-2:] = [range(spans[-2].start, count)] if len(spans) > 1 else []
    return spans


@dataclass(frozen=True, slots=True)
class _Text:
    """A passage or a window of the level below. `text` is None where its call failed; `ground` are its passages."""

    node: NodeId
    text: str | None
    ground: tuple[NodeId, ...]


@dataclass(frozen=True, slots=True)
class _Window:
    """A window on its way to become a node."""

    node: NodeId
    document: str
    level: int
    position: int
    members: tuple[_Text, ...]

    @property
    def whole(self) -> bool:
        return all(member.text is not None for member in self.members)

    @property
    def texts(self) -> list[str]:
        return [member.text for member in self.members if member.text is not None]

    @property
    def ground(self) -> tuple[NodeId, ...]:
        return tuple(dict.fromkeys(node for member in self.members for node in member.ground))


@dataclass(frozen=True, slots=True)
class _Below:
    """The documents that have passages to take in, whole, and the windows that stand on them."""

    documents: Mapping[str, Mapping[int, Passage]]
    standing: Mapping[int, Node]

    @property
    def keys(self) -> dict[NodeId, int]:
        """Keys of the passages by id, in document order."""
        return {passage.id: key for some in self.documents.values() for key, passage in some.items()}

    @property
    def rows(self) -> dict[str, list[_Text]]:
        return {
            document: [_Text(passage.id, passage.text, (passage.id,)) for passage in some.values()]
            for document, some in self.documents.items()
        }


class EpisodesLayer:
    """Summaries of windows in document order; `levels` above 1 summarise the summaries in the same way.

    `stride` is in passages and at most the size of a window, so that none is left out; 0 stands for that size: windows
    touch and do not overlap, as in the released code. The size of a window follows from the document alone, so that
    other documents change nothing. A document of one passage has none. A window whose call failed is asked for again by
    the next build; until then there is none above it either. Layers of different settings stand side by side.
    """

    needs = ("passages",)

    def __init__(
        self,
        store: SqliteStore,
        model: LanguageModel,
        embedder: Embedder,
        *,
        stride: int = 0,
        levels: int = 1,
    ) -> None:
        if stride < 0 or levels < 1:
            raise UsageError(f"episodes: stride is 0 or more passages and levels 1 or more, not {stride} and {levels}")
        settings = [f"stride={stride}"] * (stride > 0) + [f"levels={levels}"] * (levels > 1)
        self.name = f"{NAME}:{','.join(settings)}" if settings else NAME
        self._store = store
        self._model = model
        self._embedder = embedder
        self._stride = stride
        self._levels = levels

    async def update(self, change: Change, report: Report) -> LayerReport:
        """Summarise the windows of every document that has passages to take in, but those that are there."""
        below = await asyncio.to_thread(self._below, change)
        said = {node.id: node.text for node in below.standing.values()}
        rows, nodes, failed = below.rows, list[Node](), dict[NodeId, str]()
        for level in range(self._levels):
            cut = self._cut(rows, level)
            due = [window for window in cut if window.node not in said and window.whole]
            replies = await self._summaries(due, report)
            said |= {node: reply.summary for node, reply in replies.items()}
            failed |= {node: reason for w in cut if (reason := replies.failed.get(w.node)) for node in w.ground}
            nodes += [self._node(window, said[window.node]) for window in cut if window.node in said]
            rows = _rows(cut, said)
        return await asyncio.to_thread(self._commit, below, nodes, failed)

    async def estimate(self, change: Change) -> Estimate:
        """One call for each window that is not there yet."""
        below = await asyncio.to_thread(self._below, change)
        said = {node.id: node.text for node in below.standing.values()}
        rows, asked = below.rows, list[SummaryIn]()
        for level in range(self._levels):
            cut = self._cut(rows, level)
            asked += [_given(window) for window in cut if window.node not in said]
            rows = _rows(cut, {window.node: _stand_in(window) for window in cut} | said)
        return Estimate(
            layer=self.name,
            calls=len(asked),
            input_tokens=sum(self._model.reckon(NARRATE, given) for given in asked),
            output_tokens=await rehearsed(self._model, NARRATE, asked) or sum(_reply_tokens(given) for given in asked),
        )

    def _below(self, change: Change) -> _Below:
        touched = {passage.document for passage in self._store.passages(change.added).values()}
        documents: dict[str, dict[int, Passage]] = defaultdict(dict)
        for key, passage in self._store.passages_of(sorted(touched)).items():
            documents[passage.document][key] = passage
        front = {key for some in documents.values() for key in some}
        above: set[int] = set()
        while front:
            found = self._store.find_derived(front, f"made-of:{self.name}").values()
            front = {key for some in found for key in some} - above
            above |= front
        return _Below(documents, self._store.nodes_at(sorted(above)))

    def _cut(self, rows: Mapping[str, Sequence[_Text]], level: int) -> list[_Window]:
        """The windows of one level."""
        found = []
        for document, row in rows.items():
            size = window_size(len(row))
            for position, span in enumerate(windows(len(row), size, min(self._stride or size, size))):
                members = tuple(row[place] for place in span)
                node = content_id("w", self.name, level, *(member.node for member in members))
                found.append(_Window(node, document, level, position, members))
        return found

    def _node(self, window: _Window, text: str) -> Node:
        return Node(
            id=window.node,
            layer=self.name,
            text=text,
            sources=tuple(member.node for member in window.members),
            level=window.level,
            position=window.position,
            data={"document": window.document},
        )

    async def _summaries(self, due: Sequence[_Window], report: Report) -> Replies[NodeId, SummaryOut]:
        inputs = {window.node: _given(window) for window in due}
        return await ask_each(self._model, NARRATE, inputs, report, "episodes narrated")

    def _commit(self, below: _Below, nodes: Sequence[Node], failed: Mapping[NodeId, str]) -> LayerReport:
        """Write what is new; windows that were cut otherwise before go."""
        wanted = {node.id for node in nodes}
        stale = [key for key, node in below.standing.items() if node.id not in wanted]
        held = {node.id for node in below.standing.values()}
        fresh = [node for node in nodes if node.id not in held]
        vectors = self._embedder.embed([node.text for node in fresh])
        missed = {key: failed[node] for node, key in below.keys.items() if node in failed}
        done = [key for key in below.keys.values() if key not in missed]
        taken = len((self._store.intake(self.name).done | set(done)) - missed.keys())
        record = {"taken": taken, "model": self._model.name, "stride": self._stride, "levels": self._levels}
        with self._store.write() as writing:
            writing.remove_nodes(stale)
            keys = writing.put_nodes(fresh)
            writing.put_vectors(self.name, [keys[node.id] for node in fresh], vectors)
            writing.record_intake(self.name, done, missed)
            writing.record_build(self.name, record)
        return LayerReport(layer=self.name, added=len(fresh), removed=len(stale), failed=missed)


def _given(window: _Window) -> SummaryIn:
    return SummaryIn(texts=window.texts, max_tokens=_SUMMARY_TOKENS)


def _rows(cut: Sequence[_Window], said: Mapping[NodeId, str]) -> dict[str, list[_Text]]:
    """The windows of a level as the texts of the next one."""
    rows: dict[str, list[_Text]] = defaultdict(list)
    for window in cut:
        rows[window.document].append(_Text(window.node, said.get(window.node), window.ground))
    return rows


def _stand_in(window: _Window) -> str:
    """What a summary that is not there yet is reckoned to say."""
    return " ".join(window.texts)[: 4 * _reply_tokens(_given(window))]


def _reply_tokens(given: SummaryIn) -> int:
    """What a summary takes: as much as it may, or half of what it sums up where that is less."""
    return min(given.max_tokens, sum(len(text) for text in given.texts) // 8)
