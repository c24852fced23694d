"""Recall over derived texts: summaries, windows of a story, gists; and over the summary tree (RAPTOR, section 3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from tomewise.memory.grounds import find_grounds
from tomewise.memory.tree.tree_layer import TreeLayer
from tomewise.recall.array_types import Keys, sort_keys
from tomewise.recall.ranking import PlainSearch, as_evidence, name_in_order, pair_scores, score_by_place
from tomewise.store.contract import Readable
from tomewise.store.lookups import find_nearest, read_pairs, read_sources
from tomewise.store.nearest import DECIMALS
from tomewise.store.records import PASSAGES, list_source_spaces
from tomewise.types import Embedder, Evidence, Layer, PassageId, Scope


class DenseDerived(PlainSearch):
    """Nodes of one layer, ranked by cosine with the query; all levels together (RAPTOR's collapsed tree).

    `layer`, or its name, is that of the nodes, of the space of their vectors, and of the evidence, which is of the kind
    that the layer declares. Its score is the cosine, its sources are the passages from which the node was made. A node
    is within a scope if all of these are.
    """

    _kind = ""
    _beside: tuple[str, ...] = ()  # spaces that are searched too

    def __init__(self, store: Readable, embedder: Embedder, layer: str | Layer) -> None:
        name = layer if isinstance(layer, str) else layer.name
        self._embedder = embedder
        self._nodes = DerivedNodes(store, name, str(getattr(layer, "kind", self._kind)))

    def _search(self, query: str, limit: int, within: Scope | None) -> list[Evidence]:
        vector, nodes = self._embedder.embed([query])[0], self._nodes
        found: dict[int, float] = {}
        for space in (*self._beside, nodes.layer):
            nearest = find_nearest(nodes.store, space, vector, limit, within)
            found |= pair_scores(nearest.keys, nearest.cosines)
        return list(nodes.load_evidence(found, limit).values())


class CollapsedTree(DenseDerived):
    """Passages and summaries of all levels, ranked together by cosine with the query; `layer` has the summaries."""

    _kind = TreeLayer.kind
    _beside = (PASSAGES,)


class DerivedNodes:
    """Nodes of one layer, which were made from passages or from each other, and evidence of this `kind` from them.

    The passages below them are cached until the layer changes.
    """

    def __init__(self, store: Readable, layer: str, kind: str = "") -> None:
        self.store = store
        self.layer = layer
        self.kind = kind
        self._cache: tuple[Mapping[str, int], dict[int, tuple[PassageId, ...]]] = ({}, {})  # versions, passages by node

    def find_passages_below(self, keys: Iterable[int]) -> Mapping[int, tuple[PassageId, ...]]:
        """For each node the passages at the bottom of its tree, however many levels down, in document order."""
        wanted = list(keys)
        versions = self.store.versions(f"edges/{space}" for space in list_source_spaces(self.layer))
        if self._cache[0] != versions:
            self._cache = (versions, {})
        cache = self._cache[1]  # stays correct for `versions` even if another thread now replaces `self._cache`
        below = find_grounds(self.store, [key for key in wanted if key not in cache], self.layer)
        passages = self.store.passages({leaf for leaves in below.values() for leaf in leaves})
        cache |= {key: name_in_order(leaves, passages) for key, leaves in below.items()}
        return {key: cache[key] for key in wanted}

    def find_roots(self, keys: Keys) -> set[int]:
        """Those of these passages and nodes that are below none of these nodes."""
        parents, children = read_pairs(self.store, f"made-of:{self.layer}").T
        return set(np.setdiff1d(keys, children[np.isin(parents, keys)]).tolist())

    def find_children(self, keys: Iterable[int]) -> set[int]:
        """The nodes from which some of these were made."""
        return {child for children in read_sources(self.store, keys, self.layer).values() for child in children}

    def load_evidence(self, scores: Mapping[int, float], limit: int) -> dict[int, Evidence]:
        """The `limit` best of passages and nodes of the layer as evidence by key, best first, ties by id."""
        rounded = {key: round(score, DECIMALS) for key, score in scores.items()}
        passages = self.store.passages(rounded)
        found = {key: as_evidence(passage, rounded[key]) for key, passage in passages.items()}
        nodes = self.store.nodes_at(rounded.keys() - passages.keys())
        sources = self.find_passages_below(nodes)
        for key, node in nodes.items():
            found[key] = Evidence(
                id=node.id,
                layer=self.layer,
                kind=self.kind,
                text=node.text,
                score=rounded[key],
                sources=sources[key],
            )
        return dict(sorted(found.items(), key=lambda item: (-item[1].score, item[1].id))[:limit])


class TreeTraversal(CollapsedTree):
    """From the highest level down: at each level, keep the `top_k` nearest of the children of the nodes kept above.

    The search begins at the highest level that exists; without summaries these are the passages. Evidence comes level
    by level from the top, the nearest of each level first, and its score is 1 / place: the paper concatenates what it
    kept in this order, without a budget of tokens. If the call that should make a parent failed, its children cannot be
    reached until the next build. In a scope, the search begins at all nodes within that have no parent within.
    """

    def __init__(self, store: Readable, embedder: Embedder, layer: str | Layer, *, top_k: int = 5) -> None:
        super().__init__(store, embedder, layer)
        self._top_k = top_k

    def _search(self, query: str, limit: int, within: Scope | None) -> list[Evidence]:
        vector, nodes = self._embedder.embed([query])[0], self._nodes
        kept: dict[int, Evidence] = {}
        candidates = self._find_roots(within)
        while candidates:
            among, scores = sort_keys(candidates), dict[int, float]()
            for space in (PASSAGES, nodes.layer):
                scores |= pair_scores(*nodes.store.scores(space, vector, among=among))
            best = nodes.load_evidence(scores, self._top_k)
            kept |= best
            candidates = nodes.find_children(best)
        return score_by_place([*kept.values()], limit)

    def _find_roots(self, within: Scope | None) -> set[int]:
        store, layer = self._nodes.store, self._nodes.layer
        passages, summaries = (store.keys_within(within, space) for space in (PASSAGES, layer))
        if passages is not None and summaries is not None:
            return self._nodes.find_roots(np.union1d(passages, summaries))
        nodes = store.nodes(layer)
        highest = max((node.level for node in nodes.values()), default=0)
        return {key for key, node in nodes.items() if node.level == highest} or {*store.node_keys(PASSAGES)}
