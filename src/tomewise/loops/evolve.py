"""The loop whose working memory is a hypergraph (HGMem, sections 3.2 to 3.6): plan, explore, change, merge, answer.

- The first round searches all of the long-term memory with the question itself, without a plan. If the hypergraph has
  points of an earlier question, a plan adds subqueries to it.
- A round is one call to plan, one to change points and one to merge them, one after the other; searches run side by
  side. Without a usable plan it searches with the question. The first round of a new memory merges nothing.
- Rounds end when the memory suffices, without a usable subquery, or after the last one, which no planning follows.
- What cannot be used of a reply is recorded and skipped: a point, label or entity that does not exist, an empty
  description, a point merged twice.
- The answering role sees all points, and the passages of their entities, those nearest to the question first while
  they have room (section 3.6, which gives neither an order nor a bound).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from tomewise.calls import CallCount, read_calls, sum_calls
from tomewise.concurrency import gather_calls
from tomewise.errors import UsageError
from tomewise.events import make_event
from tomewise.language.roles import ANSWER, EVOLVE, MERGE_POINTS, PLAN
from tomewise.loops.desk import Desk
from tomewise.loops.evidence import measure_texts
from tomewise.loops.exploring import (
    Concern,
    Exploring,
    Plan,
    Planning,
    Search,
    find_in_graph,
    list_found,
    narrow_scope,
)
from tomewise.loops.last_prompt import Context
from tomewise.loops.point_editor import Changes, PointEditor
from tomewise.loops.steps import LoopState, make_attempt_event, take_steps
from tomewise.recall.ranking import drop_repeats, rank_evidence
from tomewise.types import Answer, Embedder, Event, Evidence, In, Out, Question, Retriever, Role
from tomewise.working.hypergraph import Hypergraph, MemoryPoint
from tomewise.working.nearness import Nearness

_POINTS = 3  # beside what is found, points take at most one part in so many of what a role is shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How many rounds the loop may take, and how many tokens it may show.

    `past` is for all points that a role is shown if points of earlier questions are among them, `context` for the
    answer. A loop that `goes_on` ends only after the last round, or without a subquery (figure 3).
    """

    rounds: int = 4
    goes_on: bool = False
    past: int = 800
    context: int = 6000

    def __post_init__(self) -> None:
        if self.rounds < 1:
            raise UsageError(f"{self.rounds} rounds find nothing: give 1 or more")


