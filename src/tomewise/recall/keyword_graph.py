"""Recall over a graph of relations by keywords of two levels (LightRAG, section 3.2)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar

import numpy as np

from tomewise.calls import NO_CALLS, CallCount
from tomewise.language.roles import KEYWORDS, KeywordsIn
from tomewise.memory.graph.fact_ends import read_fact_ends
from tomewise.memory.graph.graph_names import GraphNames
from tomewise.recall.array_types import Floats, Keys, Vectors, join_keys, sort_keys
from tomewise.recall.entity_graph import EntityGraph, FoundEntity, make_entity, make_relation
from tomewise.recall.ranking import (
    Measure,
    as_evidence,
    name_in_order,
    pair_scores,
    rank_keys,
    rank_nodes,
    score_by_place,
    take_fitting,
    take_turns,
)
from tomewise.run import NO_KEYWORDS, ask_or_fall_back, record_fallback
from tomewise.store.contract import Readable
from tomewise.store.lookups import find_keys, name_sources, read_pairs
from tomewise.store.nearest import DECIMALS, find_known_indices, find_top
from tomewise.store.records import PASSAGES, name_source_space
from tomewise.types import Embedder, Evidence, LanguageModel, Scope

Mode: TypeAlias = Literal["mix", "hybrid", "local", "global"]
_LEVELS = {"mix": ("local", "global"), "hybrid": ("local", "global"), "local": ("local",), "global": ("global",)}
T = TypeVar("T")
_NEAREST = 40  # entities of the details, relations of the themes
_PASSAGES = 20  # passages of a context
_SHORTEST = 15  # tokens that a relation takes at least
_SHOWN = 3  # what so many passages say of a relation is shown
_OF_ENTITIES, _OF_RELATIONS = 0.2, 0.27  # shares of the context: 6000 and 8000 of 30000 tokens
_PER_ITEM = 2.5  # passages for each entity, and for each relation, on average


@dataclass(frozen=True)
class KeywordGraph:
    """Passages, relations and entities that keywords of the question find in a graph of relations.

    The details find entities, and all of their relations, those of the best connected entities first; the themes find
    relations, and their ends. `mode` says which of them search: `local` the details, `global` the themes, `hybrid`
    both in turn, as in the paper; with `mix`, which the released code added, the question itself finds passages too.
    What the entities and relations rest on that have room, passages nearest to the question first, takes turns with
    these. A relation is a pair of entities with all that passages say of it; its weight is the number of these
    passages.

    `room` is the tokens of all evidence, counted by `measure`: a fifth for entities, 27 of 100 for relations, the rest
    for passages. Without `keywords` no model is asked, and the question itself searches. It also searches for a level
    that got no keywords, which is counted as a fallback; the mode stays.

    Deviations: an entity, or a relation, is as near as the nearest text that a passage has of it, and shows the three
    nearest to the question; no least cosine, as it would differ by embedder; passages come first, so that loops with a
    small limit get these.
    """

    store: Readable
    embedder: Embedder
    model: LanguageModel
    names: GraphNames
    measure: Measure
    mode: Mode = "hybrid"
    keywords: bool = True
    room: int = 6000

    @property
    def calls(self) -> CallCount:
        return CallCount("1", 1) if self.keywords else NO_CALLS

    async def retrieve(self, query: str, limit: int, *, within: Scope | None = None) -> list[Evidence]:
        """The first `limit` of the passages, relations and entities that have room, in this order."""
        if not limit:
            return []
        details, themes = await self._find_keywords(query)
        found = await asyncio.to_thread(self._search, query, details, themes, within or Scope())
        return score_by_place(found, limit)

    async def _find_keywords(self, query: str) -> tuple[str, str]:
        """The texts to search with: that of the details, and that of the themes."""
        if not self.keywords:
            return query, query
        reply = await ask_or_fall_back(self.model, KEYWORDS, KeywordsIn(question=query), NO_KEYWORDS)
        if reply is None:
            return query, query
        words = {"local": ", ".join(filter(None, reply.details)), "global": ", ".join(filter(None, reply.themes))}
        for level in _LEVELS[self.mode]:
            if not words[level]:
                record_fallback(NO_KEYWORDS)
        return words["local"] or query, words["global"] or query

    def _search(self, query: str, detail_words: str, theme_words: str, within: Scope) -> list[Evidence]:
        question, details, themes = self.embedder.embed([query, detail_words, theme_words])
        pairs = _Pairs.read(self.store, self.names, within)
        levels, graph = _LEVELS[self.mode], EntityGraph(self.store, self.names)
        local = graph.find_nearest(details, _NEAREST, within) if "local" in levels else []
        near = [entity.key for entity in local]
        room = int(_OF_RELATIONS * self.room)
        of_entities = pairs.rank_at(near, room // _SHORTEST)
        near_themes = pairs.rank_near(themes, _NEAREST) if "global" in levels else []
        relations = take_fitting(
            self._make_relations(pairs, merge([of_entities, near_themes]), question), room, self.measure
        )
        ends = np.column_stack((pairs.heads[near_themes], pairs.tails[near_themes])).ravel().tolist()
        entities = self._make_entities(graph.describe(merge([near, [*dict.fromkeys(ends)]]), question, within), within)
        entities = take_fitting(entities, int(_OF_ENTITIES * self.room), self.measure)
        passages = self._choose_passages(question, entities, relations, within)
        used = sum(self.measure([*entities, *relations]))
        return [*take_fitting(passages, self.room - used, self.measure), *relations, *entities]

    def _choose_passages(
        self, question: Vectors, entities: Sequence[Evidence], relations: Sequence[Evidence], within: Scope
    ) -> list[Evidence]:
        """The first 20 of the passages that the question finds, and of those below the entities and the relations."""
        of_entities = self._rank_below(question, entities, ())
        of_relations = self._rank_below(question, relations, of_entities)
        lists = [of_entities, of_relations]
        if self.mode == "mix":
            lists.insert(0, self._rank_passages(question, self.store.keys_within(within), _PASSAGES))
        scores = {key: cosine for ranking in lists for key, cosine in ranking.items()}
        order = merge([list(ranking) for ranking in lists])[:_PASSAGES]
        return [as_evidence(passage, scores[key]) for key, passage in self.store.passages(order).items()]

    def _rank_below(self, question: Vectors, items: Sequence[Evidence], without: Iterable[int]) -> dict[int, float]:
        """The passages below these items that are nearest to the question: 5 for each two items."""
        below = find_keys(self.store, {source for item in items for source in item.sources}).values()
        among = sort_keys(set(below).difference(without))
        return self._rank_passages(question, among, int(_PER_ITEM * len(items)))

    def _rank_passages(self, question: Vectors, among: Keys | None, limit: int) -> dict[int, float]:
        """The passages nearest to the question with their cosines, best first, ties by id."""
        return rank_nodes(self.store, *self.store.scores(PASSAGES, question, among=among), limit)[0]

    def _make_entities(self, found: Sequence[FoundEntity], within: Scope) -> list[Evidence]:
        sources = name_sources(self.store, (entity.key for entity in found), self.names.entities, within)
        return [
            make_entity(entity, below, title=_name_entity(entity) if entity.text else "")
            for entity in found
            if (below := sources[entity.key])
        ]

    def _make_relations(self, pairs: _Pairs, order: Sequence[int], question: Vectors) -> list[Evidence]:
        """Relations as evidence: what is nearest to the question of what passages say, with all of these passages."""
        facts = _group(order, np.column_stack((pairs.numbers, pairs.facts)))
        passages = _group(order, pairs.grounds)
        among = sort_keys(fact for of_pair in facts.values() for fact in of_pair)
        keys, scores = self.store.scores(self.names.facts, question, among=among)
        cosines = pair_scores(keys, scores.round(DECIMALS))
        nodes = self.store.nodes_at(cosines)
        below = self.store.passages({key for of_pair in passages.values() for key in of_pair})
        found = []
        for number in order:
            ranked = rank_keys({key: cosines[key] for key in facts[number] if key in cosines}, nodes, _SHOWN)
            sources = name_in_order(passages[number], below)
            if ranked and sources:  # else removed after the search
                found.append(make_relation([nodes[key] for key in ranked], sources))
        return found


def merge(lists: Sequence[Sequence[T]]) -> list[T]:
    """The first of each list, then the second of each, and so on; each once."""
    return list(dict.fromkeys(take_turns(lists)))


def _name_entity(entity: FoundEntity) -> str:
    return f"{entity.name} ({entity.type})" if entity.type else entity.name


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Pairs of entities, each by its number, the index in `heads` and `tails` (n,), which are keys of entities.

    `facts` (m,) are the facts that join them, ascending, `numbers` (m,) the pair of each. `grounds` (k, 2) are pairs
    and passages, each pair and each of its passages once. All of it is within a scope.
    """

    store: Readable
    names: GraphNames
    heads: Keys
    tails: Keys
    facts: Keys
    numbers: Keys
    grounds: Keys

    @classmethod
    def read(cls, store: Readable, names: GraphNames, within: Scope) -> _Pairs:
        """The pairs that facts within a scope join, with their passages within it."""
        ends = read_fact_ends(store, names)
        among = store.keys_within(within, names.facts)
        ends = ends if among is None else ends.select(np.isin(ends.keys, among))
        facts, heads, tails = ends.keys, ends.heads, ends.tails
        codes = join_keys(np.minimum(heads, tails), np.maximum(heads, tails))
        _, firsts, numbers = np.unique(codes, return_index=True, return_inverse=True)
        seen = read_pairs(store, name_source_space(names.facts, "any"))
        passages = store.keys_within(within)
        seen = seen if passages is None else seen[np.isin(seen[:, 1], passages)]
        at, is_known = find_known_indices(seen[:, 0], facts)
        grounds = np.unique(np.column_stack((numbers[at], seen[is_known, 1])), axis=0)
        return cls(store, names, heads[firsts], tails[firsts], facts, numbers, grounds)

    def rank_at(self, entities: Iterable[int], limit: int) -> list[int]:
        """The `limit` best pairs of these entities: by the neighbours of both ends together, then by passages."""
        keys = sort_keys(entities)
        chosen = np.flatnonzero(np.isin(self.heads, keys) | np.isin(self.tails, keys))
        counts = np.bincount(np.concatenate((self.heads, self.tails)))
        degrees = counts[self.heads[chosen]] + counts[self.tails[chosen]]
        weights = np.bincount(self.grounds[:, 0], minlength=len(self.heads))
        return self._rank(chosen, degrees * (1.0 + weights.max(initial=0)) + weights[chosen], limit)

    def rank_near(self, vector: Vectors, limit: int) -> list[int]:
        """The `limit` pairs of which a fact is nearest to a vector."""
        keys, scores = self.store.scores(self.names.facts, vector, among=self.facts)
        at, _ = find_known_indices(keys, self.facts)
        nearest = np.full(len(self.heads), -1.0)
        np.maximum.at(nearest, self.numbers[at], scores.round(DECIMALS))
        return self._rank(np.arange(len(nearest)), nearest, limit)

    def _rank(self, chosen: Keys, scores: Floats, limit: int) -> list[int]:
        """The pairs `chosen` by their scores, ties by the ids of their ends."""
        best = find_top(scores, limit)
        numbers = chosen[best]
        heads, tails = self.heads[numbers].tolist(), self.tails[numbers].tolist()
        nodes = self.store.nodes_at({*heads, *tails})
        known = [
            (score, nodes[head].id, nodes[tail].id, number)
            for score, head, tail, number in zip((-scores[best]).tolist(), heads, tails, numbers.tolist(), strict=True)
            if head in nodes and tail in nodes
        ]
        return [number for *_, number in sorted(known)[:limit]]


def _group(order: Sequence[int], rows: Keys) -> dict[int, list[int]]:
    """The second of each row by the first, for the numbers in `order`."""
    groups: dict[int, list[int]] = {number: [] for number in order}
    for number, key in rows[np.isin(rows[:, 0], sort_keys(order))].tolist():
        groups[number].append(key)
    return groups
