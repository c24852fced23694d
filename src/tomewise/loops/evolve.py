"""The loop whose working memory is a hypergraph (HGMem, sections 3.2 to 3.6): plan, explore, evolve, merge, answer.

- The first round searches with the question itself, and all of the memory. A hypergraph that brings points from an
  earlier question is planned with from the first round on.
- A round is one call to plan, one to evolve and one to merge, one after the other; searches run side by side.
- The loop ends when the memory suffices, when no usable subquery is left, or after the last round, which no planning
  follows. An unusable plan ends it too: then the answer is made from what is known.
- Relations, then passages, fill a budget of tokens for each subquery; what several of them found is shown once.
- What cannot be used of a reply is recorded and skipped: a point, label or entity that does not exist, an empty
  description, a point merged twice.
- The answer sees the points (`Hypergraph.rank`); the passages that they rest on, in turn with those passages of their
  vertices that are nearest to the question, or of all passages where the graph knows no vertex; then, if there is room,
  what else was found, in the order of the searches. It may be declined unless a guess is asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field, replace

from tomewise.calls import CallCount, read_calls, sum_calls
from tomewise.concurrency import gather_calls
from tomewise.errors import UsageError
from tomewise.events import AnsweredFromPoints, Evolved, Explored, Merged, Planned, PlannedSearch, Stopped, as_pieces
from tomewise.language.roles import EVOLVE, MERGE_POINTS, PLAN
from tomewise.loops.context import HISTORY, Context, Contexts, make_attempt_event
from tomewise.loops.desk import Desk
from tomewise.loops.evidence import fit_to_budget
from tomewise.loops.evolution import Changes, Evolution, Material
from tomewise.loops.exploring import Exploring, Search, find_in_graph, narrow
from tomewise.loops.planning import Concern, Plan, Planning
from tomewise.loops.points import fit_points, list_rows, measure_points
from tomewise.loops.selection import drop_repeats
from tomewise.loops.steps import Course
from tomewise.loops.working_pictures import draw_hypergraph
from tomewise.pictures import Picture
from tomewise.recall.entity_graph import FoundEntity
from tomewise.recall.ranking import take_turns
from tomewise.types import Answer, Event, Evidence, In, NodeId, Out, Question, Retriever, Role
from tomewise.working.hypergraph import Hypergraph
from tomewise.working.point import MemoryPoint
from tomewise.working.pool import Unit

_PASSAGES = "passages"
_SHARES = {_PASSAGES: 12, HISTORY: 1}
_POINTS = 3  # points take at most one part in so many of what a role is shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How many rounds the loop may take, and how many tokens it may show.

    `relations`, `passages` are for each subquery, `description` for each entity; the answer sees at most `shown`
    passages in `context` tokens.
    """

    rounds: int = 4
    relations: int = 1500
    passages: int = 4000
    description: int = 100
    shown: int = 50
    context: int = 6000

    def __post_init__(self) -> None:
        if self.rounds < 1:
            raise UsageError(f"{self.rounds} rounds find nothing: give 1 or more")