@dataclass(frozen=True, eq=False)
class Evolve:
    """Fills a hypergraph with what searches find until it suffices, then answers from it.

    `embedder` compares points with the question, and `passages` ranks those in which given entities are seen.
    """

    passages: Retriever
    desk: Desk
    embedder: Embedder
    planning: Planning
    exploring: Exploring
    editor: PointEditor
    limits: Limits

    @property
    def calls(self) -> CallCount:
        """The calls of a question without points of earlier ones."""
        rounds, later = self.limits.rounds, 2 + self.editor.merges  # plan, change, merge
        most = 1 + (rounds - 1) * later + 1
        formula = f"1 in the first round, at most {later} in a later one and 1 for the answer"
        calls = CallCount(f"{formula}, at most {most} in {rounds} rounds", most)
        searches = 1 + (rounds - 1) * self.planning.limit
        return sum_calls([calls, read_calls(self.exploring.investigation.passages).repeat(searches)])

    def open_memory(self, data: object = None) -> Hypergraph:
        """A new hypergraph, or the one of which `dump` made `data`."""
        return Hypergraph() if data is None else Hypergraph.load(data)

    async def run(self, question: Question, memory: Hypergraph | None = None) -> AsyncIterator[Event | Answer]:
        """Events by round, then the answer. `memory` is used and changed; without it the hypergraph is new."""
        memory = self.open_memory() if memory is None else memory
        memory.begin_question()
        state = _EvolveState(
            question=question, memory=memory, nearness=Nearness(self.embedder), has_past=bool(memory.points)
        )
        take_round = partial(self._take_round, state)
        async for event in take_steps(state, take_round, most=self.limits.rounds, name="round"):
            yield event
        context = await self._make_context(state)
        prepared = await self.desk.prepare_context(question, context, may_decline=not question.force)
        attempt = await self.desk.attempt(question, prepared)
        more = {**_measure_points(memory.points), "pool": _list_rows(memory, memory.points), "memory": memory.dump()}
        yield make_attempt_event("answered from points", state.step, context, attempt, **more)
        yield attempt.answer

    async def _take_round(self, state: _EvolveState) -> AsyncIterator[Event]:
        """Find concerns, search for them, and change and merge points by what is found (equation 2)."""
        is_first, concerns = not state.searched, list[Concern]()
        if not is_first or state.has_past:
            plan, event = await self._plan(state)
            yield event
            if plan.sufficient:
                state.end = "the memory suffices"
                return
            concerns += plan.concerns
        if is_first:
            concerns.insert(0, state.whole)
        if not concerns:
            state.end = "no new subquery was thought of"
            return
        searches = await gather_calls(
            self.exploring.search(concern, state.memory, state.question.within) for concern in concerns
        )
        for search in searches:
            if search.region != search.concern.region:
                query = search.concern.query
                state.skipped.drop(f"the graph has no entity near these points: {query!r} searches globally")
            state.searched.append(search.concern.query)
            yield _make_search_event(state.step, search)
        if list_found(searches):
            yield await self._change_points(state, searches)
            if self.editor.merges and (not is_first or state.has_past) and len(state.memory.points) > 1:
                yield await self._merge_points(state)

    async def _plan(self, state: _EvolveState) -> tuple[Plan, Event]:
        """What to search for next: the question itself, if no plan can be made."""
        shown = await asyncio.to_thread(self._fit_points, state, PLAN)
        searched = state.searched or [state.question.text]
        call = self.planning.plan(state.question.text, state.memory, shown, searched, state.skipped)
        plan = await state.skipped.try_call(call, None)
        if plan is None:
            plan = Plan(False, "", (state.whole,) if state.searched else ())
        event = make_event(
            "planned",
            state.step,
            sufficient=plan.sufficient,
            reasoning=plan.reasoning,
            concerns=[
                {"concern": each.text, "subquery": each.query, "place": each.region, "points": each.points}
                for each in plan.concerns
            ],
        )
        return plan, event

    async def _change_points(self, state: _EvolveState, searches: Sequence[Search]) -> Event:
        """Change points, and add new ones, by what was found."""
        shown = await asyncio.to_thread(self._fit_points, state, EVOLVE)
        call = self.editor.change_points(state.question.text, state.memory, shown, searches, state.skipped)
        changes = await state.skipped.try_call(call, Changes())
        points = (*changes.updated, *changes.inserted)
        vertices = {state.memory.vertices[vertex] for point in points for vertex in point.vertices}
        return make_event(
            "evolved",
            state.step,
            inserted=_list_rows(state.memory, changes.inserted),
            updated=_list_rows(state.memory, changes.updated),
            overlay=sorted(vertex.name for vertex in vertices if not vertex.in_graph),
            shown=list(changes.shown),
            notes=[point.description for point in points],
        )

    async def _merge_points(self, state: _EvolveState) -> Event:
        """Join points that belong together."""
        shown = await asyncio.to_thread(self._fit_points, state, MERGE_POINTS)
        call = self.editor.merge_points(state.question.text, state.memory, shown, state.skipped)
        merged = await state.skipped.try_call(call, list[MemoryPoint]())
        return make_event(
            "merged",
            state.step,
            merged=_list_rows(state.memory, merged),
            parts={point.id: point.history[-1].earlier for point in merged},
            notes=[point.description for point in merged],
        )

    async def _make_context(self, state: _EvolveState) -> Context:
        """What the answering role sees (section 3.6): all points, and those passages of their entities that fit."""
        points = await asyncio.to_thread(self._fit_points, state, ANSWER)
        notes = tuple(dict.fromkeys(point.description for point in points))
        room = min(self.limits.context, await asyncio.to_thread(self.desk.measure_answer_room, state.question))
        ranked = await self._rank_passages(state, points)
        room -= sum(measure_texts(notes, self.desk.count))
        shown = await asyncio.to_thread(self.desk.layout.pack, ranked, room)
        return Context(tuple(shown), {}, notes, len(ranked) - len(shown))

    async def _rank_passages(self, state: _EvolveState, points: Sequence[MemoryPoint]) -> list[Evidence]:
        """The passages in which the entities of these points are seen, the nearest to the question first.

        An entity that the graph does not know is seen where a point that joins it says so: in the evidence it names.
        """
        question, memory = state.question, state.memory
        scope = narrow_scope(question.within, find_in_graph(memory, points), frozenset())
        seen = await self.passages.retrieve(question.text, self.limits.context, within=scope)
        beside = [point for point in points if find_in_graph(memory, [point]) != point.vertices]
        nodes = dict.fromkeys(node for point in beside for node in memory.find_grounds(point))
        named = await asyncio.to_thread(self.desk.fetch, list(nodes), question.within)
        scores = await asyncio.to_thread(state.nearness.score, question.text, [piece.text for piece in named])
        scored = [replace(piece, score=score) for piece, score in zip(named, scores.tolist(), strict=True)]
        return rank_evidence(drop_repeats([*seen, *scored]))

    def _fit_points(self, state: _EvolveState, role: Role[In, Out]) -> list[MemoryPoint]:
        """The points that have room, those most relevant to the question, in the order in which they came.

        All are shown unless the window is too small; those of earlier questions only while all together take at most
        `past` tokens.
        """
        memory = state.memory
        scores = state.nearness.score(state.question.text, [point.description for point in memory.points])
        memory.weigh(dict(zip((point.id for point in memory.points), scores.tolist(), strict=True)))
        is_last = role is ANSWER
        room = self.desk.measure_answer_room(state.question) if is_last else self.desk.measure_room(role) // _POINTS
        points = sorted(memory.rank(), key=memory.is_past)
        kept = set()
        used = 0
        texts = [" ".join([point.description, *memory.list_names(point)]) for point in points]
        for point, tokens in zip(points, measure_texts(texts, self.desk.count), strict=True):
            if used + tokens <= (min(room, self.limits.past) if memory.is_past(point) else room):
                kept.add(point.id)
                used += tokens
        return [point for point in memory.points if point.id in kept]


