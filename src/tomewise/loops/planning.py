"""Whether the memory suffices, and which concerns are open (HGMem, section 3.4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tomewise.errors import UsageError
from tomewise.language.roles import PLAN, ConcernOut, PlanIn, PlanOut
from tomewise.loops.points import as_prompt_points
from tomewise.loops.repeats import fold
from tomewise.loops.steps import Skipped
from tomewise.types import LanguageModel
from tomewise.working.hypergraph import Hypergraph
from tomewise.working.point import MemoryPoint, PointId

Place: TypeAlias = Literal["local", "global"]
Places: TypeAlias = Literal["either", "local", "global"]


@dataclass(frozen=True, slots=True)
class Concern:
    """An open matter with its subquery, and where to search: around some points, or beyond all."""

    text: str
    query: str
    place: Place = "global"
    points: tuple[PointId, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """The concerns to search for next; none if the memory suffices."""

    sufficient: bool
    reasoning: str
    concerns: tuple[Concern, ...] = ()


class Planning:
    """Asks the model for both in one reply.

    HGMem asks for the concerns first and then for the subqueries of all. Here each concern of the reply holds its own,
    so that they cannot differ in number, and a round takes a call less.
    """

    def __init__(self, model: LanguageModel, *, limit: int = 3, places: Places = "either") -> None:
        if limit < 1:
            raise UsageError(f"{limit} subqueries find nothing: give 1 or more")
        self._model = model
        self.limit = limit
        self._places = places

    async def plan(
        self,
        question: str,
        memory: Hypergraph,
        shown: Sequence[MemoryPoint],
        searched: Sequence[str],
        skipped: Skipped,
    ) -> Plan:
        """A plan without what cannot be used of the reply: that is recorded in `skipped`.

        `shown` are the points that the model sees, `searched` the queries so far. Raises ModelError.
        """
        given = PlanIn(
            question=question,
            points=as_prompt_points(memory, shown),
            searched=list(searched),
            limit=self.limit,
            place=self._places,
        )
        reply = await self._model.ask(PLAN, given)
        if reply.sufficient:
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
                yield self._place(concern, query, memory, skipped)

    def _place(self, concern: ConcernOut, query: str, memory: Hypergraph, skipped: Skipped) -> Concern:
        points = tuple(dict.fromkeys(_find_points(concern.points, memory, skipped)))
        place: Place = concern.place if self._places == "either" else self._places
        if place == "local" and not points and self._places == "either":
            skipped.drop(f"a local search around no point, so it searches globally: {query!r}")
            place = "global"
        return Concern(concern.concern or query, query, place, points)


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
