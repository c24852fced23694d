"""Flat recall over passages: dense, lexical, and a fusion of both."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tomewise.calls import CallCount, read_calls, sum_calls
from tomewise.recall.ranking import PlainSearch, as_evidence, rank_evidence, rank_passages
from tomewise.store.records import PASSAGES
from tomewise.types import Embedder, Evidence, Retriever, Scope

if TYPE_CHECKING:
    from tomewise.store.contract import Readable, Texts


class Dense(PlainSearch):
    """Passages ranked by cosine with the query, which is their score: one exact matrix product over all vectors."""

    def __init__(self, store: Readable, embedder: Embedder) -> None:
        self._store = store
        self._embedder = embedder

    def _search(self, query: str, limit: int, within: Scope | None) -> list[Evidence]:
        vector = self._embedder.embed([query])[0]
        among = self._store.keys_within(within)
        found = self._store.nearest(PASSAGES, vector, limit, among=among)
        return rank_passages(self._store, found.keys, found.cosines, limit)


class Lexical(PlainSearch):
    """Passages ranked by BM25 over stemmed words, which is their score."""

    def __init__(self, store: Readable) -> None:
        self._store = store

    def _search(self, query: str, limit: int, within: Scope | None) -> list[Evidence]:
        # 16 more than asked for, so that ties at the limit are broken by id and not by the order of insertion.
        found = dict(self._store.lexical(query, limit + 16, within=within))
        return rank_passages(self._store, list(found), found.values(), limit)


class Fused:
    """Several retrievers joined by reciprocal rank fusion (Cormack, Clarke and Buettcher, SIGIR 2009; k = 60).

    A piece of evidence gets 1 / (k + rank) from each retriever, where ranks count from 1. Each retriever gives `depth`
    pieces.
    """

    def __init__(self, retrievers: Sequence[Retriever], *, k: int = 60, depth: int = 100) -> None:
        self._retrievers = tuple(retrievers)
        self._k = k
        self._depth = depth

    @property
    def calls(self) -> CallCount:
        """The calls of a question."""
        return sum_calls(map(read_calls, self._retrievers))

    async def retrieve(self, query: str, limit: int, *, within: Scope | None = None) -> list[Evidence]:
        """The `limit` best pieces over all retrievers; scores are sums of reciprocal ranks."""
        depth = max(limit, self._depth)
        lists = await asyncio.gather(
            *(retriever.retrieve(query, depth, within=within) for retriever in self._retrievers)
        )
        scores: dict[str, float] = defaultdict(float)
        found: dict[str, Evidence] = {}
        for ranking in lists:
            for rank, evidence in enumerate(ranking, start=1):
                scores[evidence.id] += 1 / (self._k + rank)
                found[evidence.id] = evidence
        return rank_evidence((replace(piece, score=scores[node]) for node, piece in found.items()), limit)


class Everything(PlainSearch):
    """All passages in document order; earlier passages score higher. This is the baseline without retrieval."""

    def __init__(self, store: Texts) -> None:
        self._store = store

    def _search(self, query: str, limit: int, within: Scope | None) -> list[Evidence]:
        keys = np.array(self._store.node_keys(PASSAGES), np.int64)
        among = self._store.keys_within(within)
        if among is not None:
            keys = keys[np.isin(keys, among)]
        passages = self._store.passages(keys[:limit].tolist()).values()
        return [as_evidence(passage, 1 / rank) for rank, passage in enumerate(passages, start=1)]
