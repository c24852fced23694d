"""Recall over derived texts: summaries, windows of a story, gists; and over the summary tree (RAPTOR, section 3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from tomewise.memory.grounds import find_grounds
from tomewise.memory.tree.tree_layer import TreeLayer
from tomewise.recall.array_types import Vectors, sort_keys
from tomewise.recall.ranking import PlainSearch, as_evidence, name_in_order, pair_scores, rank_evidence
from tomewise.store.contract import Readable
from tomewise.store.lookups import read_pairs, read_sources
from tomewise.store.nearest import DECIMALS
from tomewise.store.records import PASSAGES, list_source_spaces
from tomewise.types import Embedder, Evidence, Layer, PassageId, Scope

_TREE = TreeLayer.name


class DenseDerived(PlainSearch):
    """Nodes of one layer, ranked by cosine with the query; all levels together (RAPTOR's collapsed tree).

    `layer`, or its name, is that of the nodes, of the space of their vectors, and of the evidence, which is of the kind
    that the layer declares. Its score is the cosine, its sources are the passages from which the node was made. A node
    is within a scope if all of these are.
    """

    def __init__(self, store: Readable, embedder: Embedder, layer: str | Layer) -> None:
        self._store = store
        self._embedder = embedder
        self._layer = layer if isinstance(layer, str) else layer.name
        self._kind = str(getattr(layer, "kind", ""))
        self._grounds = Grounds(store, self._layer)

    def _search(self, query: str, limit: int, within: Scope | None) -> list[Evidence]:
        nearest = _find_nearest(self._store, self._embedder.embed([query])[0], limit, within, self._layer)
        return rank_evidence(self._grounds.load_nodes(nearest, self._kind).values(), limit)


class Grounds:
    """The passages from which nodes of one layer were made. They are cached until the layer changes."""

    def __init__(self, store: Readable, layer: str) -> None:
        self._store = store
        self._layer = layer
        self._cache: tuple[Mapping[str, int], dict[int, tuple[PassageId, ...]]] = ({}, {})  # versions, passages by node

    def find_passages_below(self, keys: Iterable[int]) -> Mapping[int, tuple[PassageId, ...]]:
        """For each node the passages at the bottom of its tree, however many levels down, in document order."""
        wanted = list(keys)
        versions = self._store.versions(f"edges/{space}" for space in list_source_spaces(self._layer))
        if self._cache[0] != versions:
            self._cache = (versions, {})
        cache = self._cache[1]  # stays correct for `versions` even if another thread now replaces `self._cache`
        below = find_grounds(self._store, [key for key in wanted if key not in cache], self._layer)
        passages = self._store.passages({leaf for leaves in below.values() for leaf in leaves})
        cache |= {key: name_in_order(leaves, passages) for key, leaves in below.items()}
        return {key: cache[key] for key in wanted}

    def load_evidence(self, scores: Mapping[int, float], kind: str, limit: int | None = None) -> dict[int, Evidence]:
        """The `limit` best of passages and nodes of the layer as evidence by key, best first, ties by id."""
        passages = self._store.passages(scores)
        found = {key: as_evidence(passage, round(scores[key], DECIMALS)) for key, passage in passages.items()}
        found |= self.load_nodes({key: score for key, score in scores.items() if key not in passages}, kind)
        return dict(sorted(found.items(), key=lambda item: (-item[1].score, item[1].id))[:limit])

    def load_nodes(self, scores: Mapping[int, float], kind: str) -> dict[int, Evidence]:
        """Nodes of the layer as evidence by key, each with the passages below it."""
        sources = self.find_passages_below(scores)
        return {
            key: Evidence(
                id=node.id,
                layer=self._layer,
                kind=kind,
                text=node.text,
                score=round(scores[key], DECIMALS),
                sources=sources[key],
            )
            for key, node in self._store.nodes_at(scores).items()
        }


class CollapsedTree(PlainSearch):
    """Passages and summaries of all levels, ranked together by cosine with the query; `layer` has the summaries.

    The paper fills a budget of tokens from this ranking and stops at the first text that does not fit. Deviation: here
    the loop fills its own budget, and it skips such a text and continues with texts that fit.
    """

    def __init__(self, store: Readable, embedder: Embedder, layer: str = _TREE) -> None:
        self._store = store
        self._embedder = embedder
        self._layer = layer
        self._grounds = Grounds(store, layer)

    def _search(self, query: str, limit: int, within: Scope | None) -> list[Evidence]:
        vector = self._embedder.embed([query])[0]
        nearest = _find_nearest(self._store, vector, limit, within, PASSAGES, self._layer)
        return list(self._grounds.load_evidence(nearest, TreeLayer.kind, limit).values())


class TreeTraversal(PlainSearch):
    """From the highest level down: at each level, keep the `top_k` nearest of the children of the nodes kept above.

    The search begins at the highest level that exists; without summaries these are the passages. Evidence comes from
    all levels, best first. As in the paper, this has no budget of tokens; the loop applies its own. If the call that
    should make a parent failed, its children cannot be reached until the next build. In a scope, the search begins at
    all nodes within that have no parent within.
    """

    def __init__(self, store: Readable, embedder: Embedder, *, top_k: int = 5) -> None:
        self._store = store
        self._embedder = embedder
        self._top_k = top_k
        self._grounds = Grounds(store, _TREE)

    def _search(self, query: str, limit: int, within: Scope | None) -> list[Evidence]:
        vector = self._embedder.embed([query])[0]
        kept: dict[int, Evidence] = {}
        candidates = self._find_roots(within)
        while candidates:
            among, scores = sort_keys(candidates), dict[int, float]()
            for space in (PASSAGES, _TREE):
                scores |= pair_scores(*self._store.scores(space, vector, among=among))
            best = self._grounds.load_evidence(scores, TreeLayer.kind, self._top_k)
            kept |= best
            children = read_sources(self._store, best, _TREE).values()
            candidates = sorted({child for node_children in children for child in node_children})
        return rank_evidence(kept.values(), limit)

    def _find_roots(self, within: Scope | None) -> list[int]:
        passages, summaries = (self._store.keys_within(within, space) for space in (PASSAGES, _TREE))
        if passages is not None and summaries is not None:
            parents, children = read_pairs(self._store, f"made-of:{_TREE}").T
            has_parent = children[np.isin(parents, summaries)]
            keys: list[int] = np.setdiff1d(np.union1d(passages, summaries), has_parent).tolist()
            return keys
        nodes = self._store.nodes(_TREE)
        highest = max((node.level for node in nodes.values()), default=0)
        return [key for key, node in nodes.items() if node.level == highest] or self._store.node_keys(PASSAGES)


def _find_nearest(store: Readable, vector: Vectors, limit: int, within: Scope | None, *spaces: str) -> dict[int, float]:
    """The nodes of each of these spaces that are nearest to a query within a scope, with their cosines."""
    found: dict[int, float] = {}
    for space in spaces:
        nearest = store.nearest(space, vector, limit, among=store.keys_within(within, space))
        found |= pair_scores(nearest.keys, nearest.cosines)
    return found
