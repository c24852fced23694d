"""Diffusion recall: from the facts that a question hits through the graph to passages (HippoRAG 2; CogitoRAG, 3.3).

Ours ranks by the mass of a walk, then by rewrites of the question, then by how much of the question passages cover.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from tomewise.calls import CallCount, read_calls, sum_calls
from tomewise.errors import BadReply, Refused
from tomewise.fallbacks import NO_WALK, NOT_DECOMPOSED, record_fallback
from tomewise.language.roles import DECOMPOSE, DecomposeIn
from tomewise.recall.array_types import Flags, Floats, Keys, Ranking, Vectors
from tomewise.recall.cognirank import merge_rankings, score_passages
from tomewise.recall.graph_index import GraphIndex, GraphIndexes
from tomewise.recall.ranking import rank_evidence, rank_passages
from tomewise.recall.rewriting import FindLeads, Rewriter, list_content_words, put_first, sort_ranking
from tomewise.recall.seeding import GraphQuestion, Linking, Seeding
from tomewise.recall.walk import CsrGraph, VisitedNodes, Walk
from tomewise.store.contract import Readable
from tomewise.store.lookups import read_vectors
from tomewise.store.nearest import find_top
from tomewise.store.records import PASSAGES
from tomewise.text.words import stem
from tomewise.types import Embedder, Evidence, LanguageModel, Retriever, Rewrite, Scope

_LEAST = np.finfo(np.float64).tiny  # in place of a score of 0, which has no logarithm
_LIFTED = 2000  # passages of the greatest mass that are ranked and compared with rewrites


# From an index, the seeds and their weights to the mass at those passages for which the last array has a flag.
Spreading = Callable[["GraphIndex", "Keys", "Floats", "Flags"], VisitedNodes]
_ASKING = re.compile(r"\b(?:who|whom|whose|what|which|when|where|why|how|did|does)\b", re.IGNORECASE)
# Words that join two things or compare them. Without any, a question has one part, however long.
_JOINING = re.compile(
    r"\b(?:and|or|nor|both|either|neither|versus|vs|than|between|same|different|differ\w*|compar\w*|besides|also|plus"
    r"|respectively|in common|as well as|other)\b|[&/;:]|\?[^\w?]*+\w",
    re.IGNORECASE,
)
_MOST_COMMAS = 1  # a list has more


@dataclass(frozen=True, eq=False)
class ReachedPassages:
    """The passages that a question's walk reached, in no order; empty if no fact was hit.

    `masses` are divided by the greatest mass, since masses are tiny on a large graph. `vector` is the question's.
    `among` are the keys of the passages within its scope, None for all.
    """

    keys: Keys
    masses: Floats
    vector: Vectors
    among: Keys | None = None


def walk_to_end(index: GraphIndex, vertices: Keys, weights: Floats, is_wanted: Flags) -> VisitedNodes:
    """Walk until the mass has settled."""
    return index.walk.push(vertices, weights, among=is_wanted)


def walk_one_step(index: GraphIndex, vertices: Keys, weights: Floats, is_wanted: Flags) -> VisitedNodes:
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
    reached = np.flatnonzero(is_wanted & (mass > 0))
    return VisitedNodes(reached.astype(np.int32), mass[reached].astype(np.float32))


@dataclass(frozen=True)
class Diffusion:
    """Passages ranked by the mass that a walk from the question's seeds brings to them.

    If the question hits no fact there are no seeds, and passages are ranked by cosine alone. If the walk reaches fewer
    passages than the limit, the nearest of the other passages follow.

    In a scope, the seeds are facts, entities and passages within it, and only passages within it are returned. The mass
    itself flows through the whole graph, since what connects two passages may lie in a third.
    """

    store: Readable
    embedder: Embedder
    indexes: GraphIndexes
    linking: Linking
    seeding: Seeding
    spreading: Spreading = walk_to_end

    @property
    def calls(self) -> CallCount:
        return read_calls(self.linking)

    async def retrieve(self, query: str, limit: int, *, within: Scope | None = None) -> list[Evidence]:
        """The `limit` best passages; scores are masses relative to the best, or cosine - 1 if the walk missed them."""
        reached = await self.spread(query, within)
        best = find_top(reached.masses, limit)
        return await asyncio.to_thread(
            complete_evidence, self.store, reached, reached.keys[best], reached.masses[best], limit
        )

    async def spread(self, query: str, within: Scope | None = None) -> ReachedPassages:
        """All passages within that the walk from this question reaches. If there are none, this records a fallback."""
        reached = await self._walk(query, within)
        if not len(reached.keys):
            record_fallback(NO_WALK)
        return reached

    async def _walk(self, query: str, within: Scope | None) -> ReachedPassages:
        # The first question loads an embedder, an index and compiled code: load them concurrently.
        (vector,), index, _ = await asyncio.gather(
            asyncio.to_thread(self.embedder.embed, [query]),
            asyncio.to_thread(self.indexes.current),
            asyncio.to_thread(_load_walk),
        )
        among = await asyncio.to_thread(self.store.keys_within, within) if within else None
        nowhere = ReachedPassages(np.empty(0, np.int64), np.empty(0), vector, among)
        hits = await self.linking.find_hits(query, vector, within)
        if not len(hits.keys):
            return nowhere
        question = GraphQuestion(query, vector, hits, within)
        vertices, weights = await asyncio.to_thread(self.seeding.find_seeds, question, index)
        if not weights.sum() > 0:
            return nowhere
        visited = await asyncio.to_thread(self.spreading, index, vertices, weights, _flag_passages(index, among))
        if not visited.nodes.size:
            return nowhere
        masses = visited.values.astype(np.float64)
        keys = index.passages[visited.nodes - len(index.entities)]
        return ReachedPassages(keys, masses / masses.max(), vector, among)


@dataclass(frozen=True)
class CogniRank:
    """The best passages of the diffusion, ranked by mass and cosine together (CogitoRAG, equations 17 and 18).

    `blend` is the paper's epsilon. `candidates` is the size of P_c; the paper does not give it, the released code has
    200.
    """

    store: Readable
    diffusion: Diffusion
    blend: float = 0.95
    candidates: int = 200

    @property
    def calls(self) -> CallCount:
        return read_calls(self.diffusion)

    async def retrieve(self, query: str, limit: int, *, within: Scope | None = None) -> list[Evidence]:
        """The `limit` best passages; scores are S(p), 0 to 1, or cosine - 1 if the walk missed the passage."""
        return await asyncio.to_thread(self._rank, await self.diffusion.spread(query, within), limit)

    def _rank(self, reached: ReachedPassages, limit: int) -> list[Evidence]:
        candidates = find_top(reached.masses, max(self.candidates, limit))
        keys, masses = reached.keys[candidates], reached.masses[candidates]
        order = np.argsort(keys)
        known, cosines = self.store.scores(PASSAGES, reached.vector, among=keys[order])
        exists = order[np.isin(keys[order], known)]  # a passage may have been removed since
        scores = score_passages(masses[exists], cosines, blend=self.blend)
        best = find_top(scores, limit)
        return complete_evidence(self.store, reached, keys[exists][best], scores[best], limit)


@dataclass(frozen=True)
class DecomposedRecall:
    """Recall for each part of a question, merged so that every part gives passages (CogitoRAG, section 3.3).

    `cognirank.merge_rankings` generalises the rule 2 + 2 + 1, which is for two parts and five passages. A question that
    the model cannot decompose is searched as a whole. Ours: so is a single clause, without a call (`has_one_clause`).
    """

    retriever: Retriever
    model: LanguageModel
    parts: int = 2

    @property
    def calls(self) -> CallCount:
        return sum_calls([CallCount("1", 1), read_calls(self.retriever).repeat(self.parts)])

    async def retrieve(self, query: str, limit: int, *, within: Scope | None = None) -> list[Evidence]:
        """The `limit` best passages over all parts; each passage has its best score."""
        parts = await self._decompose(query)
        rankings = await asyncio.gather(*(self.retriever.retrieve(part, limit, within=within) for part in parts))
        if len(rankings) == 1:
            return rankings[0]
        found = {piece.id: piece for ranking in reversed(rankings) for piece in ranking}
        best = merge_rankings([[(piece.id, piece.score) for piece in ranking] for ranking in rankings], limit)
        return [replace(found[node], score=score) for node, score in best]

    async def _decompose(self, query: str) -> Sequence[str]:
        if has_one_clause(query):
            return [query]
        try:
            reply = await self.model.ask(DECOMPOSE, DecomposeIn(question=query, limit=self.parts))
        except (BadReply, Refused):
            record_fallback(NOT_DECOMPOSED)
            return [query]
        parts = list(dict.fromkeys(part for part in reply.subqueries if part))[: self.parts]
        return parts if len(parts) > 1 else [query]


def has_one_clause(question: str) -> bool:
    """Whether nothing in a question in English joins or compares two things, so that there is nothing to split.

    It looks at words and marks alone, so it errs towards False: that costs a call. It is False for a question that has
    none of the English question words, since the joining words of other languages are not known here. Relative clauses
    count as part of their clause: a question that leads from one thing to the next is not split either.
    """
    return bool(_ASKING.search(question)) and question.count(",") <= _MOST_COMMAS and not _JOINING.search(question)


def _flag_passages(index: GraphIndex, among: Keys | None) -> Flags:
    """A flag for each vertex: whether it is a passage with one of these keys, or any passage for None."""
    if among is None:
        return index.is_passage
    is_wanted = np.zeros_like(index.is_passage)
    is_wanted[len(index.entities) :] = np.isin(index.passages, among)
    return is_wanted


@cache
def _load_walk() -> None:
    """Load the compiled kernels by walking on a graph of two nodes; the first call takes half a second."""
    Walk(CsrGraph.from_edges(2, [0], [1], [1.0])).push([0], [1.0])


def complete_evidence(
    store: Readable,
    reached: ReachedPassages,
    keys: Keys,
    scores: Floats,
    limit: int,
    rewrites: Mapping[int, Rewrite] | None = None,
) -> list[Evidence]:
    """The best passages; if they are fewer than `limit`, the nearest of those within that were not reached follow."""
    found = rank_passages(store, keys, scores, limit, rewrites)
    if len(found) >= limit:
        return found
    wanted = limit - len(found) + len(reached.keys)
    nearest = store.nearest(PASSAGES, reached.vector, wanted, among=reached.among)
    other_keys, other_scores = nearest.keys, nearest.cosines
    if len(reached.keys):
        not_reached = ~np.isin(other_keys, reached.keys)
        # Minus 1, so that these scores are below those of all passages reached.
        other_keys, other_scores = other_keys[not_reached], other_scores[not_reached] - 1
    best = find_top(other_scores, limit - len(found))
    found += rank_passages(store, other_keys[best], other_scores[best], limit - len(found))
    return rank_evidence(found)


@dataclass(frozen=True)
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


@dataclass(frozen=True)
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
