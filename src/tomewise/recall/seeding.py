"""From a question to the facts that it hits, and from these to where a walk over the graph starts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from tomewise.calls import NO_CALLS, CallCount
from tomewise.language.roles import FILTER_FACTS, FilterIn
from tomewise.memory.graph.graph_names import GraphNames
from tomewise.recall.array_types import Flags, Floats, Keys, Ranking, Vectors, sort_keys
from tomewise.recall.graph_index import GraphIndex
from tomewise.recall.mentions import find_named_entities
from tomewise.recall.ranking import rank_nodes
from tomewise.run import NOT_RECOGNISED, ask_or_fall_back
from tomewise.store.contract import Readable, Texts
from tomewise.store.lookups import find_nearest
from tomewise.store.nearest import find_known_indices
from tomewise.store.records import PASSAGES
from tomewise.types import LanguageModel, Scope

_EVERY = 10**9  # passages


@dataclass(frozen=True, eq=False)
class Hits:
    """Facts that a question hits, best first: keys, texts, cosines, and scores scaled to 0..1 over all facts
    (of the scope)."""

    keys: Keys
    texts: tuple[str, ...]
    cosines: Floats
    scores: Floats

    def select(self, places: list[int]) -> Hits:
        """The hits at these places, in the order given."""
        return Hits(
            self.keys[places], tuple(self.texts[place] for place in places), self.cosines[places], self.scores[places]
        )


@dataclass(frozen=True)
class NearestFacts:
    """The `limit` facts of one graph nearest to the question (HippoRAG 2 and CogitoRAG, equations 11 and 12).

    In a scope, they are among the facts that a passage within states. With `model`, one call picks those that help
    (HippoRAG 2's recognition memory). If its reply cannot be parsed, all facts are kept. If the reply is empty, none is
    kept, and recall ranks passages by cosine.
    """

    store: Readable
    graph: str
    limit: int = 5
    model: LanguageModel | None = None

    @property
    def calls(self) -> CallCount:
        return CallCount("1", 1) if self.model else NO_CALLS

    async def find_hits(self, query: str, vector: Vectors, within: Scope | None = None) -> Hits:
        """Facts ranked by cosine, ties by id; or those that the model keeps, the most useful first."""
        found = await asyncio.to_thread(self.find_nearest, vector, within)
        if self.model is None or not found.texts:
            return found
        given = FilterIn(question=query, facts=list(found.texts))
        reply = await ask_or_fall_back(self.model, FILTER_FACTS, given, NOT_RECOGNISED)
        if reply is None:
            return found
        return found.select([*dict.fromkeys(number - 1 for number in reply.keep if 1 <= number <= len(found.texts))])

    def find_nearest(self, vector: Vectors, within: Scope | None) -> Hits:
        """Facts ranked by cosine, ties by id."""
        found = find_nearest(self.store, f"facts:{self.graph}", vector, self.limit, within)
        ranked, nodes = rank_nodes(self.store, found.keys, found.cosines.astype(np.float64), self.limit)
        place_of = {key: place for place, key in enumerate(found.keys.tolist())}
        places = np.array([place_of[key] for key in ranked], np.int64)
        texts = tuple(nodes[key].text for key in ranked)
        return Hits(found.keys[places], texts, found.cosines[places].astype(np.float64), found.scale()[places])


@dataclass(frozen=True, eq=False)
class GraphQuestion:
    """A question with its vector and the facts that it hits. Seeds come from what is within its scope."""

    text: str
    vector: Vectors
    hits: Hits
    within: Scope | None = None


Seeding: TypeAlias = Callable[[GraphQuestion, GraphIndex], Ranking]
"""Gives weights to some vertices of the graph. No seeding asks a model."""


def seed_hippo(question: GraphQuestion, index: GraphIndex) -> Ranking:
    """HippoRAG 2: the 5 best entities of the hit facts, by the mean score of their facts; rare ones weigh more.

    See `weigh_hippo_seeds`.
    """
    ends, places = _find_ends(question.hits, index)
    return weigh_hippo_seeds(ends, question.hits.scores[places], index.spread[ends])


def seed_cogito(question: GraphQuestion, index: GraphIndex, *, alpha: float = 2.0, beta: float = 1.0) -> Ranking:
    """CogitoRAG, equations 13 to 15: entities of the hit facts by mean cosine; frequent ones get a reward.

    See `weigh_cogito_seeds`.
    """
    ends, places = _find_ends(question.hits, index)
    return weigh_cogito_seeds(ends, question.hits.cosines[places], index.spread[ends], alpha=alpha, beta=beta)


def seed_mentions(
    store: Texts, names: GraphNames, question: GraphQuestion, index: GraphIndex, *, weight: float = 1.0
) -> Ranking:
    """Ours: entities that the question names (`mentions`); each weighs `weight` / (passages linked to the entity)."""
    keys = sort_keys(find_named_entities(store, names, question.text))
    among = store.keys_within(question.within, names.entities)
    keys = keys if among is None else keys[np.isin(keys, among)]
    vertices = find_known_indices(keys, index.entities)[0]
    return vertices, weight / np.maximum(1, index.spread[vertices])


def seed_passages(
    store: Readable, question: GraphQuestion, index: GraphIndex, *, weight: float = 0.05, keep: int = _EVERY
) -> Ranking:
    """Every passage within (HippoRAG 2), or the `keep` nearest to the question, and their ties.

    The weight is `weight` times the cosine scaled to 0..1 over all within.
    """
    nearest = find_nearest(store, PASSAGES, question.vector, keep, question.within)
    vertices, is_known = find_known_indices(nearest.keys, index.passages)
    return vertices + len(index.entities), weight * nearest.scale()[is_known]


# The facts that a question hits are given as `ends`, int (facts, 2), the subject and the object of each fact as
# vertices, and `coverage`, int (facts, 2), the number of passages that contain the subject and the object.


def weigh_cogito_seeds(ends: Keys, cosines: Floats, coverage: Keys, *, alpha: float, beta: float) -> Ranking:
    """CogitoRAG, equations 13 to 15: the initial activation of each entity of the hit facts.

    The mean cosine of the entity's facts, times 1 + alpha (1 - exp(-beta hits)), divided by the number of passages that
    contain the entity. The paper does not define the case of negative cosines: here they count as 0. A fact whose
    subject and object are the same entity counts once.
    """
    facts = np.repeat(np.arange(len(ends)), 2)
    # One row for each pair of entity and fact: the subject and the object may be the same entity.
    pairs, first = np.unique(np.stack((ends.ravel(), facts)), axis=1, return_index=True)
    entities, place = np.unique(pairs[0], return_inverse=True)
    hits = np.bincount(place)
    evidence = np.bincount(place, weights=np.maximum(cosines, 0)[pairs[1]]) / hits
    passages = np.ones(entities.size)
    np.maximum.at(passages, place, coverage.ravel()[first])
    return _sort_by_weight(entities, evidence * (1 + alpha * (1 - np.exp(-beta * hits))) / passages)


def weigh_hippo_seeds(ends: Keys, scores: Floats, coverage: Keys, *, keep: int = 5) -> Ranking:
    """HippoRAG 2: the weight of each entity of the hit facts, for the `keep` entities of highest weight.

    Each time the entity is the subject or object of a fact gives the fact's score divided by the number of passages
    that contain the entity; the weight is the mean of these. A weight may be 0, where the released code fails.
    """
    parts = np.repeat(scores, 2) / np.maximum(1, coverage.ravel())
    entities, place = np.unique(ends.ravel(), return_inverse=True)
    best, weights = _sort_by_weight(entities, np.bincount(place, weights=parts) / np.bincount(place))
    return best[:keep], weights[:keep]


def _find_ends(hits: Hits, index: GraphIndex) -> tuple[Keys, Flags]:
    """Head and tail of each hit fact that the index has, (facts, 2), and a flag for each hit: whether it has it."""
    places, is_known = find_known_indices(hits.keys, index.facts)
    return np.stack((index.heads[places], index.tails[places]), axis=1), is_known


def _sort_by_weight(entities: Keys, weights: Floats) -> Ranking:
    order = np.lexsort((entities, -weights))
    return entities[order], weights[order]
