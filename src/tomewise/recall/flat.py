"""Flat recall over passages: dense, lexical, a fusion of both, and the recall of `hybrid`."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tomewise.calls import CallCount, read_calls, sum_calls
from tomewise.recall.array_types import Floats, Keys, Vectors
from tomewise.recall.ranking import PlainSearch, as_evidence, rank_evidence, rank_passages
from tomewise.recall.rewriting import Rewriter, Rewriting, put_first, sort_ranking
from tomewise.store.contract import Readable, Texts
from tomewise.store.lookups import find_nearest
from tomewise.store.records import PASSAGES
from tomewise.types import Embedder, Evidence, Retriever, Scope

REWRITING = Rewriting(weight=0.8, passages=2)
WORDS = 0.2  # the weight of BM25 beside the cosine
_FEW = 20  # passages that hold what a query names to the letter, for which that decides
_DEPTH = 200  # passages that each of the two rankings gives
_LEADING = 5  # passages among which leads are looked for


@dataclass(frozen=True)
class Dense(PlainSearch):
    """Passages ranked by cosine with the query, which is their score: one exact matrix product over all vectors."""

    store: Readable
    embedder: Embedder

    def _search(self, query: str, limit: int, within: Scope | None) -> list[Evidence]:
        vector = self.embedder.embed([query])[0]
        found = find_nearest(self.store, PASSAGES, vector, limit, within)
        return rank_passages(self.store, found.keys, found.cosines, limit)


@dataclass(frozen=True)
class Lexical(PlainSearch):
    """Passages ranked by BM25 over stemmed words, which is their score."""

    store: Readable

    def _search(self, query: str, limit: int, within: Scope | None) -> list[Evidence]:
        # 16 more than asked for, so that ties at the limit are broken by id and not by the order of insertion.
        found = np.array(self.store.lexical(query, limit + 16, within=within)).reshape(-1, 2)
        return rank_passages(self.store, found[:, 0].astype(np.int64), found[:, 1], limit)


@dataclass(frozen=True)
class Fused:
    """Several `retrievers` joined by reciprocal rank fusion (Cormack, Clarke and Buettcher, SIGIR 2009, with k = 60).

    A piece of evidence gets 1 / (`k` + rank) from each retriever, where ranks count from 1. Each retriever gives
    `depth` pieces.
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
                scores[evidence.id] += 1 / (self.k + rank)
                found[evidence.id] = evidence
        return rank_evidence((replace(piece, score=scores[node]) for node, piece in found.items()), limit)


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class Summed(PlainSearch):
    """A passage's score is its cosine, plus `words` * BM25 / (the greatest BM25), plus its lift (`rewriting.Rewriter`).

    Each code and each quoted phrase of the query that it holds adds 1, if few passages hold it.

    What words do not find among the best has a BM25 of 0. The best passage without lifts stays first, since the source
    of a name would else come after what the name leads to. Scores are -1 to 1 + `words`, and up to the weight of
    rewriting more with it.
    """

    store: Readable
    embedder: Embedder
    rewriter: Rewriter
    words: float = WORDS

    def _search(self, query: str, limit: int, within: Scope | None) -> list[Evidence]:
        vector = self.embedder.embed([query])[0]
        among = self.store.keys_within(within)
        depth = max(limit, _DEPTH)
        by_words = dict(self.store.lexical(query, depth, within=within))
        if greatest := max(by_words.values(), default=0.0):
            by_words = {key: self.words * score / greatest for key, score in by_words.items()}
        for key, count in self.store.exact(query, _FEW, within=within).items():
            by_words[key] = by_words.get(key, 0.0) + count
        near = self.store.nearest(PASSAGES, vector, depth, among=among).keys
        keys, scores = self._score(np.union1d(near, list(by_words)).astype(np.int64), vector, by_words)
        ranked, sums = sort_ranking(keys, scores)
        lifts = self.rewriter.find_lifts(query, vector, ranked[:_LEADING], among)
        if not len(lifts.keys):
            return rank_passages(self.store, ranked, sums, limit)
        lifted = lifts.add_to(*self._score(np.union1d(keys, lifts.keys), vector, by_words))
        keys, scores = put_first(ranked[0], sort_ranking(*lifted))
        brought = lifts.select_brought(ranked.tolist(), keys[:limit].tolist())
        return rank_passages(self.store, keys[:limit], scores[:limit], limit, brought)

    def _score(self, keys: Keys, vector: Vectors, by_words: Mapping[int, float]) -> tuple[Keys, Floats]:
        """The passages among `keys` that exist, ascending, and their scores without lifts."""
        known, cosines = self.store.scores(PASSAGES, vector, among=keys)
        return known, cosines.astype(np.float64) + np.array([by_words.get(key, 0.0) for key in known.tolist()])
