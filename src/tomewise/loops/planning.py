"""Whether the memory suffices, and which concerns are open (HGMem, section 3.4)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tomewise.errors import UsageError
from tomewise.language.roles import PLAN, ConcernOut, PlanIn, PlanOut, PointShown
from tomewise.loops.evidence import fold
from tomewise.loops.steps import Skipped
from tomewise.types import LanguageModel
from tomewise.working.hypergraph import Hypergraph
from tomewise.working.point import MemoryPoint, PointId

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
        return Plan(False, reply.reasoning, tuple(self._read_concerns(reply, memory, searched, skipped)))

    def _read_concerns(
        self, reply: PlanOut, memory: Hypergraph, searched: Sequence[str], skipped: Skipped
    ) -> Iterator[Concern]:
        known = {fold(query) for query in searched}
        read = 0
        for concern in reply.concerns:
            query = _choose_query(concern, skipped)
            if not query:
                skipped.drop("a concern without words")
            elif fold(query) in known:
                skipped.drop(f"a subquery that was searched before: {query!r}")
            elif read == self.limit:
                skipped.drop(f"a concern beyond the limit of {self.limit}: {query!r}")
            else:
                known.add(fold(query))
                read += 1
                yield self._read_concern(concern, query, memory, skipped)

    def _read_concern(self, concern: ConcernOut, query: str, memory: Hypergraph, skipped: Skipped) -> Concern:
        points = tuple(dict.fromkeys(_find_points(concern.points, memory, skipped)))
        region: Region = concern.place if self.places == "either" else self.places
        if region == "local" and not points and self.places == "either":
            skipped.drop(f"a local search around no point, so it searches globally: {query!r}")
            region = "global"
        return Concern(concern.concern or query, query, region, points)


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
