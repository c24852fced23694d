"""Change the points of a hypergraph by what was found: update, insert, merge (HGMem, section 3.5)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from tomewise.errors import UsageError
from tomewise.language.labels import find_labelled
from tomewise.language.roles import (
    EVOLVE,
    MERGE_POINTS,
    EvolveIn,
    EvolveOut,
    InsertionOut,
    MergePointsIn,
    Shown,
    UpdateOut,
)
from tomewise.loops.desk import Desk
from tomewise.loops.exploring import Search, as_prompt_points, list_found
from tomewise.loops.steps import Skipped
from tomewise.memory.graph.entity_names import normalise_name
from tomewise.recall.entity_graph import Investigation
from tomewise.types import Evidence, NodeId, content_id
from tomewise.working.hypergraph import Hypergraph, MemoryPoint, PointId, Vertex


@dataclass(frozen=True, slots=True)
class Changes:
    """The points that a round changed and added, and the evidence that was `shown` for it."""

    updated: tuple[MemoryPoint, ...] = ()
    inserted: tuple[MemoryPoint, ...] = ()
    shown: tuple[NodeId, ...] = ()


@dataclass(frozen=True, eq=False)
class PointEditor:
    """Asks the model for changes of points, and makes those that can be made; the others are recorded.

    Updates come before insertions, and both refer to the points that the model was shown. With `replaces_vertices` an
    update changes the entities of a point too, as in the released code; with `keeps_merged` merged points stay.
    """

    investigation: Investigation
    desk: Desk
    updates: bool = True
    merges: bool = True
    replaces_vertices: bool = False
    keeps_merged: bool = False

    async def change_points(
        self,
        question: str,
        memory: Hypergraph,
        shown: Sequence[MemoryPoint],
        searches: Sequence[Search],
        skipped: Skipped,
    ) -> Changes:
        """Update and insert points by what a round found, as far as the model's window holds it (equation 2).

        Raises ModelError, and then changes nothing.
        """

        def make_input(evidence: Sequence[Shown]) -> EvolveIn:
            return EvolveIn(
                question=question,
                subqueries=[search.concern.query for search in searches if search.concern.query != question],
                points=as_prompt_points(memory, shown),
                evidence=list(evidence),
                may_update=self.updates,
                replaces_entities=self.replaces_vertices,
            )

        arrange = self.desk.put_in_order
        found = list_found(searches)
        prepared = await asyncio.to_thread(self.desk.fit, EVOLVE, found, make_input, budget=None, arrange=arrange)
        reply = await self.desk.model.ask(EVOLVE, prepared.input)
        updates = self._list_updates(reply, skipped)
        names = [name for update in updates for name in update.entities]
        names += [name for insertion in reply.insertions for name in insertion.entities]
        known = await self.investigation.find_named(dict.fromkeys(filter(normalise_name, names)))
        records = _Records(memory, prepared.evidence, known, skipped)
        changed = [point for update in updates for point in records.update(update, self.replaces_vertices)]
        inserted = [point for insertion in reply.insertions for point in records.insert(insertion)]
        shown_ids = tuple(piece.id for piece in prepared.evidence)
        return Changes(tuple(map(memory.find, dict.fromkeys(changed))), tuple(map(memory.find, inserted)), shown_ids)

    def _list_updates(self, reply: EvolveOut, skipped: Skipped) -> list[UpdateOut]:
        if self.updates:
            return reply.updates
        for record in reply.updates:
            skipped.drop(f"an update of {record.point!r}, though points are not updated")
        return []

    async def merge_points(
        self, question: str, memory: Hypergraph, shown: Sequence[MemoryPoint], skipped: Skipped
    ) -> list[MemoryPoint]:
        """Merge points that belong together. Returns the new points. Raises ModelError, and then changes nothing."""
        role_input = MergePointsIn(question=question, points=as_prompt_points(memory, shown))
        reply = await self.desk.model.ask(MERGE_POINTS, role_input)
        merged: list[MemoryPoint] = []
        used: set[str] = set()
        for record in reply.merges:
            try:
                parts = [memory.find(point).id for point in record.points]
                if again := sorted(used.intersection(parts)):
                    raise UsageError(f"{again[0]} is merged twice: merge a point once a round")
                merged.append(memory.merge(parts, record.description, keep=self.keeps_merged))
                used.update(parts, [merged[-1].id])
            except UsageError as error:
                skipped.drop(f"a merge of {', '.join(record.points) or 'nothing'}: {error}")
        return merged


@dataclass(frozen=True, slots=True)
class _Records:
    """Applies the records of one reply to the memory. `known` are the entities of the graph that it names."""

    memory: Hypergraph
    evidence: Sequence[Evidence]
    known: dict[str, NodeId]
    skipped: Skipped

    def update(self, record: UpdateOut, replaces_vertices: bool) -> list[PointId]:
        """The id of the changed point in a list; an empty list if the record cannot be used."""
        vertices = self._find_vertices(record.entities) if replaces_vertices and record.entities else None
        try:
            evidence, is_vague = self._find_grounds(record)
            return [self.memory.update(record.point, record.description, evidence, vertices, is_vague=is_vague).id]
        except UsageError as error:
            self.skipped.drop(f"an update of {record.point!r}: {error}")
            return []

    def insert(self, record: InsertionOut) -> list[PointId]:
        """The id of the new point in a list; an empty list if the record cannot be used."""
        vertices = self._find_vertices(record.entities)
        try:
            evidence, is_vague = self._find_grounds(record)
            return [self.memory.insert(record.description, vertices, evidence, is_vague=is_vague).id]
        except UsageError as error:
            self.skipped.drop(f"a new point {record.description[:60]!r}: {error}")
            return []

    def _find_grounds(self, record: UpdateOut | InsertionOut) -> tuple[list[NodeId], bool]:
        """The passages of the evidence that the record names; if it names none, those of all that was shown, and True.

        Raises UsageError if it names evidence, but none that was shown.
        """
        unknown = [label for label in record.evidence if not find_labelled([label], self.evidence)]
        if len(unknown) == len(record.evidence) > 0:
            raise UsageError(f"no evidence was shown as {', '.join(unknown)}")
        for label in unknown:
            self.skipped.drop(f"a label that was not shown: {label!r}")
        named = find_labelled(record.evidence, self.evidence)
        return [source for piece in named or self.evidence for source in piece.sources], not named

    def _find_vertices(self, names: Sequence[str]) -> list[Vertex]:
        """For each name an entity of the graph, or one of the overlay; a name without a letter or digit is left out."""
        vertices = []
        for name in names:
            line, normal = " ".join(name.split()), normalise_name(name)
            if not normal:
                self.skipped.drop(f"an entity without a name: {name!r}")
            elif name in self.known:
                vertices.append(Vertex(self.known[name], line))
            else:
                vertices.append(Vertex(content_id("o", normal), line, in_graph=False))
        return vertices
