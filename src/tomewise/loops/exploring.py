"""Search for a concern: around the points that it names, or beyond the memory (HGMem, equations 6 and 7)."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, replace

from tomewise.loops.planning import Concern, Region
from tomewise.recall.investigation import Findings, Investigation
from tomewise.types import NodeId, Retriever, Scope
from tomewise.working.hypergraph import Hypergraph


@dataclass(frozen=True, slots=True)
class Search:
    """A concern, where it was searched for, and what was found there.

    A local search around points of which the graph knows no entity is a global one. `entities` is how many entities a
    local search was narrowed to, or how many a global one left out.
    """

    concern: Concern
    region: Region
    entities: int
    found: Findings


class Exploring:
    """Searches a part of the memory for each concern, and all of it for a few other passages.

    `limit` is how many passages each of the two gives. `hops` is how far from its vertices the neighbourhood of a point
    reaches in the graph: 1 as in the paper, 2 as in the released code.
    """

    def __init__(self, investigation: Investigation, recall: Retriever, *, limit: int = 5, hops: int = 1) -> None:
        self._investigation = investigation
        self._recall = recall
        self._limit = limit
        self._hops = hops

    async def search(
        self, concern: Concern, memory: Hypergraph, within: Scope | None, read: Collection[NodeId] = ()
    ) -> Search:
        """Search for one concern. Passages that were `read` before give their places to the next ones."""
        around = await self._find_around(concern, memory) if concern.region == "local" else frozenset()
        region: Region = "global" if concern.region == "local" and not around else concern.region
        beyond = find_in_graph(memory, [point.id for point in memory.points]) if region == "global" else frozenset()
        scope = narrow_scope(within, around or None, beyond)
        found, anywhere = await asyncio.gather(
            self._investigation.investigate(concern.query, self._limit + len(read), scope),
            self._recall.retrieve(concern.query, 2 * self._limit + len(read), within=within),
        )
        near = [piece for piece in found.passages if piece.node not in read][: self._limit]
        known = {*read, *(piece.node for piece in near)}
        others = [piece for piece in anywhere if piece.node not in known][: self._limit]
        found = replace(found, passages=(*near, *others))
        return Search(concern, region, len(around or beyond), found)

    async def _find_around(self, concern: Concern, memory: Hypergraph) -> frozenset[NodeId]:
        """The neighbours of the points' vertices, in the memory and in the graph (equation 6).

        A concern that names no point is about all of them. Vertices that the graph does not know have neighbours in
        the memory.
        """
        points = concern.points or [point.id for point in memory.points]
        anchors = {vertex for point in map(memory.find, points) for vertex in point.vertices}
        near = {vertex for vertex in memory.find_neighbours(anchors) if memory.vertices[vertex].in_graph}
        known = find_in_graph(memory, points)
        return frozenset(near) | await self._investigation.find_neighbours(known, self._hops)


def find_in_graph(memory: Hypergraph, points: Collection[str]) -> frozenset[NodeId]:
    """The vertices of these points that are entities of the graph."""
    vertices = {vertex for point in map(memory.find, points) for vertex in point.vertices}
    return frozenset(vertex for vertex in vertices if memory.vertices[vertex].in_graph)


def narrow_scope(within: Scope | None, around: frozenset[NodeId] | None, beyond: frozenset[NodeId]) -> Scope:
    """The scope of a question, narrowed to the entities `around` and without the entities that it goes `beyond`.

    Both together leave no more than either: where the question names entities too, only those of both are searched.
    """
    within = within or Scope()
    both = around if within.entities is None else within.entities if around is None else within.entities & around
    return replace(within, entities=both, without_entities=within.without_entities | beyond)
