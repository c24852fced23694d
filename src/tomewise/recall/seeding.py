"""Where a walk over the graph starts: entities and passages with their weights."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from tomewise.memory.graph.graph_names import GraphNames
from tomewise.recall.cognirank import Seeds, weigh_cogito_seeds, weigh_hippo_seeds
from tomewise.recall.graph_index import GraphIndex
from tomewise.recall.linking import Hits
from tomewise.recall.mentions import find_named_entities
from tomewise.store.nearest import find_known_indices
from tomewise.store.records import PASSAGES
from tomewise.types import Scope

if TYPE_CHECKING:
    from tomewise.recall.array_types import Flags, Keys, Vectors
    from tomewise.store.contract import Readable, Texts


@dataclass(frozen=True, slots=True, eq=False)
class GraphQuestion:
    """A question with its vector and the facts that it hits. Seeds come from what is within its scope."""

    text: str
    vector: Vectors
    hits: Hits
    within: Scope | None = None


class Seeding(Protocol):
    """Weights for some vertices of the graph."""

    async def find_seeds(self, question: GraphQuestion, index: GraphIndex) -> Seeds: ...


class HippoSeeds:
    """HippoRAG 2: the `keep` best entities of the hit facts, by the mean score of their facts; rare ones weigh more."""

    def __init__(self, *, keep: int = 5) -> None:
        self._keep = keep

    async def find_seeds(self, question: GraphQuestion, index: GraphIndex) -> Seeds:
        """See `cognirank.weigh_hippo_seeds`."""
        ends, places = _find_ends(question.hits, index)
        return weigh_hippo_seeds(ends, question.hits.scores[places], index.spread[ends], keep=self._keep)


class CogitoSeeds:
    """CogitoRAG, equations 13 to 15: entities of the hit facts by mean cosine; frequent ones get a reward."""

    def __init__(self, *, alpha: float = 2.0, beta: float = 1.0) -> None:
        self._alpha = alpha
        self._beta = beta

    async def find_seeds(self, question: GraphQuestion, index: GraphIndex) -> Seeds:
        """See `cognirank.weigh_cogito_seeds`."""
        ends, places = _find_ends(question.hits, index)
        return weigh_cogito_seeds(
            ends, question.hits.cosines[places], index.spread[ends], alpha=self._alpha, beta=self._beta
        )


class MentionSeeds:
    """Ours: entities that the question names (`mentions`); each weighs `weight` / (passages linked to the entity)."""

    def __init__(self, store: Texts, names: GraphNames, *, weight: float = 1.0) -> None:
        self._store = store
        self._names = names
        self._weight = weight

    async def find_seeds(self, question: GraphQuestion, index: GraphIndex) -> Seeds:
        """The entities named; calls no model."""
        named = await asyncio.to_thread(find_named_entities, self._store, self._names, question.text)
        keys = np.array(sorted(named), np.int64)
        among = await asyncio.to_thread(self._store.keys_within, question.within, self._names.entities)
        keys = keys if among is None else keys[np.isin(keys, among)]
        vertices = find_known_indices(keys, index.entities)[0]
        return vertices, self._weight / np.maximum(1, index.spread[vertices])


class PassageSeeds:
    """The `keep` passages nearest to the question; the weight is `weight` times the cosine scaled to 0..1 over all.

    HippoRAG 2 seeds every passage (its weight is 0.05). Passages beyond the first few hundred only add nearly equal
    mass everywhere, and make a local walk visit the whole graph.
    """

    def __init__(self, store: Readable, *, weight: float = 0.05, keep: int = 200) -> None:
        self._store = store
        self._weight = weight
        self._keep = keep

    async def find_seeds(self, question: GraphQuestion, index: GraphIndex) -> Seeds:
        """The nearest passages; calls no model."""
        return await asyncio.to_thread(self._find_nearest, question, index)

    def _find_nearest(self, question: GraphQuestion, index: GraphIndex) -> Seeds:
        """The passages nearest to the question, and their ties; cosines are scaled to 0..1 over all within."""
        among = self._store.keys_within(question.within)
        nearest = self._store.nearest(PASSAGES, question.vector, self._keep, among=among)
        vertices, is_known = find_known_indices(nearest.keys, index.passages)
        return vertices + len(index.entities), self._weight * nearest.scale()[is_known]


class SumOfSeeds:
    """The seeds of several seedings together; weights on the same vertex add up."""

    def __init__(self, parts: Sequence[Seeding]) -> None:
        self._parts = tuple(parts)

    async def find_seeds(self, question: GraphQuestion, index: GraphIndex) -> Seeds:
        """The seeds of all parts; a vertex may occur several times, since the walk adds its weights up."""
        found = await asyncio.gather(*(part.find_seeds(question, index) for part in self._parts))
        return np.concatenate([vertices for vertices, _ in found]), np.concatenate([weights for _, weights in found])


def _find_ends(hits: Hits, index: GraphIndex) -> tuple[Keys, Flags]:
    """Head and tail of each hit fact that the index has, (facts, 2), and a flag for each hit: whether it has it."""
    places, is_known = find_known_indices(hits.keys, index.facts)
    return np.stack((index.heads[places], index.tails[places]), axis=1), is_known
