"""Recall over the summary tree: all levels as one, or from the top down (RAPTOR, section 3, "Querying")."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tomewise.recall.derived import Grounds
from tomewise.recall.ranking import evidence_of, top
from tomewise.types import Embedder, Evidence

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tomewise.store.sqlite.store import SqliteStore

_TREE = "tree"
_PASSAGES = "passages"
_DECIMALS = 6


class CollapsedTree:
    """Passages and summaries of all levels ranked together by cosine with the query.

    The paper fills a budget of tokens from this ranking and stops at the first text that overflows it. Here the loop
    cuts to its budget (`loops.showing.fitting`) and, a deviation, passes over such a text to what still fits.
    """

    def __init__(self, store: SqliteStore, embedder: Embedder) -> None:
        self._store = store
        self._embedder = embedder
        self._grounds = Grounds(store, _TREE)

    async def retrieve(self, query: str, limit: int) -> list[Evidence]:
        """The `limit` nearest of all; scores are cosines."""
        return await asyncio.to_thread(self._retrieve, query, limit)

    def _retrieve(self, query: str, limit: int) -> list[Evidence]:
        vector = self._embedder.embed([query])[0]
        best: dict[int, float] = {}
        for space in (_PASSAGES, _TREE):
            columns = self._store.vectors(space)
            if len(columns.stored_keys):
                scores = columns.stored_rows @ vector
                scores = scores if columns.live is None else np.where(columns.live, scores, -np.inf)
                places = top(scores, limit)
                best.update(zip(columns.stored_keys[places].tolist(), scores[places].tolist(), strict=True))
        return sorted(_evidence(self._store, self._grounds, best).values(), key=_rank)[:limit]


class TreeTraversal:
    """From the highest level down: at each level the `top_k` nearest of the children of those kept above.

    The way begins at the topmost level that exists, without summaries at the passages. Evidence comes from all levels,
    best first. As in the paper there is no budget of tokens; the loop cuts to its own. A summary that lacks its
    parent, since the call for that failed, is out of reach until the next build.
    """

    def __init__(self, store: SqliteStore, embedder: Embedder, *, top_k: int = 5) -> None:
        self._store = store
        self._embedder = embedder
        self._top_k = top_k
        self._grounds = Grounds(store, _TREE)

    async def retrieve(self, query: str, limit: int) -> list[Evidence]:
        """The best `limit` of all nodes kept on the way down; scores are cosines."""
        return await asyncio.to_thread(self._retrieve, query, limit)

    def _retrieve(self, query: str, limit: int) -> list[Evidence]:
        vector = self._embedder.embed([query])[0]
        kept: dict[int, Evidence] = {}
        candidates = self._roots()
        while candidates:
            found = _evidence(self._store, self._grounds, self._scores(candidates, vector))
            best = dict(sorted(found.items(), key=lambda item: _rank(item[1]))[: self._top_k])
            kept |= best
            candidates = sorted({child for some in self._store.sources(best, _TREE).values() for child in some})
        return sorted(kept.values(), key=_rank)[:limit]

    def _scores(self, candidates: Sequence[int], vector: NDArray[np.float32]) -> dict[int, float]:
        """Cosines of nodes, whichever space their vectors lie in."""
        found: dict[int, float] = {}
        for space in (_PASSAGES, _TREE):
            columns = self._store.vectors(space)
            held = np.isin(columns.keys, candidates)
            if held.any():
                found.update(zip(columns.keys[held].tolist(), (columns.rows[held] @ vector).tolist(), strict=True))
        return found

    def _roots(self) -> list[int]:
        nodes = self._store.nodes(_TREE)
        highest = max((node.level for node in nodes.values()), default=0)
        return [key for key, node in nodes.items() if node.level == highest] or self._store.node_keys(_PASSAGES)


def _evidence(store: SqliteStore, grounds: Grounds, scores: Mapping[int, float]) -> dict[int, Evidence]:
    """Passages and summaries as evidence, by key."""
    passages = store.passages(scores)
    found = {key: evidence_of(passage, round(scores[key], _DECIMALS)) for key, passage in passages.items()}
    summaries = [key for key in scores if key not in passages]
    below = grounds.below(summaries)
    for key, node in store.nodes_at(summaries).items():
        score = round(scores[key], _DECIMALS)
        found[key] = Evidence(node=node.id, layer=_TREE, text=node.text, score=score, sources=below[key])
    return found


def _rank(evidence: Evidence) -> tuple[float, str]:
    return -evidence.score, evidence.node
