"""Recall over a graph of relations by keywords of two levels (LightRAG, section 3.2)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

import numpy as np

from tomewise.calls import NO_CALLS, CallCount
from tomewise.errors import BadReply, Refused
from tomewise.fallbacks import NO_KEYWORDS, record_fallback
from tomewise.language.roles import KEYWORDS, KeywordsIn
from tomewise.memory.graph.graph_names import FACT, GraphNames
from tomewise.recall.entity_graph import EntityGraph, FoundEntity
from tomewise.recall.ranking import as_evidence, take_turns
from tomewise.recall.relation_pairs import Pairs
from tomewise.store.lookups import find_keys, name_sources
from tomewise.store.nearest import DECIMALS, find_top
from tomewise.store.records import PASSAGES
from tomewise.types import Embedder, Evidence, LanguageModel, Passage, Scope

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tomewise.store.contract import Readable

    Keys = NDArray[np.int64]
    Vector = NDArray[np.float32]

Mode: TypeAlias = Literal["mix", "hybrid", "local", "global"]
Measure: TypeAlias = Callable[[Sequence[Evidence]], list[int]]  # the tokens that each piece takes in a prompt
_LEVELS = {"mix": ("local", "global"), "hybrid": ("local", "global"), "local": ("local",), "global": ("global",)}
T = TypeVar("T")
ENTITY = "entity"  # the kind of evidence that entities are
_NEAREST = 40  # entities of the details, relations of the themes
_PASSAGES = 20  # passages of a context
_SHORTEST = 15  # tokens that a relation takes at least
_SHOWN = 3  # what so many passages say of a relation is shown
_OF_ENTITIES, _OF_RELATIONS = 0.2, 0.27  # shares of the context: 6000 and 8000 of 30000 tokens
_PER_ITEM = 2.5  # passages for each entity, and for each relation, on average


@dataclass(frozen=True, slots=True)
class Keywords:
    """The texts to search with: that of the details, and that of the themes."""

    details: str
    themes: str


class KeywordGraph:
    """Passages, relations and entities that keywords of the question find in a graph of relations.

    The details find entities, and all of their relations, those of the best connected entities first; the themes find
    relations, and their ends. `mode` says which of them search: `local` the details, `global` the themes, `hybrid`
    both in turn; with `mix` the question itself finds passages too. What the entities and relations rest on that have
    room, passages nearest to the question first, takes turns with these. A relation is a pair of entities with all
    that passages say of it; its weight is the number of these passages.

    `room` is the tokens of all evidence, counted by `measure`: a fifth for entities, 27 of 100 for relations, the rest
    for passages. Without `keywords` no model is asked, and the question itself searches. It also searches for a level
    that got no keywords, which is counted as a fallback; the mode stays.

    Deviations: an entity, or a relation, is as near as the nearest text that a passage has of it, and shows the three
    nearest to the question; no least cosine, as it would differ by embedder; passages come first, so that loops with a
    small limit get these.
    """

    def __init__(
        self,
        store: Readable,
        embedder: Embedder,
        model: LanguageModel,
        names: GraphNames,
        measure: Measure,
        *,
        mode: Mode = "mix",
        keywords: bool = True,
        room: int = 6000,
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._model = model
        self._names = names
        self._measure = measure
        self._mode: Mode = mode
        self._keywords = keywords
        self._room = room
        self._graph = EntityGraph(store, names)

    @property
    def calls(self) -> CallCount:
        return CallCount("1", 1) if self._keywords else NO_CALLS

    async def retrieve(self, query: str, limit: int, *, within: Scope | None = None) -> list[Evidence]:
        """The first `limit` of the passages, relations and entities that have room, in this order."""
        if not limit:
            return []
        keywords = await self._find_keywords(query)
        found = await asyncio.to_thread(self._search, query, keywords, within or Scope())
        return [replace(piece, score=1 / place) for place, piece in enumerate(found[:limit], start=1)]

    async def _find_keywords(self, query: str) -> Keywords:
        if not self._keywords:
            return Keywords(query, query)
        try:
            reply = await self._model.ask(KEYWORDS, KeywordsIn(question=query))
        except (BadReply, Refused):
            record_fallback(NO_KEYWORDS)
            return Keywords(query, query)
        details, themes = (", ".join(filter(None, level)) for level in (reply.details, reply.themes))
        needed = {"local": details, "global": themes}
        for _ in (level for level in _LEVELS[self._mode] if not needed[level]):
            record_fallback(NO_KEYWORDS)
        return Keywords(details or query, themes or query)

    def _search(self, query: str, keywords: Keywords, within: Scope) -> list[Evidence]:
        question, details, themes = self._embedder.embed([query, keywords.details, keywords.themes])
        pairs = Pairs.read(self._store, self._names, within)
        levels = _LEVELS[self._mode]
        local = self._graph.find_nearest(details, _NEAREST, within) if "local" in levels else []
        near = [entity.id for entity in local]
        room = int(_OF_RELATIONS * self._room)
        of_entities = pairs.rank_at(find_keys(self._store, near).values(), room // _SHORTEST)
        of_themes = pairs.rank_near(themes, _NEAREST) if "global" in levels else []
        relations = self._keep_fitting(self._make_relations(pairs, merge([of_entities, of_themes]), question), room)
        order = merge([near, pairs.list_ends(of_themes)])
        entities = self._make_entities(self._graph.describe(order, question, within), within)
        entities = self._keep_fitting(entities, int(_OF_ENTITIES * self._room))
        passages = self._choose_passages(question, entities, relations, within)
        used = sum(self._measure([*entities, *relations]))
        return [*self._keep_fitting(passages, self._room - used), *relations, *entities]

    def _keep_fitting(self, pieces: Sequence[Evidence], room: int) -> list[Evidence]:
        """The first pieces, up to the first one without room."""
        fits = np.cumsum([0, *self._measure(pieces)])[1:] <= room
        return [piece for piece, has_room in zip(pieces, fits, strict=True) if has_room]

    def _choose_passages(
        self, question: Vector, entities: Sequence[Evidence], relations: Sequence[Evidence], within: Scope
    ) -> list[Evidence]:
        """The first 20 of the passages that the question finds, and of those below the entities and the relations."""
        of_question = self._rank_passages(question, self._store.keys_within(within), _PASSAGES)
        of_entities = self._rank_below(question, entities, ())
        of_relations = self._rank_below(question, relations, of_entities)
        lists = [of_entities, of_relations] if self._mode != "mix" else [of_question, of_entities, of_relations]
        scores = {key: cosine for ranking in lists for key, cosine in ranking.items()}
        order = merge([list(ranking) for ranking in lists])[:_PASSAGES]
        return [as_evidence(passage, scores[key]) for key, passage in self._store.passages(order).items()]

    def _rank_below(self, question: Vector, items: Sequence[Evidence], without: Iterable[int]) -> dict[int, float]:
        """The passages below these items that are nearest to the question: 5 for each two items."""
        below = find_keys(self._store, {source for item in items for source in item.sources}).values()
        among = np.array(sorted(set(below).difference(without)), np.int64)
        return self._rank_passages(question, among, int(_PER_ITEM * len(items)))

    def _rank_passages(self, question: Vector, among: Keys | None, limit: int) -> dict[int, float]:
        """The passages nearest to the question with their cosines, best first, ties by id."""
        keys, scores = self._store.scores(PASSAGES, question, among=among)
        best = find_top(scores, limit)
        nearest = dict(zip(keys[best].tolist(), scores[best].round(DECIMALS).tolist(), strict=True))
        passages = self._store.passages(nearest)  # for their ids
        ranked = sorted(passages, key=lambda key: (-nearest[key], passages[key].id))[:limit]
        return {key: nearest[key] for key in ranked}

    def _make_entities(self, found: Sequence[FoundEntity], within: Scope) -> list[Evidence]:
        keys = find_keys(self._store, (entity.id for entity in found))
        sources = name_sources(self._store, keys.values(), self._names.entities, within)
        return [
            Evidence(
                node=entity.id,
                layer="entities",
                kind=ENTITY,
                title=_name_entity(entity) if entity.text else "",
                text=entity.text or entity.name,
                score=0.0,
                sources=below,
            )
            for entity in found
            if (below := sources.get(keys.get(entity.id, -1)))
        ]

    def _make_relations(self, pairs: Pairs, order: Sequence[int], question: Vector) -> list[Evidence]:
        """Relations as evidence: what is nearest to the question of what passages say, with all of these passages."""
        facts, passages = pairs.list_facts(order), pairs.list_passages(order)
        among = np.array(sorted(fact for of_pair in facts.values() for fact in of_pair), np.int64)
        keys, scores = self._store.scores(self._names.facts, question, among=among)
        cosines = dict(zip(keys.tolist(), scores.round(DECIMALS).tolist(), strict=True))
        nodes = self._store.nodes_at(cosines)
        below = self._store.passages({key for of_pair in passages.values() for key in of_pair})
        found = []
        for number in order:
            ranked = sorted(
                (key for key in facts[number] if key in nodes), key=lambda key: (-cosines[key], nodes[key].id)
            )
            sources = sorted((below[key] for key in passages[number] if key in below), key=_find_place)
            if not ranked or not sources:
                continue  # removed after the search
            data = [nodes[key].data for key in ranked[:_SHOWN]]
            texts = dict.fromkeys(each["description"] for each in data if each["description"])
            found.append(
                Evidence(
                    node=nodes[ranked[0]].id,
                    layer="facts",
                    kind=FACT,
                    title=f"{data[0]['head']}, {data[0]['tail']}" if texts else "",
                    text="\n".join(texts) or nodes[ranked[0]].text,
                    score=0.0,
                    sources=tuple(passage.id for passage in sources),
                )
            )
        return found


def merge(lists: Sequence[Sequence[T]]) -> list[T]:
    """The first of each list, then the second of each, and so on; each once."""
    return list(dict.fromkeys(take_turns(lists)))


def _name_entity(entity: FoundEntity) -> str:
    return f"{entity.name} ({entity.type})" if entity.type else entity.name


def _find_place(passage: Passage) -> tuple[str, int]:
    return passage.document, passage.position