@dataclass(slots=True, kw_only=True)
class _EvolveState(LoopState):
    """The state of the loop for one question."""

    memory: Hypergraph
    nearness: Nearness
    searched: list[str] = field(default_factory=list)
    has_past: bool = False  # whether the memory brings points from an earlier question

    @property
    def whole(self) -> Concern:
        """The question itself, searched for in the whole memory."""
        return Concern(self.question.text, self.question.text, "everywhere")


def _make_search_event(step: int, search: Search) -> Event:
    found, is_local = search.found, search.region == "local"
    return make_event(
        "explored",
        step,
        subquery=search.concern.query,
        place=search.region,
        points=search.concern.points,
        entities=[entity.title for entity in found.entities],
        evidence=[*found.relations, *found.passages],
        relations=len(found.relations),
        narrowed_to=search.entities if is_local else None,
        left_out=None if is_local else search.entities,
    )


def _list_rows(memory: Hypergraph, points: Iterable[MemoryPoint]) -> list[dict[str, object]]:
    """Points as rows of plain values, for events."""
    return [
        {
            "point": point.id,
            "description": point.description,
            "entities": "; ".join(memory.list_names(point)),
            "order": point.order,
            "single": point.is_single,
        }
        for point in points
    ]


def _measure_points(points: Sequence[MemoryPoint]) -> dict[str, float]:
    """How many points there are, and how many vertices a point has on average and at most (HGMem, table 3)."""
    sizes = [len(point.vertices) for point in points]
    mean = round(sum(sizes) / len(sizes), 2) if sizes else 0.0
    return {"points": len(sizes), "vertices_per_point": mean, "most_vertices": max(sizes, default=0)}
