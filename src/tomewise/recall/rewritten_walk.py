"""Passages by the mass of a walk, then by rewrites of the question, then by how much of the question they cover."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tomewise.calls import CallCount, read_calls
from tomewise.recall.array_types import Flags, Floats, Keys, Ranking
from tomewise.recall.diffusion import Diffusion, ReachedPassages, complete_evidence
from tomewise.recall.rewriting import FindLeads, Rewriter, list_content_words, put_first, sort_ranking
from tomewise.store.contract import Readable
from tomewise.store.lookups import read_vectors
from tomewise.store.nearest import find_top
from tomewise.store.records import PASSAGES
from tomewise.text.words import stem
from tomewise.types import Evidence, Scope

_LEAST = np.finfo(np.float64).tiny  # in place of a score of 0, which has no logarithm
_LIFTED = 2000  # passages of the greatest mass that are ranked and compared with rewrites


@dataclass(frozen=True, eq=False)
class RewrittenWalk:
    """Ours: a passage's score is its mass relative to the greatest, plus its lift (`rewriting.Rewriter`).

    The first passages of the walk lead to the rewrites. `coverage` then orders the best again. What is first without
    lifts stays first (`rewriting.put_first`). If the walk reaches nothing, passages are ranked by cosine, and nothing
    is rewritten.
    """

    store: Readable
    diffusion: Diffusion
    find_leads: FindLeads
    rewriter: Rewriter
    coverage: Coverage

    @property
    def calls(self) -> CallCount:
        return read_calls(self.diffusion)

    async def retrieve(self, query: str, limit: int, *, within: Scope | None = None) -> list[Evidence]:
        """The `limit` best passages; scores are relative to the best, or cosine - 1 for what nothing led to."""
        return await asyncio.to_thread(self._rank, query, await self.diffusion.spread(query, within), limit)

    def _rank(self, query: str, reached: ReachedPassages, limit: int) -> list[Evidence]:
        if not len(reached.keys):
            return complete_evidence(self.store, reached, reached.keys, reached.masses, limit)
        most = find_top(reached.masses, max(limit, _LIFTED))
        keys, masses = sort_ranking(reached.keys[most], reached.masses[most])
        # Rewrites are compared with what the walk reached best; where that is all, with every passage.
        among = np.sort(keys) if len(keys) < len(reached.keys) else reached.among
        first = self.store.passages(keys[: self.rewriter.rewriting.passages].tolist())
        leads = self.find_leads(query, reached.vector, first)
        lifts = self.rewriter.find_lifts(query, reached.vector, leads, among)
        walked, lifted = self.coverage.reorder(query, [(keys, masses), sort_ranking(*lifts.add_to(keys, masses))])
        keys, scores = put_first(walked[0][0], lifted)
        brought = lifts.select_brought(walked[0].tolist(), keys[:limit].tolist())
        found = replace(reached, keys=keys, masses=scores)
        return complete_evidence(self.store, found, keys[:limit], scores[:limit], limit, brought)


@dataclass(frozen=True, eq=False)
class Coverage:
    """Ours: the best `reach` passages are chosen again, one after another, by score and by new words of the question.

    The next passage is that with the greatest log(score / best score) + `weight` * sum of idf(w), over the content
    words w of the question that it holds and no chosen passage does. idf(w) = log(1 + P / (1 + df(w))), where df(w) of
    P passages hold w, scaled to sum 1 over the question. What holds a word is what the lexical index finds by it.
    """

    store: Readable
    weight: float = 1.0
    reach: int = 30

    def reorder(self, question: str, rankings: Sequence[Ranking]) -> list[Ranking]:
        """Several rankings for one question, each best first, in their new order.

        The new scores are relative to the first one's. The index is asked once for each word.
        """
        words = {stem(word): word for word in list_content_words(question)} if self.weight else {}
        reached = np.unique(np.concatenate([keys[: self.reach] for keys, _ in rankings]))
        holders = self.store.find_holders(words.values(), reached)
        holds = np.array([np.isin(reached, found) for _, found in holders], np.bool_).reshape(-1, len(reached))
        passages = len(read_vectors(self.store, PASSAGES).keys)
        weights = self.weight * weigh_words([count for count, _ in holders], passages)
        return [
            self._choose(ranking, holds[:, np.searchsorted(reached, ranking[0][: self.reach])], weights)
            for ranking in rankings
        ]

    def _choose(self, ranking: Ranking, holds: Flags, weights: Floats) -> Ranking:
        keys, scores = ranking
        scores = np.maximum(scores / scores[0], _LEAST)
        order, values = choose_covering(np.log(scores[: self.reach]), holds, weights)
        values = np.concatenate((np.exp(values), scores[self.reach :]))
        return np.concatenate((keys[order], keys[self.reach :])), values / values[0]


def weigh_words(counts: Sequence[int], passages: int) -> Floats:
    """The idf of words that so many of the `passages` hold, scaled to sum 1."""
    idf = np.log(1 + passages / (1 + np.array(counts, np.float64)))
    return np.asarray(idf / idf.sum()) if len(idf) else idf


def choose_covering(scores: Floats, holds: Flags, weights: Floats) -> tuple[Keys, Floats]:
    """The order in which passages are chosen, and the value of each at that moment, which never rises.

    `scores` (n,) are logarithms, `holds` (w, n) says which passage holds which word, `weights` (w,) is of words.
    """
    left = np.ones(len(scores), np.bool_)
    open_weights = weights.copy()
    order, values = [], []
    for _ in range(len(scores)):
        worth = np.where(left, scores + open_weights @ holds, -np.inf)
        best = int(worth.argmax())
        order.append(best)
        values.append(float(worth[best]))
        left[best] = False
        open_weights[holds[:, best]] = 0
    return np.array(order, np.int64), np.array(values)
