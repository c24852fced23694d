"""The entities of a graph: those near a query, those around others, and the relations between them (HGMem)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tomewise.memory.graph.entity_names import normalise_name
from tomewise.memory.graph.graph_names import FACT, GraphNames
from tomewise.store.key_indices import find_known_indices
from tomewise.store.lookups import find_keys, name_sources, read_pairs
from tomewise.store.nearest import find_top
from tomewise.types import Evidence, Node, NodeId, Scope

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tomewise.store.contract import Readable

    Keys = NDArray[np.int64]
    Scores = NDArray[np.float32]

_SHOWN_MENTIONS = 3  # what so many passages say of an entity is shown, the nearest to the query first
_DECIMALS = 6


@dataclass(frozen=True, slots=True)
class FoundEntity:
    """An entity near a query. `text` is what passages say of it, one line each; empty in a graph of triples.

    `name` and `type` are those in the passage that says what is nearest to the query, `mentions` the keys of what it is
    from.
    """

    id: NodeId
    name: str
    score: float
    text: str = ""
    type: str = ""
    mentions: tuple[int, ...] = ()


class EntityGraph:
    """Searches the graph of one layer, in either style.

    An entity is as near to a query as its name, or as the nearest of its mentions: a name with what one passage says of
    it. HGMem embeds one text for an entity, its name with all descriptions joined; an embedder reads the beginning
    of it alone.
    """

    def __init__(self, store: Readable, names: GraphNames) -> None:
        self._store = store
        self._names = names

    def find_named(self, names: Iterable[str]) -> dict[str, NodeId]:
        """The entities that exist, by the name given, however it is spelt (`entities.normalise_name`)."""
        ids = {name: self._names.entity(normalise_name(name)) for name in names}
        known = find_keys(self._store, ids.values())
        return {name: node for name, node in ids.items() if node in known}

    def find_neighbours(self, entities: Collection[NodeId], hops: int = 1) -> frozenset[NodeId]:
        """The entities that a fact joins with one of these; with more `hops` also the neighbours of those, and so on.

        With two hops, entities that have a neighbour are among the result themselves.
        """
        edges = read_pairs(self._store, self._names.ends)
        reached = self._find_keys(entities)
        found = np.empty(0, np.int64)
        for _ in range(hops):
            reached = _find_other_ends(edges, reached)
            found = np.union1d(found, reached)
        return frozenset(node.id for node in self._store.nodes_at(found.tolist()).values())

    def find_nearest(self, vector: NDArray[np.float32], limit: int, within: Scope) -> list[FoundEntity]:
        """The `limit` entities nearest to a query, best first, ties by id.

        With `within.entities` only those are searched, and `within.without_entities` are left out. Documents and
        conditions leave only entities, and mentions, that a passage within them names.
        """
        ground = _keep_ground(within)
        among = self._store.keys_within(ground, self._names.entities)
        keys, scores = self._store.scores(self._names.entities, vector)
        mentions = self._score_mentions(vector, ground)
        _raise_scores(keys, scores, mentions)
        kept = self._select(keys, within) if among is None else self._select(keys, within) & np.isin(keys, among)
        keys, scores = keys[kept], scores[kept]
        best = find_top(scores, limit)
        nodes = self._store.nodes_at(keys[best].tolist())
        nearest = dict(zip(keys[best].tolist(), scores[best].round(_DECIMALS).tolist(), strict=True))
        ranked = sorted(nodes, key=lambda key: (-nearest[key], nodes[key].id))[:limit]
        return self._make_found(ranked, nodes, nearest, mentions)

    def describe(self, entities: Sequence[NodeId], vector: NDArray[np.float32], within: Scope) -> list[FoundEntity]:
        """These entities in their order, with what is nearest to a query; those that do not exist are left out."""
        known = find_keys(self._store, entities)
        nodes = self._store.nodes_at(known[node] for node in entities if node in known)
        mentions = self._score_mentions(vector, _keep_ground(within))
        return self._make_found(list(nodes), nodes, dict.fromkeys(nodes, 0.0), mentions)

    def _make_found(
        self, keys: Sequence[int], nodes: Mapping[int, Node], scores: Mapping[int, float], mentions: _Mentions
    ) -> list[FoundEntity]:
        found = []
        for key, described in self._describe(keys, mentions).items():
            node, first = nodes[key], next(iter(described.values()), {"name": nodes[key].text, "type": ""})
            text = "\n".join(dict.fromkeys(data["description"] for data in described.values() if data["description"]))
            found.append(FoundEntity(node.id, first["name"], scores[key], text, first["type"], tuple(described)))
        return found

    def find_relations(
        self, vector: NDArray[np.float32], entities: Collection[NodeId], limit: int, within: Scope
    ) -> list[Evidence]:
        """The `limit` facts of these entities nearest to a query, best first, ties by id.

        Sources are the passages within the scope's documents and conditions that state the fact; one at least.
        """
        ground = _keep_ground(within)
        edges = read_pairs(self._store, self._names.ends)
        facts = np.unique(edges[np.isin(edges[:, 1], self._find_keys(entities)), 0])
        among = self._store.keys_within(ground, self._names.facts)
        facts = facts if among is None else facts[np.isin(facts, among)]
        facts, scores = self._store.scores(self._names.facts, vector, among=facts)
        best = find_top(scores, limit)
        nearest = dict(zip(facts[best].tolist(), scores[best].round(_DECIMALS).tolist(), strict=True))
        return self._make_evidence(nearest, limit, ground)

    def _make_evidence(self, scores: dict[int, float], limit: int, ground: Scope) -> list[Evidence]:
        nodes = self._store.nodes_at(scores)
        ranked = sorted(nodes, key=lambda key: (-scores[key], nodes[key].id))[:limit]
        sources = name_sources(self._store, ranked, self._names.facts, ground)
        return [
            Evidence(
                node=nodes[key].id,
                layer="facts",
                kind=FACT,
                text=nodes[key].data.get("description") or nodes[key].text,
                title=_name_relation(nodes[key]),
                score=scores[key],
                sources=sources[key],
            )
            for key in ranked
        ]

    def _score_mentions(self, vector: NDArray[np.float32], ground: Scope) -> _Mentions:
        """The mentions of all entities with their cosines; those outside the ground are left out."""
        keys, scores = self._store.scores(self._names.mentions, vector)
        pairs = read_pairs(self._store, self._names.mentioned)
        pairs = pairs[np.argsort(pairs[:, 0])]
        places, is_known = find_known_indices(keys, pairs[:, 0])
        mentions = _Mentions(keys[is_known], pairs[places, 1], scores[is_known])
        among = self._store.keys_within(ground, self._names.mentions)
        return mentions if among is None else mentions.select(np.isin(mentions.keys, among))

    def _describe(self, entities: Sequence[int], mentions: _Mentions) -> dict[int, dict[int, Mapping[str, str]]]:
        """For each entity its nearest mentions by key, each with its name, type and description."""
        of_these = mentions.select(np.isin(mentions.entities, np.array(entities, np.int64)))
        order = np.lexsort((of_these.keys, -of_these.scores.round(_DECIMALS)))
        nodes = self._store.nodes_at(of_these.keys[order].tolist())
        found: dict[int, dict[int, Mapping[str, str]]] = {entity: {} for entity in entities}
        for key, entity in zip(of_these.keys[order].tolist(), of_these.entities[order].tolist(), strict=True):
            # A mention may have been removed after the search.
            if key in nodes and len(found[entity]) < _SHOWN_MENTIONS:
                found[entity][key] = nodes[key].data
        return found

    def _select(self, keys: Keys, within: Scope) -> NDArray[np.bool_]:
        """A flag for each entity: whether the scope's entities let it be searched."""
        kept = ~np.isin(keys, self._find_keys(within.without_entities))
        return kept if within.entities is None else kept & np.isin(keys, self._find_keys(within.entities))

    def _find_keys(self, nodes: Collection[NodeId]) -> Keys:
        return np.array(sorted(find_keys(self._store, nodes).values()), np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class _Mentions:
    """Mentions by key, the entity of each, and its cosine with the query; all of shape (n,)."""

    keys: Keys
    entities: Keys
    scores: Scores

    def select(self, kept: NDArray[np.bool_]) -> _Mentions:
        return _Mentions(self.keys[kept], self.entities[kept], self.scores[kept])


def _keep_ground(within: Scope) -> Scope:
    """The scope without its entities: what passages may be read at all."""
    return replace(within, entities=None, without_entities=frozenset())


def _name_relation(fact: Node) -> str:
    """The two ends of a relation, whose description may not name them; empty for a triple, which does."""
    return f"{fact.data['head']}, {fact.data['tail']}" if fact.data.get("description") else ""


def _raise_scores(keys: Keys, scores: Scores, mentions: _Mentions) -> None:
    """Raise the score of each entity, in place, to that of its nearest mention. `keys` are ascending."""
    places, is_known = find_known_indices(mentions.entities, keys)
    np.maximum.at(scores, places, mentions.scores[is_known])


def _find_other_ends(edges: Keys, entities: Keys) -> Keys:
    """The entities that a fact joins with one of `entities`; `edges` (n, 2) are pairs of fact and entity."""
    if not len(edges) or not len(entities):
        return np.empty(0, np.int64)
    is_one = np.isin(edges[:, 1], entities)
    counts = np.bincount(edges[is_one, 0], minlength=int(edges[:, 0].max()) + 1)
    return np.unique(edges[counts[edges[:, 0]] > is_one, 1])
