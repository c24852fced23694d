"""What is known of a query in a part of the graph: entities, their relations, their passages (HGMem, section 3.2)."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Protocol

from tomewise.recall.entity_graph import EntityGraph, FoundEntity
from tomewise.types import Embedder, Evidence, NodeId, Retriever, Scope


@dataclass(frozen=True, slots=True)
class Findings:
    """The result of one search, each list best first."""

    entities: tuple[FoundEntity, ...] = ()
    relations: tuple[Evidence, ...] = ()
    passages: tuple[Evidence, ...] = ()


class Investigation(Protocol):
    """Searches a part of the memory, which the scope narrows by entities, and finds one's way among entities."""

    async def investigate(self, query: str, limit: int, within: Scope) -> Findings:
        """What is found for a query, with at most `limit` passages."""
        ...

    async def find_named(self, names: Iterable[str]) -> dict[str, NodeId]:
        """The entities that exist, by the name given."""
        ...

    async def find_neighbours(self, entities: Collection[NodeId], hops: int) -> frozenset[NodeId]:
        """The entities within so many steps of these."""
        ...


class _OverGraph:
    """What investigations over a graph share."""

    def __init__(self, graph: EntityGraph, embedder: Embedder, *, entities: int, relations: int) -> None:
        self._graph = graph
        self._embedder = embedder
        self._entities = entities
        self._relations = relations

    async def find_named(self, names: Iterable[str]) -> dict[str, NodeId]:
        """See `EntityGraph.find_named`."""
        return await asyncio.to_thread(self._graph.find_named, list(names))

    async def find_neighbours(self, entities: Collection[NodeId], hops: int) -> frozenset[NodeId]:
        """See `EntityGraph.find_neighbours`."""
        return await asyncio.to_thread(self._graph.find_neighbours, entities, hops)

    def _find_in_graph(self, query: str, within: Scope) -> Findings:
        vector = self._embedder.embed([query])[0]
        entities = self._graph.find_nearest(vector, self._entities, within)
        nearest = [entity.id for entity in entities]
        return Findings(tuple(entities), tuple(self._graph.find_relations(vector, nearest, self._relations, within)))


class GraphInvestigation(_OverGraph):
    """The entities nearest to the query, their nearest relations, and their passages (equation 1).

    It is a retriever too: of these passages. `passages` ranks the passages in which given entities are seen.
    """

    def __init__(
        self, graph: EntityGraph, embedder: Embedder, passages: Retriever, *, entities: int = 5, relations: int = 5
    ) -> None:
        super().__init__(graph, embedder, entities=entities, relations=relations)
        self._passages = passages

    async def investigate(self, query: str, limit: int, within: Scope) -> Findings:
        """At most `limit` passages in which one of the entities found is seen."""
        found = await asyncio.to_thread(self._find_in_graph, query, within)
        near = frozenset(entity.id for entity in found.entities)
        beside = replace(within, entities=near, without_entities=frozenset())
        return replace(found, passages=tuple(await self._passages.retrieve(query, limit, within=beside)))

    async def retrieve(self, query: str, limit: int, *, within: Scope | None = None) -> list[Evidence]:
        """The passages alone."""
        return list((await self.investigate(query, limit, within or Scope())).passages)


class RecallInvestigation(_OverGraph):
    """Passages from any recall that accepts a scope, beside the entities and relations that a graph has there."""

    def __init__(
        self, graph: EntityGraph, embedder: Embedder, recall: Retriever, *, entities: int = 5, relations: int = 5
    ) -> None:
        super().__init__(graph, embedder, entities=entities, relations=relations)
        self._recall = recall

    async def investigate(self, query: str, limit: int, within: Scope) -> Findings:
        """At most `limit` passages that recall finds within the scope."""
        found, passages = await asyncio.gather(
            asyncio.to_thread(self._find_in_graph, query, within), self._recall.retrieve(query, limit, within=within)
        )
        return replace(found, passages=tuple(passages))


class RecallWithoutGraph:
    """Passages from a recall of a tome without a graph: no entity is known there, so none narrows a search."""

    def __init__(self, recall: Retriever) -> None:
        self._recall = recall

    async def investigate(self, query: str, limit: int, within: Scope) -> Findings:
        """At most `limit` passages that recall finds within the scope."""
        return Findings(passages=tuple(await self._recall.retrieve(query, limit, within=within)))

    async def find_named(self, names: Iterable[str]) -> dict[str, NodeId]:
        """Nothing."""
        return {}

    async def find_neighbours(self, entities: Collection[NodeId], hops: int) -> frozenset[NodeId]:
        """Nothing."""
        return frozenset()
