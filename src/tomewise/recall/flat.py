"""Flat recall over passages: dense, lexical, and a fusion of both."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tomewise.calls import CallCount, read_calls, sum_calls
from tomewise.recall.ranking import PlainSearch, as_evidence, rank_evidence, rank_passages
from tomewise.store.contract import Readable, Texts
from tomewise.store.records import PASSAGES
from tomewise.types import Embedder, Evidence, Retriever, Scope


@dataclass(frozen=True, eq=False)
class Dense(PlainSearch):
    """Passages ranked by cosine with the query, which is their score: one exact matrix product over all vectors."""

    store: Readable
    embedder: Embedder

    def _search(self, query: str, limit: int, within: Scope | None) -> list[Evidence]:
        vector = self.embedder.embed([query])[0]
        among = self.store.keys_within(within)
        found = self.store.nearest(PASSAGES, vector, limit, among=among)
        return rank_passages(self.store, found.keys, found.cosines, limit)


@dataclass(frozen=True, eq=False)
class Lexical(PlainSearch):
    """Passages ranked by BM25 over stemmed words, which is their score."""

    store: Readable

    def _search(self, query: str, limit: int, within: Scope | None) -> list[Evidence]:
        # 16 more than asked for, so that ties at the limit are broken by id and not by the order of insertion.
        found = dict(self.store.lexical(query, limit + 16, within=within))
        return rank_passages(self.store, list(found), found.values(), limit)


@dataclass(frozen=True, eq=False)
class Fused:
    """Several retrievers joined by reciprocal rank fusion (Cormack, Clarke and Buettcher, SIGIR 2009; k = 60).

    A piece of evidence gets 1 / (k + rank) from each retriever, where ranks count from 1. Each retriever gives `depth`
    pieces.
    """

    retrievers: Sequence[Retriever]
    k: int = 60
    depth: int = 100

    @property
    def calls(self) -> CallCount:
        """The calls of a question."""
        return sum_calls(map(read_calls, self.retrievers))

    async def retrieve(self, query: str, limit: int, *, within: Scope | None = None) -> list[Evidence]:
        """The `limit` best pieces over all retrievers; scores are sums of reciprocal ranks."""
        depth = max(limit, self.depth)
        lists = await asyncio.gather(
            *(retriever.retrieve(query, depth, within=within) for retriever in self.retrievers)
        )
        scores: dict[str, float] = defaultdict(float)
        found: dict[str, Evidence] = {}
        for ranking in lists:
            for rank, evidence in enumerate(ranking, start=1):
                scores[evidence.node] += 1 / (self.k + rank)
                found[evidence.node] = evidence
        return rank_evidence((replace(piece, score=scores[node]) for node, piece in found.items()), limit)


@dataclass(frozen=True, eq=False)
class Everything(PlainSearch):
    """All passages in document order; earlier passages score higher. This is the baseline without retrieval."""

    store: Texts

    def _search(self, query: str, limit: int, within: Scope | None) -> list[Evidence]:
        keys = np.array(self.store.node_keys(PASSAGES), np.int64)
        among = self.store.keys_within(within)
        if among is not None:
            keys = keys[np.isin(keys, among)]
        passages = self.store.passages(keys[:limit].tolist()).values()
        return [as_evidence(passage, 1 / rank) for rank, passage in enumerate(passages, start=1)]
