"""From a question to the facts it hits."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tomewise.calls import NO_CALLS, CallCount, read_calls, sum_calls
from tomewise.errors import BadReply, Refused
from tomewise.fallbacks import NOT_RECOGNISED, record_fallback
from tomewise.language.roles import FILTER_FACTS, FilterIn
from tomewise.recall.array_types import Floats, Keys, Vectors
from tomewise.recall.ranking import pair_scores, rank_keys
from tomewise.store.contract import Readable
from tomewise.types import LanguageModel, Scope


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


class Linking(Protocol):
    """Finds the facts that a question hits; in a scope, among the facts that a passage within states."""

    async def find_hits(self, query: str, vector: Vectors, within: Scope | None = None) -> Hits: ...


@dataclass(frozen=True, eq=False)
class NearestFacts:
    """The `limit` facts of one graph nearest to the question (HippoRAG 2 and CogitoRAG, equations 11 and 12)."""

    calls = NO_CALLS

    store: Readable
    graph: str
    limit: int = 5

    async def find_hits(self, query: str, vector: Vectors, within: Scope | None = None) -> Hits:
        """Facts ranked by cosine, ties by id."""
        return await asyncio.to_thread(self._find_nearest, vector, within)

    def _find_nearest(self, vector: Vectors, within: Scope | None) -> Hits:
        space = f"facts:{self.graph}"
        among = self.store.keys_within(within, space)
        found = self.store.nearest(space, vector, self.limit, among=among)
        cosines = pair_scores(found.keys, found.cosines)
        nodes = self.store.nodes_at(cosines)
        ranked = rank_keys(cosines, nodes, self.limit)
        place_of = {key: place for place, key in enumerate(found.keys.tolist())}
        places = np.array([place_of[key] for key in ranked], np.int64)
        texts = tuple(nodes[key].text for key in ranked)
        return Hits(found.keys[places], texts, found.cosines[places].astype(np.float64), found.scale()[places])


@dataclass(frozen=True, eq=False)
class RecognisedFacts:
    """The facts found that a model recognises as useful (HippoRAG 2's recognition memory).

    If the reply cannot be parsed, all facts are kept. If the reply is empty, none is kept, and recall ranks passages by
    cosine.
    """

    linking: Linking
    model: LanguageModel

    @property
    def calls(self) -> CallCount:
        return sum_calls([CallCount("1", 1), read_calls(self.linking)])

    async def find_hits(self, query: str, vector: Vectors, within: Scope | None = None) -> Hits:
        """The facts that the model keeps, the most useful first."""
        found = await self.linking.find_hits(query, vector, within)
        if not found.texts:
            return found
        try:
            reply = await self.model.ask(FILTER_FACTS, FilterIn(question=query, facts=list(found.texts)))
        except (BadReply, Refused):
            record_fallback(NOT_RECOGNISED)
            return found
        kept = dict.fromkeys(number - 1 for number in reply.keep if 1 <= number <= len(found.texts))
        return found.select(list(kept))