class Evolve:
    """Fills a hypergraph with what searches find until it suffices, then answers from it."""

    def __init__(
        self,
        recall: Retriever,
        desk: Desk,
        planning: Planning,
        exploring: Exploring,
        evolution: Evolution,
        limits: Limits,
    ) -> None:
        self._recall = recall
        self._desk = desk
        self._planning = planning
        self._exploring = exploring
        self._evolution = evolution
        self._limits = limits

    @property
    def calls(self) -> CallCount:
        """In a question without earlier memory; a search finds by the investigation, and from anywhere."""
        rounds, merging = self._limits.rounds, 1 if self._evolution.merges else 0
        searches = 2 * (1 + (rounds - 1) * self._planning.limit) + 1
        most = 1 + (rounds - 1) * (2 + merging) + 1
        formula = f"1 in the first round, {2 + merging} in a later one and 1 for the answer"
        own = CallCount(f"{formula}, at most {most} in {rounds} rounds", most)
        return sum_calls([own, read_calls(self._recall).repeat(searches)])

    def open_memory(self, data: object = None) -> Hypergraph:
        """A new hypergraph, or the one of which `dump` made `data`."""
        return Hypergraph() if data is None else Hypergraph.load(data)

    def draw(self, question: Question, answer: Answer) -> Picture:
        """The hypergraph behind an answer of this loop, from its events. Raises UsageError without it."""
        return draw_hypergraph(question, answer)

    async def run(self, question: Question, memory: Hypergraph | None = None) -> AsyncIterator[Event | Answer]:
        """Events by round, then the answer. A `memory` that is given is used and changed; without one it is new."""
        memory = self.open_memory() if memory is None else memory
        course = _Course(
            question=question,
            memory=memory,
            contexts=self._make_contexts(question),
            concerns=(Concern(question.text, question.text),),
            has_past=bool(memory.points),
        )
        for step in range(self._limits.rounds):
            course.step = step
            if step or course.has_past:
                yield await self._plan(course)
            for event in course.report_skipped():
                yield event
            if course.end:
                break
            async for event in self._explore(course):
                yield event
            yield await self._evolve(course)
            if self._evolution.merges and (step or course.has_past) and len(course.memory.points) > 1:
                yield await self._merge(course)
            for event in course.report_skipped():
                yield event
        reason = course.end or f"no round is left (allowed: {self._limits.rounds})"
        yield Stopped(step=course.step, reason=reason)
        async for output in self._conclude(course):
            yield output

    async def _plan(self, course: _Course) -> Event:
        """Find the next concerns; the end where there are none."""
        shown = self._fit_points(course, PLAN)
        asked = self._planning.plan(course.question.text, course.memory, shown, course.searched, course.skipped)
        plan = await course.skipped.usable(asked, None)
        course.concerns = plan.concerns if plan else ()
        if plan is None:
            course.end = "no usable plan was made"
        elif plan.sufficient:
            course.end = "the memory suffices"
        elif not plan.concerns:
            course.end = "no new subquery was thought of"
        return _make_plan_event(course.step, plan)

    async def _explore(self, course: _Course) -> AsyncIterator[Event]:
        """Search for all concerns side by side."""
        searches = (
            self._exploring.search(concern, course.memory, course.question.within) for concern in course.concerns
        )
        course.searches = await gather_calls(searches)
        for search in course.searches:
            course.searched.append(search.concern.query)
            course.found |= _by_node(_drop(search.found.passages, course.found))
            yield _make_search_event(course.step, search)

    async def _evolve(self, course: _Course) -> Event:
        """Take in what was found."""
        shown = self._fit_points(course, EVOLVE)
        material = await asyncio.to_thread(self._select, course)
        asked = self._evolution.evolve(course.question.text, course.memory, shown, material, course.skipped)
        changes = await course.skipped.usable(asked, Changes()) if material.evidence else Changes()
        return Evolved(
            step=course.step,
            inserted=list_rows(course.memory, changes.inserted),
            updated=list_rows(course.memory, changes.updated),
            overlay=sorted(_list_overlay(course.memory, changes.inserted + changes.updated)),
            shown=[piece.node for piece in material.evidence],
            notes=[point.description for point in (*changes.updated, *changes.inserted)],
        )

    async def _merge(self, course: _Course) -> Event:
        """Join points that belong together."""
        shown = self._fit_points(course, MERGE_POINTS)
        asked = self._evolution.merge(course.question.text, course.memory, shown, course.skipped)
        merged = await course.skipped.usable(asked, list[MemoryPoint]())
        parts = {point.id: list(point.history[-1].earlier) for point in merged}
        return Merged(
            step=course.step,
            merged=list_rows(course.memory, merged),
            parts=parts,
            notes=[point.description for point in merged],
        )

    async def _conclude(self, course: _Course) -> AsyncIterator[Event | Answer]:
        """Answer from all points and from the passages of their vertices."""
        question = course.question
        context = await asyncio.to_thread(self._make_context, course, await self._rank_passages(course))
        prepared = await self._desk.prepare_chosen(
            question, context.evidence, notes=context.notes, may_decline=not question.force
        )
        attempt = await self._desk.attempt(question, prepared)
        sizes, rows = measure_points(course.memory.points), list_rows(course.memory, course.memory.points)
        memory = course.memory.dump()
        yield make_attempt_event(AnsweredFromPoints, course.step, context, attempt, **sizes, pool=rows, memory=memory)
        yield attempt.answer

    async def _rank_passages(self, course: _Course) -> list[Evidence]:
        """What the points rest on and the nearest passages in turn, then what else was found; each once.

        The nearest are those of the points' vertices, or of all passages where the graph knows no vertex.
        """
        memory = course.memory
        vertices = find_in_graph(memory, [point.id for point in memory.points])
        within = narrow(course.question.within, vertices or None, frozenset())
        nearest = await self._recall.retrieve(course.question.text, self._limits.shown, within=within)
        grounds = [memory.find_grounds(point) for point in memory.rank()]
        if course.has_past:
            missing = [node for nodes in grounds for node in nodes if node not in course.found]
            known = await asyncio.to_thread(self._desk.fetch, list(dict.fromkeys(missing)), course.question.within)
            course.found |= _by_node(known)
        of_points = [[course.found[node] for node in nodes if node in course.found] for nodes in grounds]
        best = take_turns([list(take_turns(of_points)), nearest])
        return drop_repeats([*best, *course.found.values()])[: self._limits.shown]

    def _make_context(self, course: _Course, ranked: Sequence[Evidence]) -> Context:
        points = course.memory.rank()
        notes = [Unit(probe=point.id, layer=_PASSAGES, evidence=(), cue=point.description) for point in points]
        return course.contexts.context({_PASSAGES: ranked}, notes, "")

    def _select(self, course: _Course) -> Material:
        """What the evolving role is shown: for each subquery what fits into its budget, nothing twice."""
        room = self._desk.measure_room(EVOLVE) * (_POINTS - 1) // _POINTS // max(1, len(course.searches))
        relations: dict[NodeId, Evidence] = {}
        passages: dict[NodeId, Evidence] = {}
        entities: dict[NodeId, FoundEntity] = {}
        for search in course.searches:
            found = search.found
            most = min(self._limits.relations, room // 4)
            relations |= _by_node(fit_to_budget(_drop(found.relations, relations), most, self._desk.count))
            most = min(self._limits.passages, room // 2)
            passages |= _by_node(fit_to_budget(_drop(found.passages, passages), most, self._desk.count))
            entities |= {entity.id: entity for entity in found.entities if entity.id not in entities}
        described = [
            replace(entity, text=course.contexts.shorten(entity.text, self._limits.description))
            for entity in entities.values()
        ]
        shown = [*relations.values(), *self._desk.put_in_order(list(passages.values()))]
        return Material([search.concern.query for search in course.searches], described, shown)

    def _fit_points(self, course: _Course, role: Role[In, Out]) -> list[MemoryPoint]:
        return fit_points(course.memory, self._desk.measure_room(role) // _POINTS, self._desk.count)

    def _make_contexts(self, question: Question) -> Contexts:
        room = self._desk.measure_answer_room(question)
        return Contexts(self._desk, min(self._limits.context, room), _SHARES)


@dataclass(slots=True, kw_only=True)
class _Course(Course):
    """How far the loop has come with one question. `found` are all passages, in the order of the searches."""

    memory: Hypergraph
    contexts: Contexts
    concerns: tuple[Concern, ...] = ()
    searches: list[Search] = field(default_factory=list)  # of this round
    searched: list[str] = field(default_factory=list)
    found: dict[NodeId, Evidence] = field(default_factory=dict)
    has_past: bool = False  # whether the memory brings points from an earlier question


def _by_node(evidence: Sequence[Evidence]) -> dict[NodeId, Evidence]:
    return {piece.node: piece for piece in evidence}


def _drop(evidence: Sequence[Evidence], known: dict[NodeId, Evidence]) -> list[Evidence]:
    return [piece for piece in evidence if piece.node not in known]


def _list_overlay(memory: Hypergraph, points: Sequence[MemoryPoint]) -> Iterator[str]:
    """The names of entities that only this memory knows."""
    vertices = {vertex for point in points for vertex in point.vertices}
    return (memory.vertices[vertex].name for vertex in vertices if not memory.vertices[vertex].in_graph)


def _make_plan_event(step: int, plan: Plan | None) -> Event:
    concerns = plan.concerns if plan else ()
    return Planned(
        step=step,
        sufficient=bool(plan and plan.sufficient),
        reasoning=plan.reasoning if plan else "",
        concerns=[
            PlannedSearch(concern=each.text, subquery=each.query, place=each.place, points=each.points)
            for each in concerns
        ],
    )


def _make_search_event(step: int, search: Search) -> Event:
    found, is_local = search.found, search.place == "local"
    return Explored(
        step=step,
        subquery=search.concern.query,
        place=search.place,
        points=search.concern.points,
        narrowed_to=search.entities if is_local else None,
        left_out=None if is_local else search.entities,
        entities=[entity.name for entity in found.entities],
        evidence=as_pieces([*found.relations, *found.passages]),
        relations=len(found.relations),
    )
