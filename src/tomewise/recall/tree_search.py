"""Recall over the summary tree: all levels together, or from the top down (RAPTOR, section 3, "Querying")."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tomewise.calls import NO_CALLS
from tomewise.memory.tree.tree_layer import TreeLayer
from tomewise.recall.derived import Grounds
from tomewise.recall.ranking import as_evidence
from tomewise.store.lookups import read_edges, read_sources
from tomewise.types import Embedder, Evidence, Scope

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tomewise.store.contract import Readable

_TREE = TreeLayer.name
_PASSAGES = "passages"
_DECIMALS = 6


class CollapsedTree:
    """Passages and summaries of all levels, ranked together by cosine with the query; `layer` has the summaries.

    The paper fills a budget of tokens from this ranking and stops at the first text that does not fit. Deviation: here
    the loop fills its own budget, and it skips such a text and continues with texts that fit.
    """

    calls = NO_CALLS

    def __init__(self, store: Readable, embedder: Embedder, layer: str = _TREE) -> None:
        self._store = store
        self._embedder = embedder
        self._layer = layer
        self._grounds = Grounds(store, layer)

    async def retrieve(self, query: str, limit: int, *, within: Scope | None = None) -> list[Evidence]:
        """The `limit` nearest passages and summaries; scores are cosines."""
        return await asyncio.to_thread(self._retrieve, query, limit, within)

    def _retrieve(self, query: str, limit: int, within: Scope | None) -> list[Evidence]:
        vector = self._embedder.embed([query])[0]
        best: dict[int, float] = {}
        for space in (_PASSAGES, self._layer):
            nearest = self._store.nearest(space, vector, limit, among=self._store.keys_within(within, space))
            best.update(zip(nearest.keys.tolist(), nearest.cosines.tolist(), strict=True))
        return sorted(_load_evidence(self._store, self._grounds, best, self._layer).values(), key=_rank)[:limit]


class TreeTraversal:
    """From the highest level down: at each level, keep the `top_k` nearest of the children of the nodes kept above.

    The search begins at the highest level that exists; without summaries these are the passages. Evidence comes from
    all levels, best first. As in the paper, this has no budget of tokens; the loop applies its own. If the call that
    should make a parent failed, its children cannot be reached until the next build. In a scope, the search begins at
    all nodes within that have no parent within.
    """

    calls = NO_CALLS

    def __init__(self, store: Readable, embedder: Embedder, *, top_k: int = 5) -> None:
        self._store = store
        self._embedder = embedder
        self._top_k = top_k
        self._grounds = Grounds(store, _TREE)

    async def retrieve(self, query: str, limit: int, *, within: Scope | None = None) -> list[Evidence]:
        """The best `limit` of all nodes kept on the way down; scores are cosines."""
        return await asyncio.to_thread(self._retrieve, query, limit, within)

    def _retrieve(self, query: str, limit: int, within: Scope | None) -> list[Evidence]:
        vector = self._embedder.embed([query])[0]
        kept: dict[int, Evidence] = {}
        candidates = self._find_roots(within)
        while candidates:
            found = _load_evidence(self._store, self._grounds, self._score_nodes(candidates, vector), _TREE)
            best = dict(sorted(found.items(), key=lambda item: _rank(item[1]))[: self._top_k])
            kept |= best
            children = read_sources(self._store, best, _TREE).values()
            candidates = sorted({child for node_children in children for child in node_children})
        return sorted(kept.values(), key=_rank)[:limit]

    def _score_nodes(self, candidates: Sequence[int], vector: NDArray[np.float32]) -> dict[int, float]:
        """Cosines of the candidates, which may be passages or summaries."""
        found: dict[int, float] = {}
        for space in (_PASSAGES, _TREE):
            keys, cosines = self._store.scores(space, vector, among=np.array(sorted(candidates), np.int64))
            found.update(zip(keys.tolist(), cosines.tolist(), strict=True))
        return found

    def _find_roots(self, within: Scope | None) -> list[int]:
        passages, summaries = (self._store.keys_within(within, space) for space in (_PASSAGES, _TREE))
        if passages is not None and summaries is not None:
            parents, children = read_edges(self._store, f"made-of:{_TREE}").rows[:, :2].astype(np.int64).T
            has_parent = children[np.isin(parents, summaries)]
            keys: list[int] = np.setdiff1d(np.union1d(passages, summaries), has_parent).tolist()
            return keys
        nodes = self._store.nodes(_TREE)
        highest = max((node.level for node in nodes.values()), default=0)
        return [key for key, node in nodes.items() if node.level == highest] or self._store.node_keys(_PASSAGES)


def _load_evidence(store: Readable, grounds: Grounds, scores: Mapping[int, float], layer: str) -> dict[int, Evidence]:
    """Passages and summaries as evidence, by key."""
    passages = store.passages(scores)
    found = {key: as_evidence(passage, round(scores[key], _DECIMALS)) for key, passage in passages.items()}
    summaries = [key for key in scores if key not in passages]
    sources = grounds.find_passages_below(summaries)
    for key, node in store.nodes_at(summaries).items():
        score = round(scores[key], _DECIMALS)
        found[key] = Evidence(
            node=node.id, layer=layer, kind=TreeLayer.kind, text=node.text, score=score, sources=sources[key]
        )
    return found


def _rank(evidence: Evidence) -> tuple[float, str]:
    return -evidence.score, evidence.node
