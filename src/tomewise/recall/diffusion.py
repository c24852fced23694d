"""Diffusion recall: from the facts that a question hits through the graph to passages (HippoRAG 2; CogitoRAG, 4.3).

Ours ranks by the mass of a walk, then by rewrites of the question, then by how much of the question passages cover.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import chain

import numpy as np
from numpy.typing import ArrayLike

from tomewise.calls import CallCount, read_calls, sum_calls
from tomewise.language.roles import DECOMPOSE, DecomposeIn
from tomewise.recall.array_types import Flags, Floats, Keys, Ranking, Vectors
from tomewise.recall.graph_index import GraphIndex, GraphIndexes
from tomewise.recall.ranking import NO_REWRITES, drop_repeats, rank_evidence, rank_passages, score_by_place
from tomewise.recall.rewriting import Rewriter, list_content_words, put_first, sort_ranking
from tomewise.recall.seeding import GraphQuestion, NearestFacts, Seeding
from tomewise.recall.walk import CsrGraph, VisitedNodes, Walk
from tomewise.run import NO_WALK, NOT_DECOMPOSED, ask_or_fall_back, record_fallback
from tomewise.store.contract import Readable
from tomewise.store.lookups import read_vectors
from tomewise.store.nearest import find_top
from tomewise.store.records import PASSAGES
from tomewise.text.words import stem
from tomewise.types import Embedder, Evidence, LanguageModel, NodeId, Retriever, Rewrite, Scope

_LEAST = np.finfo(np.float64).tiny  # in place of a score of 0, which has no logarithm
_LIFTED = 2000  # passages of the greatest mass that are ranked and compared with rewrites


@dataclass(frozen=True, eq=False)
class ReachedPassages:
    """The passages that a question's walk reached, in no order; empty if no fact was hit.

    `masses` are divided by the greatest mass, since masses are tiny on a large graph. `vector` is the question's.
    `among` are the keys of the passages within its scope, None for all.
    """

    keys: Keys
    masses: Floats
    vector: Vectors
    among: Keys | None


def walk_one_step(index: GraphIndex, vertices: Keys, weights: Floats, *, among: Flags) -> VisitedNodes:
    """Without diffusion (CogitoRAG, table 8): one step of equation 16, so mass moves along at most one edge.

    A seed passage keeps the `restart` share of its mass. A seed entity passes the other share on to its neighbours.
    """
    graph, restart = index.walk.graph, index.walk.restart
    mass = np.zeros(len(index.is_passage))
    is_passage = index.is_passage[vertices]
    np.add.at(mass, vertices[is_passage], restart * weights[is_passage])
    entities, moved_mass = vertices[~is_passage], (1 - restart) * weights[~is_passage]
    for vertex, weight in zip(entities.tolist(), moved_mass.tolist(), strict=True):  # few: the ends of the hit facts
        row = slice(graph.indptr[vertex], graph.indptr[vertex + 1])
        if row.start < row.stop:
            mass[graph.indices[row]] += weight * graph.weights[row] / graph.weights[row].sum()
    reached = np.flatnonzero(among & (mass > 0))
    return VisitedNodes(reached.astype(np.int32), mass[reached].astype(np.float32))


@dataclass(frozen=True)
class Diffusion:
    """Passages ranked by the mass that a walk from the question's seeds brings to them.

    The seeds are those of all `seedings` together; weights on the same vertex add up. They spread until the mass has
    settled, or with `one_step` as in `walk_one_step`. If the question hits no fact there are no seeds, and passages are
    ranked by cosine alone, which is recorded as a fallback. If the walk reaches fewer passages than the limit, the
    nearest of the other passages follow.

    In a scope, the seeds are facts, entities and passages within it, and only passages within it are returned. The mass
    itself flows through the whole graph, since what connects two passages may lie in a third.
    """

    store: Readable
    embedder: Embedder
    indexes: GraphIndexes
    linking: NearestFacts
    seedings: Sequence[Seeding]
    one_step: bool = False

    @property
    def calls(self) -> CallCount:
        return self.linking.calls

    async def retrieve(self, query: str, limit: int, *, within: Scope | None = None) -> list[Evidence]:
        """The `limit` best passages; scores are relative to the best, or cosine - 1 for what nothing led to."""
        # The first question loads an embedder, an index and compiled code: load them concurrently.
        (vector,), index, _ = await asyncio.gather(
            asyncio.to_thread(self.embedder.embed, [query]),
            asyncio.to_thread(self.indexes.current),
            asyncio.to_thread(_load_walk),
        )
        among = await asyncio.to_thread(self.store.keys_within, within) if within else None
        hits = await self.linking.find_hits(query, vector, within)
        question = GraphQuestion(query, vector, hits, within)
        reached = await asyncio.to_thread(self._walk, question, index, among)
        if not len(reached.keys):
            record_fallback(NO_WALK)
        return await asyncio.to_thread(self._rank, query, reached, limit)

    def _walk(self, question: GraphQuestion, index: GraphIndex, among: Keys | None) -> ReachedPassages:
        """All passages among these that the walk from this question reaches."""
        keys, masses = np.empty(0, np.int64), np.empty(0)
        if len(question.hits.keys):
            seeds = [seed(question, index) for seed in self.seedings]
            vertices, weights = (np.concatenate(parts) for parts in zip(*seeds, strict=True))
            if weights.sum() > 0:
                walk = partial(walk_one_step, index) if self.one_step else index.walk.push
                visited = walk(vertices, weights, among=index.flag_passages(among))
                keys = index.passages[visited.nodes - len(index.entities)]
                masses = visited.values.astype(np.float64)
        return ReachedPassages(keys, masses / masses.max(initial=0), question.vector, among)

    def _rank(self, query: str, reached: ReachedPassages, limit: int) -> list[Evidence]:
        return self._complete(reached, reached.keys, reached.masses, limit)

    def _complete(
        self,
        reached: ReachedPassages,
        keys: Keys,
        scores: Floats,
        limit: int,
        rewrites: Mapping[int, Rewrite] = NO_REWRITES,
    ) -> list[Evidence]:
        """The best passages; if they are fewer than `limit`, the nearest of those within not reached follow."""
        found = rank_passages(self.store, keys, scores, limit, rewrites)
        if len(found) >= limit:
            return found
        wanted = limit - len(found) + len(reached.keys)
        nearest = self.store.nearest(PASSAGES, reached.vector, wanted, among=reached.among)
        is_other = ~np.isin(nearest.keys, reached.keys)
        lowered = 1 if len(reached.keys) else 0  # so that these scores are below those of all passages reached
        others = nearest.keys[is_other], nearest.cosines[is_other] - lowered
        found += rank_passages(self.store, *others, limit - len(found))
        return rank_evidence(found)


@dataclass(frozen=True, kw_only=True)
class CogniRank(Diffusion):
    """The best passages of the diffusion, ranked by mass and cosine together (CogitoRAG, equations 17 and 18).

    Scores are S(p), 0 to 1. `blend` is the paper's epsilon. `candidates` is the size of P_c; the paper does not give
    it, the released code has 200.
    """

    blend: float = 0.95
    candidates: int = 200

    def _rank(self, query: str, reached: ReachedPassages, limit: int) -> list[Evidence]:
        candidates = find_top(reached.masses, max(self.candidates, limit))
        keys, masses = reached.keys[candidates], reached.masses[candidates]
        order = np.argsort(keys)
        known, cosines = self.store.scores(PASSAGES, reached.vector, among=keys[order])
        exists = order[np.isin(keys[order], known)]  # a passage may have been removed since
        scores = self.blend * scale_scores(masses[exists]) + (1 - self.blend) * scale_scores(cosines)
        return self._complete(reached, keys[exists], scores, limit)


def scale_scores(scores: ArrayLike, delta: float = 1e-12) -> Floats:
    """CogitoRAG, equation 17: (x - min) / (max - min + delta); equal scores become 0."""
    x = np.asarray(scores, dtype=np.float64)
    return (x - x.min()) / (x.max() - x.min() + delta) if x.size else x


@dataclass(frozen=True, kw_only=True)
class RewrittenWalk(Diffusion):
    """Ours: a passage's score is its mass relative to the greatest, plus its lift (`rewriting.Rewriter`).

    The first passages of the walk lead to the rewrites. `coverage` then orders the best again. What is first without
    lifts stays first (`rewriting.put_first`). If the walk reaches nothing, passages are ranked by cosine, and nothing
    is rewritten.
    """

    rewriter: Rewriter
    coverage: WordCoverage

    def _rank(self, query: str, reached: ReachedPassages, limit: int) -> list[Evidence]:
        if not len(reached.keys):
            return super()._rank(query, reached, limit)
        most = find_top(reached.masses, max(limit, _LIFTED))
        keys, masses = sort_ranking(reached.keys[most], reached.masses[most])
        # Rewrites are compared with what the walk reached best; where that is all, with every passage.
        among = np.sort(keys) if len(keys) < len(reached.keys) else reached.among
        lifts = self.rewriter.find_lifts(query, reached.vector, keys[: self.rewriter.rewriting.passages], among)
        walked, lifted = self.coverage.reorder(query, [(keys, masses), sort_ranking(*lifts.add_to(keys, masses))])
        keys, scores = put_first(walked[0][0], lifted)
        brought = lifts.select_brought(walked[0].tolist(), keys[:limit].tolist())
        found = replace(reached, keys=keys)
        return self._complete(found, keys[:limit], scores[:limit], limit, brought)


@dataclass(frozen=True)
class DecomposedRecall:
    """Recall for each part of a question, merged so that every part gives passages (CogitoRAG, section 4.3.1).

    `shown` pieces are to be shown, for which `merge_rankings` reserves. A question that the model does not split, or
    whose reply cannot be used, is searched as a whole.
    """

    retriever: Retriever
    model: LanguageModel
    shown: int = 5
    parts: int = 2

    @property
    def calls(self) -> CallCount:
        return sum_calls([CallCount("1", 1), read_calls(self.retriever).repeat(self.parts)])

    async def retrieve(self, query: str, limit: int, *, within: Scope | None = None) -> list[Evidence]:
        """The `limit` best over all parts. Of a question in parts, the score is 1 / place."""
        parts = await self._decompose(query)
        most = max(limit, self.shown) if limit else 0
        rankings = await asyncio.gather(*(self.retriever.retrieve(part, most, within=within) for part in parts))
        if len(rankings) == 1:
            return rankings[0][:limit]
        return score_by_place(merge_rankings(rankings, self.shown), limit)

    async def _decompose(self, query: str) -> Sequence[str]:
        given = DecomposeIn(question=query, limit=self.parts)
        reply = await ask_or_fall_back(self.model, DECOMPOSE, given, NOT_DECOMPOSED)
        parts = list(dict.fromkeys(part for part in reply.subqueries if part))[: self.parts] if reply else []
        return parts if len(parts) > 1 else [query]


def merge_rankings(rankings: Sequence[Sequence[Evidence]], shown: int) -> list[Evidence]:
    """One ranking from those of several sub-questions, each best first (CogitoRAG, section 4.3.1, the rule 2+2+1).

    For m sub-questions and K = `shown` pieces that are to be shown: in turn, each sub-question gives its best piece
    that is not yet taken, until each has given max(1, (K - 1) // m). All others follow by their best score, ties by id.
    """
    taken: dict[NodeId, Evidence] = {}
    queues = [iter(ranking) for ranking in rankings]
    for _ in range(max(1, (shown - 1) // max(1, len(rankings)))):
        for queue in queues:
            fresh = next((piece for piece in queue if piece.id not in taken), None)
            if fresh is not None:
                taken[fresh.id] = fresh
    return drop_repeats([*taken.values(), *rank_evidence(chain(*rankings))])


@cache
def _load_walk() -> None:
    """Load the compiled kernels by walking on a graph of two nodes; the first call takes half a second."""
    Walk(CsrGraph.from_edges(2, [0], [1], [1.0])).push([0], [1.0])


@dataclass(frozen=True)
class WordCoverage:
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
