"""The entities of a graph, near a query and around others, their relations, and what an investigation makes of them.

HGMem, section 3.2.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tomewise.memory.graph.entity_names import normalise_name
from tomewise.memory.graph.graph_names import FACT, GraphNames
from tomewise.recall.array_types import Flags, Keys, Vectors, sort_keys
from tomewise.recall.ranking import rank_nodes
from tomewise.store.contract import Readable
from tomewise.store.lookups import find_keys, name_sources, read_pairs
from tomewise.store.nearest import DECIMALS, find_known_indices
from tomewise.types import Embedder, Evidence, Node, NodeId, PassageId, Retriever, Scope

_SHOWN_MENTIONS = 3  # what so many passages say of an entity is shown, the nearest to the query first


@dataclass(frozen=True, slots=True)
class FoundEntity:
    """An entity near a query. `text` is what passages say of it, one line each; empty in a graph of triples.

    `key` is that in the store, `name` and `type` are those in the passage that says what is nearest to the query,
    `mentions` are the keys of what `text` is made of.
    """

    key: int
    id: NodeId
    name: str
    score: float
    text: str = ""
    type: str = ""
    mentions: tuple[int, ...] = ()


@dataclass(frozen=True)
class EntityGraph:
    """Searches the graph of one layer, in either style.

    An entity is as near to a query as its name, or as the nearest of its mentions: a name with what one passage says of
    it. HGMem embeds one text for an entity, its name with all descriptions joined; an embedder reads the beginning
    of it alone.
    """

    store: Readable
    names: GraphNames

    def find_named(self, names: Iterable[str]) -> dict[str, NodeId]:
        """The entities that exist, by the name given, however it is spelt (`entities.normalise_name`)."""
        ids = {name: self.names.entity(normalise_name(name)) for name in names}
        known = find_keys(self.store, ids.values())
        return {name: node for name, node in ids.items() if node in known}

    def find_neighbours(self, entities: Collection[NodeId], hops: int = 1) -> frozenset[NodeId]:
        """The entities that a fact joins with one of these; with more `hops` also the neighbours of those, and so on.

        With two hops, entities that have a neighbour are among the result themselves.
        """
        edges = read_pairs(self.store, self.names.ends)
        reached = self._find_keys(entities)
        found = np.empty(0, np.int64)
        for _ in range(hops):
            is_one = np.isin(edges[:, 1], reached)
            counts = np.bincount(edges[:, 0], is_one)  # by fact
            reached = np.unique(edges[counts[edges[:, 0]] > is_one, 1])  # another end of their facts is one
            found = np.union1d(found, reached)
        return frozenset(node.id for node in self.store.nodes_at(found.tolist()).values())

    def find_nearest(self, vector: Vectors, limit: int, within: Scope) -> list[FoundEntity]:
        """The `limit` entities nearest to a query, best first, ties by id.

        With `within.entities` only those are searched, and `within.without_entities` are left out. Documents and
        conditions leave only entities, and mentions, that a passage within them names.
        """
        ground = _keep_ground(within)
        among = self.store.keys_within(ground, self.names.entities)
        keys, scores = self.store.scores(self.names.entities, vector)
        mentions = self._score_mentions(vector, ground)
        places, is_known = find_known_indices(mentions.entities, keys)
        np.maximum.at(scores, places, mentions.scores[is_known])
        kept = ~np.isin(keys, self._find_keys(within.without_entities))
        if within.entities is not None:
            kept &= np.isin(keys, self._find_keys(within.entities))
        if among is not None:
            kept &= np.isin(keys, among)
        nearest, nodes = rank_nodes(self.store, keys[kept], scores[kept], limit)
        return self._make_found(nearest, nodes, mentions)

    def describe(self, entities: Iterable[int], vector: Vectors, within: Scope) -> list[FoundEntity]:
        """Entities by their keys, in this order, with what is nearest to a query; those removed since are left out."""
        nodes = self.store.nodes_at(entities)
        mentions = self._score_mentions(vector, _keep_ground(within))
        return self._make_found(dict.fromkeys(nodes, 0.0), nodes, mentions)

    def find_relations(
        self, vector: Vectors, entities: Collection[NodeId], limit: int, within: Scope
    ) -> list[Evidence]:
        """The `limit` facts of these entities nearest to a query, best first, ties by id.

        Sources are the passages within the scope's documents and conditions that state the fact; one at least.
        """
        ground = _keep_ground(within)
        edges = read_pairs(self.store, self.names.ends)
        facts = np.unique(edges[np.isin(edges[:, 1], self._find_keys(entities)), 0])
        among = self.store.keys_within(ground, self.names.facts)
        facts = facts if among is None else np.intersect1d(facts, among)
        scored = self.store.scores(self.names.facts, vector, among=facts)
        nearest, nodes = rank_nodes(self.store, *scored, limit)
        sources = name_sources(self.store, nearest, self.names.facts, ground)
        return [make_relation([nodes[key]], sources[key], score) for key, score in nearest.items()]

    def _score_mentions(self, vector: Vectors, ground: Scope) -> _Mentions:
        """The mentions of all entities with their cosines; those outside the ground are left out."""
        keys, scores = self.store.scores(self.names.mentions, vector)
        pairs = read_pairs(self.store, self.names.mentioned)
        pairs = pairs[np.argsort(pairs[:, 0])]
        places, is_known = find_known_indices(keys, pairs[:, 0])
        mentions = _Mentions(keys[is_known], pairs[places, 1], scores[is_known])
        among = self.store.keys_within(ground, self.names.mentions)
        return mentions if among is None else mentions.select(np.isin(mentions.keys, among))

    def _make_found(
        self, scores: Mapping[int, float], nodes: Mapping[int, Node], mentions: _Mentions
    ) -> list[FoundEntity]:
        """These entities, each with what its nearest mentions say."""
        of_these = mentions.select(np.isin(mentions.entities, sort_keys(scores)))
        ranked = of_these.select(np.lexsort((of_these.keys, -of_these.scores.round(DECIMALS))))
        keys = ranked.keys.tolist()
        stored = self.store.nodes_at(keys)
        nearest: dict[int, dict[int, Mapping[str, str]]] = {entity: {} for entity in scores}
        for key, entity in zip(keys, ranked.entities.tolist(), strict=True):
            # A mention may have been removed after the search.
            if key in stored and len(nearest[entity]) < _SHOWN_MENTIONS:
                nearest[entity][key] = stored[key].data
        found = []
        for key, described in nearest.items():
            first = next(iter(described.values()), {"name": nodes[key].text, "type": ""})
            text = "\n".join(dict.fromkeys(data["description"] for data in described.values() if data["description"]))
            node, score = nodes[key].id, scores[key]
            found.append(FoundEntity(key, node, first["name"], score, text, first["type"], tuple(described)))
        return found

    def _find_keys(self, nodes: Collection[NodeId]) -> Keys:
        return sort_keys(find_keys(self.store, nodes).values())


@dataclass(frozen=True)
class Findings:
    """The result of one search, each list best first."""

    entities: tuple[Evidence, ...] = ()
    relations: tuple[Evidence, ...] = ()
    passages: tuple[Evidence, ...] = ()


@dataclass(frozen=True)
class Investigation:
    """The entities nearest to a query, their nearest relations, and the passages in which they are seen (equation 1).

    `passages` ranks these passages. Without a graph no entity is known: then it ranks all within the scope. An
    investigation is a retriever too, of the passages alone.
    """

    graph: EntityGraph | None
    embedder: Embedder
    passages: Retriever
    entities: int = 5
    relations: int = 5

    async def investigate(self, query: str, limit: int, within: Scope) -> Findings:
        """What is found for a query within the scope, with at most `limit` passages."""
        if self.graph is None:
            return Findings(passages=tuple(await self.passages.retrieve(query, limit, within=within)))
        found = await asyncio.to_thread(self._find_in_graph, self.graph, query, within)
        near = frozenset(entity.id for entity in found.entities)
        beside = replace(within, entities=near, without_entities=frozenset())
        return replace(found, passages=tuple(await self.passages.retrieve(query, limit, within=beside)))

    async def retrieve(self, query: str, limit: int, *, within: Scope | None = None) -> list[Evidence]:
        """The passages alone."""
        return list((await self.investigate(query, limit, within or Scope())).passages)

    async def find_named(self, names: Collection[str]) -> frozenset[NodeId]:
        """The entities of these names that the graph knows (`EntityGraph.find_named`)."""
        return frozenset((await asyncio.to_thread(self.graph.find_named, names)).values() if self.graph else ())

    async def find_neighbours(self, entities: Collection[NodeId], hops: int) -> frozenset[NodeId]:
        """See `EntityGraph.find_neighbours`."""
        return await asyncio.to_thread(self.graph.find_neighbours, entities, hops) if self.graph else frozenset()

    def _find_in_graph(self, graph: EntityGraph, query: str, within: Scope) -> Findings:
        vector = self.embedder.embed([query])[0]
        found = graph.find_nearest(vector, self.entities, within)
        relations = graph.find_relations(vector, [entity.id for entity in found], self.relations, within)
        mentions = (key for entity in found for key in entity.mentions)
        sources = name_sources(graph.store, mentions, graph.names.mentions, _keep_ground(within))
        entities = []
        for entity in found:
            seen = dict.fromkeys(passage for key in entity.mentions for passage in sources[key])
            entities.append(make_entity(entity, tuple(seen), title=entity.name, score=entity.score))
        return Findings(tuple(entities), tuple(relations))


def make_fact(
    node: NodeId, text: str, sources: tuple[PassageId, ...], *, title: str = "", score: float = 0.0
) -> Evidence:
    """A fact of a graph as evidence."""
    return Evidence(id=node, layer="facts", kind=FACT, text=text, title=title, score=score, sources=sources)


def make_relation(facts: Sequence[Node], sources: tuple[PassageId, ...], score: float = 0.0) -> Evidence:
    """What facts of the same two entities say as evidence, under the id of the first."""
    first = facts[0]
    texts = dict.fromkeys(fact.data["description"] for fact in facts if fact.data.get("description"))
    # A description may not name the two ends; a triple does.
    title = f"{first.data['head']}, {first.data['tail']}" if texts else ""
    return make_fact(first.id, "\n".join(texts) or first.text, sources, title=title, score=score)


def make_entity(found: FoundEntity, sources: tuple[PassageId, ...], *, title: str = "", score: float = 0.0) -> Evidence:
    """An entity of a graph as evidence."""
    text = found.text or found.name
    return Evidence(id=found.id, layer="entities", kind="entity", text=text, title=title, score=score, sources=sources)


@dataclass(frozen=True, eq=False)
class _Mentions:
    """Mentions by key, the entity of each, and its cosine with the query; all of shape (n,)."""

    keys: Keys
    entities: Keys
    scores: Vectors

    def select(self, kept: Flags | Keys) -> _Mentions:
        return _Mentions(self.keys[kept], self.entities[kept], self.scores[kept])


def _keep_ground(within: Scope) -> Scope:
    """The scope without its entities: what passages may be read at all."""
    return replace(within, entities=None, without_entities=frozenset())
