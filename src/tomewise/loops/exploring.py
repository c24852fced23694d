"""Whether the memory suffices, which concerns are open, the search for these, and what it finds.

HGMem, section 3.4 with equations 6 and 7. A search goes around the points that a concern names, or beyond the memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from tomewise.errors import UsageError
from tomewise.language.roles import PLAN, ConcernOut, PlanIn, PlanOut, PointShown
from tomewise.loops.steps import Skipped
from tomewise.recall.entity_graph import Findings, Investigation
from tomewise.recall.ranking import drop_repeats, take_turns
from tomewise.store.records import PASSAGES
from tomewise.types import Evidence, LanguageModel, NodeId, Scope
from tomewise.working.hypergraph import Hypergraph, MemoryPoint, PointId

# Where to search: around points, beyond all of them, or in the whole memory.
Region: TypeAlias = Literal["local", "global", "everywhere"]
Regions: TypeAlias = Literal["either", "local", "global"]


@dataclass(frozen=True, slots=True)
class Concern:
    """An open matter with its subquery, and where to search."""

    text: str
    query: str
    region: Region = "global"
    points: tuple[PointId, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """The concerns to search for next; none if the memory suffices."""

    sufficient: bool
    reasoning: str
    concerns: tuple[Concern, ...] = ()


@dataclass(frozen=True, eq=False)
class Planning:
    """Asks the model whether the memory suffices, and for concerns with their subqueries, in one reply.

    HGMem asks for the concerns first and then for the subqueries of all. Here each concern of the reply holds its own,
    so that they cannot differ in number, and a round takes a call less. Unless it `may_stop`, concerns are asked for
    although the memory suffices (figure 3).
    """

    model: LanguageModel
    limit: int = 3
    places: Regions = "either"
    may_stop: bool = True

    def __post_init__(self) -> None:
        if self.limit < 1:
            raise UsageError(f"{self.limit} subqueries find nothing: give 1 or more")

    async def plan(
        self,
        question: str,
        memory: Hypergraph,
        shown: Sequence[MemoryPoint],
        searched: Sequence[str],
        skipped: Skipped,
    ) -> Plan:
        """Make a plan. What cannot be used of the reply is left out, and recorded in `skipped`.

        `shown` are the points that the model sees, `searched` the queries so far. Raises ModelError.
        """
        plan_input = PlanIn(
            question=question,
            points=as_prompt_points(memory, shown),
            searched=list(searched),
            limit=self.limit,
            place=self.places,
            may_stop=self.may_stop,
        )
        reply = await self.model.ask(PLAN, plan_input)
        if reply.sufficient and self.may_stop:
            return Plan(True, reply.reasoning)
        return Plan(False, reply.reasoning, tuple(self._read_concerns(reply, memory, skipped)))

    def _read_concerns(self, reply: PlanOut, memory: Hypergraph, skipped: Skipped) -> Iterator[Concern]:
        read = 0
        for concern in reply.concerns:
            query = _choose_query(concern, skipped)
            if not query:
                skipped.drop("a concern without words")
            elif read == self.limit:
                skipped.drop(f"a concern beyond the limit of {self.limit}: {query!r}")
            else:
                read += 1
                yield self._read_concern(concern, query, memory, skipped)

    def _read_concern(self, concern: ConcernOut, query: str, memory: Hypergraph, skipped: Skipped) -> Concern:
        points = tuple(dict.fromkeys(_find_points(concern.points, memory, skipped)))
        region: Region = concern.place if self.places == "either" else self.places
        if region == "local" and not points and self.places == "either":
            skipped.drop(f"a local search around no point, so it searches globally: {query!r}")
            region = "global"
        for surplus in points[1:]:
            skipped.drop(f"a second point of one concern: {surplus}")
        return Concern(concern.concern or query, query, region, points[:1])


def as_prompt_points(memory: Hypergraph, points: Iterable[MemoryPoint]) -> list[PointShown]:
    """Points as a prompt shows them: under their ids, with the names of their entities."""
    return [
        PointShown(
            id=point.id,
            description=point.description,
            entities=memory.list_names(point),
            parts=max(len(step.earlier) for step in point.history),
        )
        for point in points
    ]


def _choose_query(concern: ConcernOut, skipped: Skipped) -> str:
    """The subquery of a concern; a concern without one is searched for in its own words."""
    queries = [query for query in concern.subqueries if query]
    for surplus in queries[1:]:
        skipped.drop(f"a second subquery of one concern: {surplus!r}")
    return queries[0] if queries else concern.concern


def _find_points(ids: Sequence[str], memory: Hypergraph, skipped: Skipped) -> Iterator[PointId]:
    for point in ids:
        try:
            yield memory.find(point).id
        except UsageError as error:
            skipped.drop(str(error))


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


@dataclass(frozen=True, eq=False)
class Exploring:
    """Searches a part of the memory for each concern: `limit` passages of the entities that it finds there (n_d).

    `hops` is how far from its vertices the neighbourhood of a point reaches in the graph: 1 as in the paper, 2 as in
    the released code.
    """

    investigation: Investigation
    limit: int = 5
    hops: int = 1

    async def search(self, concern: Concern, memory: Hypergraph, within: Scope | None) -> Search:
        """Search for one concern."""
        around = await self._find_around(concern, memory) if concern.region == "local" else frozenset()
        region: Region = "global" if concern.region == "local" and not around else concern.region
        beyond = find_in_graph(memory, memory.points) if region == "global" else frozenset()
        scope = narrow_scope(within, around or None, beyond)
        found = await self.investigation.investigate(concern.query, self.limit, scope)
        return Search(concern, region, len(around or beyond), found)

    async def _find_around(self, concern: Concern, memory: Hypergraph) -> frozenset[NodeId]:
        """The neighbours of the points' vertices, in the memory and in the graph (equation 6).

        A local concern that names no point is about all of them. Vertices that the graph does not know have neighbours
        in the memory.
        """
        points = [*map(memory.find, concern.points)] or memory.points
        anchors = {vertex for point in points for vertex in point.vertices}
        near = {vertex for vertex in memory.find_neighbours(anchors) if memory.vertices[vertex].in_graph}
        known = find_in_graph(memory, points)
        return frozenset(near) | await self.investigation.find_neighbours(known, self.hops)


def list_found(searches: Sequence[Search]) -> list[Evidence]:
    """All that searches found, each piece once: passages, then relations, then entities, the best of each in turn.

    Names of the graph in small letters are written as the texts write them.
    """
    found = [search.found for search in searches]
    kinds = [each.passages for each in found], [each.relations for each in found], [each.entities for each in found]
    pieces = drop_repeats([piece for lists in kinds for piece in take_turns(lists)])
    texts = "\n".join(piece.text for piece in pieces)
    return [piece if piece.layer == PASSAGES else replace(piece, title=_spell(piece.title, texts)) for piece in pieces]


def find_in_graph(memory: Hypergraph, points: Iterable[MemoryPoint]) -> frozenset[NodeId]:
    """The vertices of these points that are entities of the graph."""
    vertices = {vertex for point in points for vertex in point.vertices}
    return frozenset(vertex for vertex in vertices if memory.vertices[vertex].in_graph)


def narrow_scope(within: Scope | None, around: frozenset[NodeId] | None, beyond: frozenset[NodeId]) -> Scope:
    """The scope of a question, narrowed to the entities `around` and without the entities that it goes `beyond`.

    Both together leave no more than either: where the question names entities too, only those of both are searched.
    """
    within = within or Scope()
    both = around if within.entities is None else within.entities if around is None else within.entities & around
    return replace(within, entities=both, without_entities=within.without_entities | beyond)


def _spell(names: str, texts: str) -> str:
    """Names in small letters, with commas between them, as the texts write them; others stay as they are."""
    return ", ".join(_find_spelling(name, texts) if name.islower() else name for name in names.split(", "))


def _find_spelling(name: str, texts: str) -> str:
    words = r"\W{1,3}".join(map(re.escape, name.split()))
    found = re.search(rf"\b{words}\b", texts, re.IGNORECASE)
    return " ".join(found[0].split()) if found else name
