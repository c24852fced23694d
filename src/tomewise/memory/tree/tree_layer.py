"""The tree: summaries of passages that speak of the same, and summaries of those (RAPTOR, section 3)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tomewise.language.roles import SUMMARISE, SummaryIn
from tomewise.memory.ask_each import ask_each
from tomewise.memory.tree.clustering import SMALL, Reduction, best_reduction, clusters
from tomewise.types import Change, Embedder, Estimate, LanguageModel, LayerReport, Node, NodeId, Report, content_id

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tomewise.store.sqlite.store import SqliteStore

NAME = "tree"
_GROUND = "passages"
_CLUSTER_TOKENS = 3500  # of the texts summarised together
_SUMMARY_TOKENS = 200
_LEVELS = 5
_CHARACTERS_PER_TOKEN = 4
_SHARE = 0.95  # of the tokens that a summary may take and, by experience, takes


@dataclass(frozen=True, slots=True)
class _Floor:
    """The nodes of one level in document order. `below` are the positions of the passages under each."""

    ids: Sequence[NodeId]
    texts: Sequence[str]
    positions: Sequence[int]
    below: Sequence[frozenset[int]]
    vectors: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class _Parent:
    """A cluster on its way to become a node."""

    id: NodeId
    level: int
    members: tuple[int, ...]
    given: SummaryIn


@dataclass(frozen=True, slots=True)
class _Said:
    """The summary of a cluster with its vector."""

    text: str
    vector: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class _Grown:
    """A whole tree: nodes of all levels with their vectors, and why passages lack a summary above them."""

    nodes: list[Node] = field(default_factory=list)
    vectors: list[NDArray[np.float32]] = field(default_factory=list)
    failed: dict[int, str] = field(default_factory=dict)
    sizes: list[int] = field(default_factory=list)


_Say = Callable[[_Floor, Sequence[_Parent]], Awaitable[tuple[Mapping[NodeId, _Said], Mapping[NodeId, str]]]]


class TreeLayer:
    """One tree over all passages of the tome, built anew when they change.

    A cluster whose members are what they were keeps its node, so that only new clusters are summarised. Levels end at
    5, at 11 nodes or fewer, or where a level would hold no fewer nodes than the one below it (the released code goes
    on). Passages are clustered and summarised with their titles. `reduction` is UMAP unless it is not installed.
    """

    name = NAME
    needs = (_GROUND,)

    def __init__(
        self,
        store: SqliteStore,
        model: LanguageModel,
        embedder: Embedder,
        *,
        reduction: Reduction | None = None,
        cluster_tokens: int = _CLUSTER_TOKENS,
        summary_tokens: int = _SUMMARY_TOKENS,
    ) -> None:
        self._store = store
        self._model = model
        self._embedder = embedder
        self._reduction = reduction
        self._cluster_tokens = cluster_tokens
        self._summary_tokens = summary_tokens

    async def update(self, change: Change, report: Report) -> LayerReport:
        """Cluster all passages anew and summarise the clusters that are new, a level at a time."""
        reduction, keys, ground, kept = await asyncio.to_thread(self._start)

        async def say(floor: _Floor, parents: Sequence[_Parent]) -> tuple[dict[NodeId, _Said], Mapping[NodeId, str]]:
            fresh = {parent.id: parent.given for parent in parents if parent.id not in kept}
            label = f"summaries, level {parents[0].level}"
            replies = await ask_each(self._model, SUMMARISE, fresh, report, label)
            texts = [reply.summary for reply in replies.values()]
            vectors = await asyncio.to_thread(self._embedder.embed, texts)
            made = {node: _Said(text, row) for node, text, row in zip(replies, texts, vectors, strict=True)}
            return {**kept, **made}, replies.failed

        grown = await self._grow(ground, reduction, say)
        added, gone = await asyncio.to_thread(self._commit, keys, grown, kept, reduction)
        failed = {keys[position]: reason for position, reason in grown.failed.items()}
        notes = (reduction.note,) if reduction.note and grown.sizes else ()
        return LayerReport(layer=NAME, added=added, removed=gone, failed=failed, notes=notes)

    async def estimate(self, change: Change) -> Estimate:
        """The calls of level 1, for which passages are clustered as `update` would, and what those above may come to.

        A summary that does not exist yet is taken to lie amid its members and to be as long as the beginning of theirs.
        """
        reduction, _, ground, kept = await asyncio.to_thread(self._start)
        asked: list[SummaryIn] = []

        async def say(floor: _Floor, parents: Sequence[_Parent]) -> tuple[dict[NodeId, _Said], Mapping[NodeId, str]]:
            fresh = [parent for parent in parents if parent.id not in kept]
            asked.extend(parent.given for parent in fresh)
            return {**kept, **{parent.id: _stand_in(floor, parent) for parent in fresh}}, {}

        await self._grow(ground, reduction, say)
        return Estimate(
            layer=NAME,
            calls=len(asked),
            input_tokens=sum(self._model.reckon(SUMMARISE, given) for given in asked),
            output_tokens=sum(_reply_characters(given) // _CHARACTERS_PER_TOKEN for given in asked),
        )

    def _start(self) -> tuple[Reduction, list[int], _Floor, dict[NodeId, _Said]]:
        """How to reduce, the keys of the passages in document order, the passages, and the summaries that exist."""
        passages = self._store.passages()
        keys = list(passages)
        ground = _Floor(
            ids=[passage.id for passage in passages.values()],
            texts=[passage.content for passage in passages.values()],
            positions=[passage.position for passage in passages.values()],
            below=[frozenset([place]) for place in range(len(keys))],
            vectors=_rows(self._store, _GROUND, keys),
        )
        nodes = self._store.nodes(NAME)
        rows = _rows(self._store, NAME, list(nodes))
        kept = {node.id: _Said(node.text, row) for node, row in zip(nodes.values(), rows, strict=True)}
        reduction = self._reduction or best_reduction()
        return reduction, keys, ground, kept

    async def _grow(self, floor: _Floor, reduction: Reduction, say: _Say) -> _Grown:
        grown = _Grown()
        for level in range(1, _LEVELS + 1):
            if len(floor.ids) <= SMALL:
                break
            found = await asyncio.to_thread(self._clusters, floor, reduction)
            if len(found) >= len(floor.ids):
                break
            parents = [self._parent(floor, level, members) for members in found]
            said, failed = await say(floor, parents)
            for parent in parents:
                if parent.id in failed:
                    grown.failed.update(dict.fromkeys(_below(floor, parent), failed[parent.id]))
            parents = [parent for parent in parents if parent.id not in failed]
            grown.nodes.extend(_node(floor, parent, said[parent.id].text) for parent in parents)
            grown.vectors.extend(said[parent.id].vector for parent in parents)
            grown.sizes.append(len(parents))
            floor = _next(floor, parents, said)
        return grown

    def _clusters(self, floor: _Floor, reduction: Reduction) -> list[tuple[int, ...]]:
        encoded = self._embedder.tokenizer.encode_batch_fast(list(floor.texts), add_special_tokens=False)
        return clusters(floor.vectors, [len(found.ids) for found in encoded], reduction, self._cluster_tokens)

    def _parent(self, floor: _Floor, level: int, members: tuple[int, ...]) -> _Parent:
        given = SummaryIn(texts=[floor.texts[member] for member in members], max_tokens=self._summary_tokens)
        return _Parent(content_id("t", level, *(floor.ids[member] for member in members)), level, members, given)

    def _commit(
        self, keys: Sequence[int], grown: _Grown, kept: Mapping[NodeId, _Said], reduction: Reduction
    ) -> tuple[int, int]:
        """Write what is new and take away what is no more; how many nodes came and went."""
        wanted = {node.id for node in grown.nodes}
        gone = self._store.keys_of(node for node in kept if node not in wanted)
        fresh = [(node, row) for node, row in zip(grown.nodes, grown.vectors, strict=True) if node.id not in kept]
        failed = {keys[place]: reason for place, reason in grown.failed.items()}
        done = [key for key in keys if key not in failed]
        with self._store.write() as writing:
            writing.remove_nodes(gone.values())
            made = writing.put_nodes([node for node, _ in fresh])
            if fresh:
                writing.put_vectors(NAME, [made[node.id] for node, _ in fresh], np.stack([row for _, row in fresh]))
            writing.record_intake(NAME, done, failed)
            writing.record_build(NAME, self._record(len(done), grown, reduction))
        return len(fresh), len(gone)

    def _record(self, taken: int, grown: _Grown, reduction: Reduction) -> dict[str, Any]:
        return {
            "taken": taken,
            "model": self._model.name,
            "reduction": reduction.name,
            "levels": len(grown.sizes),
            "sizes": grown.sizes,
            "cluster_tokens": self._cluster_tokens,
            "summary_tokens": self._summary_tokens,
        }


def _rows(store: SqliteStore, space: str, keys: Sequence[int]) -> NDArray[np.float32]:
    columns = store.vectors(space)
    return np.asarray(columns.rows[np.searchsorted(columns.keys, keys)], np.float32)


def _below(floor: _Floor, parent: _Parent) -> frozenset[int]:
    return frozenset[int]().union(*(floor.below[member] for member in parent.members))


def _node(floor: _Floor, parent: _Parent, text: str) -> Node:
    """`position` is that of the first passage below within its document, which no other cluster can change."""
    return Node(
        id=parent.id,
        layer=NAME,
        text=text,
        sources=tuple(floor.ids[member] for member in parent.members),
        level=parent.level,
        position=floor.positions[parent.members[0]],
    )


def _next(floor: _Floor, parents: Sequence[_Parent], said: Mapping[NodeId, _Said]) -> _Floor:
    """The level of these parents; they are sorted by their members, and so in document order."""
    vectors = [said[parent.id].vector for parent in parents]
    return _Floor(
        ids=[parent.id for parent in parents],
        texts=[said[parent.id].text for parent in parents],
        positions=[floor.positions[parent.members[0]] for parent in parents],
        below=[_below(floor, parent) for parent in parents],
        vectors=np.stack(vectors) if vectors else floor.vectors[:0],
    )


def _stand_in(floor: _Floor, parent: _Parent) -> _Said:
    middle = floor.vectors[list(parent.members)].mean(axis=0)
    text = " ".join(parent.given.texts)[: _reply_characters(parent.given)]
    return _Said(text, middle / max(float(np.linalg.norm(middle)), 1e-12))


def _reply_characters(given: SummaryIn) -> int:
    return min(int(_SHARE * given.max_tokens * _CHARACTERS_PER_TOKEN), sum(map(len, given.texts)))
