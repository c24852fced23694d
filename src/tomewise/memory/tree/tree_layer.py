"""The tree: summaries of clusters of similar passages, and summaries of summaries (RAPTOR, section 3)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from tomewise.calls import CallCount
from tomewise.concurrency import run_in_thread
from tomewise.extras import GRAPH
from tomewise.language.roles import SUMMARISE, SummaryIn
from tomewise.language.wrapped import find_name
from tomewise.memory.ask_each import ask_each
from tomewise.memory.build_records import record_build
from tomewise.memory.token_estimates import estimate_asks
from tomewise.memory.tree.clustering import SMALL, Reduction, choose_reduction, find_clusters
from tomewise.store.contract import Store, Vectors
from tomewise.store.lookups import find_keys
from tomewise.store.records import PASSAGES
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

NAME = "tree"
_CLUSTER_TOKENS = 3500  # of the texts in one cluster
_SUMMARY_TOKENS = 100  # as in the released code
_LEVELS = 5
_CHARACTERS_PER_TOKEN = 4
_SHARE = 0.95  # of its token limit that a summary usually takes


@dataclass(frozen=True, slots=True)
class _Parent:
    """A cluster that is to become a node, which has no text yet."""

    node: Node
    members: tuple[int, ...]
    summary_input: SummaryIn


@dataclass(frozen=True)
class _Level:
    """The nodes of one level in document order. `below` has the indices of the passages under each node."""

    nodes: Sequence[Passage | Node]
    texts: Sequence[str]
    below: Sequence[frozenset[int]]
    vectors: Vectors

    def find_passages(self, parent: _Parent) -> frozenset[int]:
        """The indices of the passages under a cluster of these nodes."""
        return frozenset[int]().union(*(self.below[member] for member in parent.members))


@dataclass(frozen=True)
class _Tree:
    """A whole tree: the nodes of all levels, each with its vector, and failures by the index of the passage below.

    `sizes` counts the nodes of each level.
    """

    nodes: list[tuple[Node, Vectors]] = field(default_factory=list)
    failed: dict[int, str] = field(default_factory=dict)
    sizes: list[int] = field(default_factory=list)


_Summaries: TypeAlias = "dict[NodeId, tuple[str, Vectors]]"  # the text and the vector of each
_Summarise: TypeAlias = Callable[[_Level, list[_Parent]], Awaitable[tuple[_Summaries, Mapping[NodeId, str]]]]


@dataclass(frozen=True)
class TreeLayer:
    """One tree over all passages of the tome, built again when the passages change.

    A cluster with the same members as before keeps its node, so that only new clusters are summarised. The tree ends
    after 5 levels, above a level of 11 nodes or fewer, or where the next level would not have fewer nodes than the one
    below it (there the released code goes on). Passages are clustered and summarised with their titles. `reduction` is
    UMAP where it is installed, else PCA. A cluster has at most `cluster_tokens`, a summary aims at `summary_tokens`.
    """

    name = NAME
    kind = "summary"
    needs = (PASSAGES,)
    writes = (NAME,)
    extra = GRAPH
    # Every level has fewer nodes than the one below it.
    calls = CallCount(f"1 a summary, at most {_LEVELS} a passage", _LEVELS)

    store: Store
    model: LanguageModel
    embedder: Embedder
    reduction: Reduction | None = None
    cluster_tokens: int = _CLUSTER_TOKENS
    summary_tokens: int = _SUMMARY_TOKENS

    async def update(self, change: Change, report: Report) -> LayerReport:
        """Cluster all passages again and summarise the new clusters, one level at a time."""
        reduction, keys, ground, existing = await run_in_thread(self._load)

        async def summarise(_: _Level, parents: list[_Parent]) -> tuple[_Summaries, Mapping[NodeId, str]]:
            inputs = {parent.node.id: parent.summary_input for parent in parents}
            label = f"summaries, level {parents[0].node.level}" if parents else ""
            replies = await ask_each(self.model, SUMMARISE, inputs, report, label)
            texts = [reply.summary for reply in replies.values()]
            vectors = await run_in_thread(self.embedder.embed, texts)
            return dict(zip(replies, zip(texts, vectors, strict=True), strict=True)), replies.failed

        tree = await self._grow_tree(ground, existing, reduction, summarise)
        return await run_in_thread(self._commit, keys, tree, existing, reduction)

    async def estimate(self, change: Change) -> Estimate:
        """The calls of level 1, clustered as in `update`, and an approximation of the levels above.

        A summary that does not exist yet gets the mean vector of its members and the beginning of their texts.
        """
        reduction, _, ground, existing = await run_in_thread(self._load)
        inputs: list[SummaryIn] = []

        async def summarise(level_below: _Level, parents: list[_Parent]) -> tuple[_Summaries, Mapping[NodeId, str]]:
            inputs.extend(parent.summary_input for parent in parents)
            return {parent.node.id: _make_stand_in(level_below, parent) for parent in parents}, {}

        await self._grow_tree(ground, existing, reduction, summarise)
        output_tokens = sum(_estimate_characters(each) // _CHARACTERS_PER_TOKEN for each in inputs)
        return await estimate_asks(NAME, self.model, SUMMARISE, inputs, output_tokens)

    def _load(self) -> tuple[Reduction, list[int], _Level, _Summaries]:
        """Load the reduction, the keys of the passages in document order, the passages, and the existing summaries."""
        passages, nodes = self.store.passages(), self.store.nodes(NAME)
        keys = list(passages)
        ground = _Level(
            nodes=list(passages.values()),
            texts=[passage.content for passage in passages.values()],
            below=[frozenset([index]) for index in range(len(keys))],
            vectors=self.store.rows(PASSAGES, keys),
        )
        rows = self.store.rows(NAME, nodes)
        existing = {node.id: (node.text, row) for node, row in zip(nodes.values(), rows, strict=True)}
        return self.reduction or choose_reduction(), keys, ground, existing

    async def _grow_tree(
        self, level_below: _Level, existing: _Summaries, reduction: Reduction, summarise: _Summarise
    ) -> _Tree:
        tree = _Tree()
        for level in range(1, _LEVELS + 1):
            if len(level_below.nodes) <= SMALL:
                break
            found = await run_in_thread(self._find_clusters, level_below, reduction)
            if len(found) >= len(level_below.nodes):
                break
            parents = [self._make_parent(level_below, level, members) for members in found]
            fresh, failed = await summarise(level_below, [each for each in parents if each.node.id not in existing])
            for parent in parents:
                if reason := failed.get(parent.node.id):
                    tree.failed.update(dict.fromkeys(level_below.find_passages(parent), reason))
            summaries = existing | fresh
            parents = [parent for parent in parents if parent.node.id in summaries]
            made = [summaries[parent.node.id] for parent in parents]
            nodes = [replace(parent.node, text=text) for parent, (text, _) in zip(parents, made, strict=True)]
            tree.nodes.extend(zip(nodes, (row for _, row in made), strict=True))
            tree.sizes.append(len(parents))
            # Parents are sorted by members, and therefore in document order.
            level_below = _Level(
                nodes=nodes,
                texts=[node.text for node in nodes],
                below=[level_below.find_passages(parent) for parent in parents],
                vectors=np.stack([row for _, row in made]) if made else level_below.vectors[:0],
            )
        return tree

    def _find_clusters(self, level_below: _Level, reduction: Reduction) -> list[tuple[int, ...]]:
        encoded = self.embedder.tokenizer.encode_batch_fast(list(level_below.texts), add_special_tokens=False)
        return find_clusters(level_below.vectors, [len(found.ids) for found in encoded], reduction, self.cluster_tokens)

    def _make_parent(self, level_below: _Level, level: int, members: tuple[int, ...]) -> _Parent:
        """The cluster; the position of its node is that of its first passage in the document of that passage."""
        sources = tuple(level_below.nodes[member].id for member in members)
        position = level_below.nodes[members[0]].position
        name = content_id("t", level, *sources)
        node = Node(id=name, layer=NAME, text="", sources=sources, level=level, position=position)
        texts = [level_below.texts[member] for member in members]
        return _Parent(node, members, SummaryIn(texts=texts, max_tokens=self.summary_tokens))

    def _commit(self, keys: Sequence[int], tree: _Tree, existing: _Summaries, reduction: Reduction) -> LayerReport:
        """Write the new nodes and remove the obsolete ones."""
        obsolete = find_keys(self.store, existing.keys() - {node.id for node, _ in tree.nodes})
        fresh = [(node, row) for node, row in tree.nodes if node.id not in existing]
        failed = {keys[index]: reason for index, reason in tree.failed.items()}
        taken_keys = [key for key in keys if key not in failed]
        record = {
            "taken": len(taken_keys),
            "model": find_name(self.model, SUMMARISE),
            "reduction": reduction.name,
            "levels": len(tree.sizes),
            "sizes": tree.sizes,
            "cluster_tokens": self.cluster_tokens,
            "summary_tokens": self.summary_tokens,
        }
        with self.store.write() as writing:
            writing.remove_nodes(obsolete.values())
            node_keys = writing.put_nodes([node for node, _ in fresh])
            if fresh:
                rows = np.stack([row for _, row in fresh])
                writing.put_vectors(NAME, [node_keys[node.id] for node, _ in fresh], rows)
            writing.record_intake(NAME, taken_keys, failed)
            record_build(writing, NAME, record)
        notes = (reduction.note,) if reduction.note and tree.sizes else ()
        return LayerReport(layer=NAME, added=len(fresh), removed=len(obsolete), failed=failed, notes=notes)


def _make_stand_in(level_below: _Level, parent: _Parent) -> tuple[str, Vectors]:
    middle = level_below.vectors[list(parent.members)].mean(axis=0)
    text = " ".join(parent.summary_input.texts)[: _estimate_characters(parent.summary_input)]
    return text, middle / max(float(np.linalg.norm(middle)), 1e-12)


def _estimate_characters(summary_input: SummaryIn) -> int:
    return min(int(_SHARE * summary_input.max_tokens * _CHARACTERS_PER_TOKEN), sum(map(len, summary_input.texts)))
