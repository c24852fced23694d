"""Flat recall over passages: dense, lexical, and both fused."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tomewise.recall.ranking import evidence_of, ranked, top
from tomewise.types import Embedder, Evidence, Retriever

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tomewise.store.sqlite.store import SqliteStore

PASSAGES = "passages"


class Dense:
    """Passages by cosine with the query: one exact product over all vectors."""

    def __init__(self, store: SqliteStore, embedder: Embedder) -> None:
        self._store = store
        self._embedder = embedder

    async def retrieve(self, query: str, limit: int) -> list[Evidence]:
        """The `limit` nearest passages; scores are cosines."""
        return await asyncio.to_thread(self._retrieve, query, limit)

    def _retrieve(self, query: str, limit: int) -> list[Evidence]:
        vector = self._embedder.embed([query])[0]
        columns = self._store.vectors(PASSAGES)
        if not len(columns.stored_keys):
            return []
        scores: NDArray[np.float32] = columns.stored_rows @ vector
        if columns.live is not None:
            scores = np.where(columns.live, scores, -np.inf)
        best = top(scores, limit)
        return ranked(self._store, columns.stored_keys[best].tolist(), scores[best].tolist(), limit)


class Lexical:
    """Passages by BM25 over stemmed words."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store

    async def retrieve(self, query: str, limit: int) -> list[Evidence]:
        """The `limit` best passages; scores are BM25, higher is better."""
        return await asyncio.to_thread(self._retrieve, query, limit)

    def _retrieve(self, query: str, limit: int) -> list[Evidence]:
        # A few more, so that a tie at the cut is broken by id and not by the order of insertion.
        found = self._store.lexical(query, limit + 16)
        return ranked(self._store, [key for key, _ in found], [score for _, score in found], limit)


class Fused:
    """Several retrievers joined by reciprocal rank fusion (Cormack, Clarke and Buettcher, SIGIR 2009; k = 60).

    Each list gives 1 / (k + rank) to what it ranks, rank counted from 1; each is asked for `depth` pieces of evidence.
    """

    def __init__(self, retrievers: Sequence[Retriever], *, k: int = 60, depth: int = 100) -> None:
        self._retrievers = tuple(retrievers)
        self._k = k
        self._depth = depth

    async def retrieve(self, query: str, limit: int) -> list[Evidence]:
        """The `limit` best of all lists; scores are sums of reciprocal ranks."""
        depth = max(limit, self._depth)
        lists = await asyncio.gather(*(retriever.retrieve(query, depth) for retriever in self._retrievers))
        scores: dict[str, float] = defaultdict(float)
        found: dict[str, Evidence] = {}
        for some in lists:
            for rank, evidence in enumerate(some, start=1):
                scores[evidence.node] += 1 / (self._k + rank)
                found[evidence.node] = evidence
        best = sorted(found, key=lambda node: (-scores[node], node))[:limit]
        return [replace(found[node], score=scores[node]) for node in best]


class Everything:
    """All passages in document order, the first ones scoring highest: what a reader without a memory would take."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store

    async def retrieve(self, query: str, limit: int) -> list[Evidence]:
        """The first `limit` passages of the tome."""
        passages = list((await asyncio.to_thread(self._store.passages)).values())
        return [evidence_of(passage, 1 / rank) for rank, passage in enumerate(passages[:limit], start=1)]
