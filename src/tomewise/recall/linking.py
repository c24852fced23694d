"""From a question to the facts it hits."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from tomewise.calls import NO_CALLS, CallCount, read_calls, sum_calls
from tomewise.errors import BadReply, Refused
from tomewise.language.roles import FILTER_FACTS, FilterIn
from tomewise.recall.ranking import pair_scores, rank_keys
from tomewise.run import NOT_RECOGNISED, record_fallback
from tomewise.types import LanguageModel, Scope

if TYPE_CHECKING:
    from tomewise.recall.array_types import Floats, Keys, Vectors
    from tomewise.store.contract import Readable


@dataclass(frozen=True, slots=True, eq=False)
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


class NearestFacts:
    """The `limit` facts of one graph nearest to the question (HippoRAG 2 and CogitoRAG, equations 11 and 12)."""

    calls = NO_CALLS

    def __init__(self, store: Readable, graph: str, *, limit: int = 5) -> None:
        self._store = store
        self._space = f"facts:{graph}"
        self._limit = limit

    async def find_hits(self, query: str, vector: Vectors, within: Scope | None = None) -> Hits:
        """Facts ranked by cosine, ties by id."""
        return await asyncio.to_thread(self._find_nearest, vector, within)

    def _find_nearest(self, vector: Vectors, within: Scope | None) -> Hits:
        among = self._store.keys_within(within, self._space)
        found = self._store.nearest(self._space, vector, self._limit, among=among)
        cosines = pair_scores(found.keys, found.cosines)
        nodes = self._store.nodes_at(cosines)
        ranked = rank_keys(cosines, nodes, self._limit)
        place_of = {key: place for place, key in enumerate(found.keys.tolist())}
        places = np.array([place_of[key] for key in ranked], np.int64)
        texts = tuple(nodes[key].text for key in ranked)
        return Hits(found.keys[places], texts, found.cosines[places].astype(np.float64), found.scale()[places])


class RecognisedFacts:
    """The facts found that a model recognises as useful (HippoRAG 2's recognition memory).

    If the reply cannot be parsed, all facts are kept. If the reply is empty, none is kept, and recall ranks passages by
    cosine.
    """

    def __init__(self, linking: Linking, model: LanguageModel) -> None:
        self._linking = linking
        self._model = model

    @property
    def calls(self) -> CallCount:
        return sum_calls([CallCount("1", 1), read_calls(self._linking)])

    async def find_hits(self, query: str, vector: Vectors, within: Scope | None = None) -> Hits:
        """The facts that the model keeps, the most useful first."""
        found = await self._linking.find_hits(query, vector, within)
        if not found.texts:
            return found
        try:
            reply = await self._model.ask(FILTER_FACTS, FilterIn(question=query, facts=list(found.texts)))
        except (BadReply, Refused):
            record_fallback(NOT_RECOGNISED)
            return found
        kept = dict.fromkeys(number - 1 for number in reply.keep if 1 <= number <= len(found.texts))
        return found.select(list(kept))
