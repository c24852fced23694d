"""The loop whose working memory is a hypergraph (HGMem, sections 3.2 to 3.6): plan, explore, change, merge, answer.

- The first round searches all of the long-term memory with the question itself, without a plan. If the hypergraph has
  points of an earlier question, the first round is planned too.
- A round is one call to plan, one to change points and one to merge them, one after the other; searches run side by
  side.
- The loop ends when the memory suffices, when no usable subquery is left, or after the last round, which no planning
  follows. An unusable plan ends it too: then the answer is made from what is known.
- Relations, then passages, fill a budget of tokens for each subquery; what several of them found is shown once.
- What cannot be used of a reply is recorded and skipped: a point, label or entity that does not exist, an empty
  description, a point merged twice.
- The answering role sees the points (`Hypergraph.rank`) and two lists of passages in turn: those from which the points
  were made, and those nearest to the question. The nearest are looked for among the passages of the points' vertices,
  or among all passages if the graph has none of these vertices. If there is room, all else that was found follows, in
  the order of the searches. The question may be declined unless a guess is asked for.
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
from tomewise.loops.exploring import Exploring, Search, find_in_graph, narrow_scope
from tomewise.loops.planning import Concern, Plan, Planning
from tomewise.loops.point_editor import Changes, Material, PointEditor
from tomewise.loops.points import fit_points, list_rows, measure_points
from tomewise.loops.selection import drop_repeats
from tomewise.loops.steps import LoopState
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
        editor: PointEditor,
        limits: Limits,
    ) -> None:
        self._recall = recall
        self._desk = desk
        self._planning = planning
        self._exploring = exploring
        self._editor = editor
        self._limits = limits

    @property
    def calls(self) -> CallCount:
        """The calls of a question without points of earlier ones. Each subquery makes two searches."""
        rounds, merging = self._limits.rounds, 1 if self._editor.merges else 0
        searches = 2 * (1 + (rounds - 1) * self._planning.limit) + 1
        most = 1 + (rounds - 1) * (2 + merging) + 1
        formula = f"1 in the first round, {2 + merging} in a later one and 1 for the answer"
        calls = CallCount(f"{formula}, at most {most} in {rounds} rounds", most)
        return sum_calls([calls, read_calls(self._recall).repeat(searches)])

    def open_memory(self, data: object = None) -> Hypergraph:
        """A new hypergraph, or the one of which `dump` made `data`."""
        return Hypergraph() if data is None else Hypergraph.load(data)

    def draw(self, question: Question, answer: Answer) -> Picture:
        """The hypergraph behind an answer of this loop, from its events. Raises UsageError without it."""
        return draw_hypergraph(question, answer)

    async def run(self, question: Question, memory: Hypergraph | None = None) -> AsyncIterator[Event | Answer]:
        """Events by round, then the answer. `memory` is used and changed; without it the hypergraph is new."""
        memory = self.open_memory() if memory is None else memory
        state = _EvolveState(
            question=question,
            memory=memory,
            contexts=self._make_contexts(question),
            concerns=(Concern(question.text, question.text),),
            has_past=bool(memory.points),
        )
        for step in range(self._limits.rounds):
            state.step = step
            if step or state.has_past:
                yield await self._plan(state)
            for event in state.report_skipped():
                yield event
            if state.end:
                break
            async for event in self._explore(state):
                yield event
            yield await self._change_points(state)
            if self._editor.merges and (step or state.has_past) and len(state.memory.points) > 1:
                yield await self._merge_points(state)
            for event in state.report_skipped():
                yield event
        reason = state.end or f"no round is left (allowed: {self._limits.rounds})"
        yield Stopped(step=state.step, reason=reason)
        async for output in self._conclude(state):
            yield output

    async def _plan(self, state: _EvolveState) -> Event:
        """Find the next concerns; without any the loop ends."""
        shown = self._fit_points(state, PLAN)
        call = self._planning.plan(state.question.text, state.memory, shown, state.searched, state.skipped)
        plan = await state.skipped.try_call(call, None)
        state.concerns = plan.concerns if plan else ()
        if plan is None:
            state.end = "no usable plan was made"
        elif plan.sufficient:
            state.end = "the memory suffices"
        elif not plan.concerns:
            state.end = "no new subquery was thought of"
        return _make_plan_event(state.step, plan)

    async def _explore(self, state: _EvolveState) -> AsyncIterator[Event]:
        """Search for all concerns side by side."""
        searches = (self._exploring.search(concern, state.memory, state.question.within) for concern in state.concerns)
        state.searches = await gather_calls(searches)
        for search in state.searches:
            state.searched.append(search.concern.query)
            state.found |= _index_by_node(_drop_known(search.found.passages, state.found))
            yield _make_search_event(state.step, search)

    async def _change_points(self, state: _EvolveState) -> Event:
        """Change points, and add new ones, by what was found."""
        shown = self._fit_points(state, EVOLVE)
        material = await asyncio.to_thread(self._select, state)
        call = self._editor.change_points(state.question.text, state.memory, shown, material, state.skipped)
        changes = await state.skipped.try_call(call, Changes()) if material.evidence else Changes()
        return Evolved(
            step=state.step,
            inserted=list_rows(state.memory, changes.inserted),
            updated=list_rows(state.memory, changes.updated),
            overlay=sorted(_list_overlay(state.memory, changes.inserted + changes.updated)),
            shown=[piece.node for piece in material.evidence],
            notes=[point.description for point in (*changes.updated, *changes.inserted)],
        )

    async def _merge_points(self, state: _EvolveState) -> Event:
        """Join points that belong together."""
        shown = self._fit_points(state, MERGE_POINTS)
        call = self._editor.merge_points(state.question.text, state.memory, shown, state.skipped)
        merged = await state.skipped.try_call(call, list[MemoryPoint]())
        parts = {point.id: list(point.history[-1].earlier) for point in merged}
        return Merged(
            step=state.step,
            merged=list_rows(state.memory, merged),
            parts=parts,
            notes=[point.description for point in merged],
        )

    async def _conclude(self, state: _EvolveState) -> AsyncIterator[Event | Answer]:
        """Answer from all points and from the passages of their vertices."""
        question = state.question
        context = await asyncio.to_thread(self._make_context, state, await self._rank_passages(state))
        prepared = await self._desk.prepare_chosen(
            question, context.evidence, notes=context.notes, may_decline=not question.force
        )
        attempt = await self._desk.attempt(question, prepared)
        sizes, rows = measure_points(state.memory.points), list_rows(state.memory, state.memory.points)
        memory = state.memory.dump()
        yield make_attempt_event(AnsweredFromPoints, state.step, context, attempt, **sizes, pool=rows, memory=memory)
        yield attempt.answer

    async def _rank_passages(self, state: _EvolveState) -> list[Evidence]:
        """The passages from which points were made and the nearest ones in turn, then all else found; each once."""
        memory = state.memory
        vertices = find_in_graph(memory, [point.id for point in memory.points])
        within = narrow_scope(state.question.within, vertices or None, frozenset())
        nearest = await self._recall.retrieve(state.question.text, self._limits.shown, within=within)
        grounds = [memory.find_grounds(point) for point in memory.rank()]
        if state.has_past:
            missing = [node for nodes in grounds for node in nodes if node not in state.found]
            fetched = await asyncio.to_thread(self._desk.fetch, list(dict.fromkeys(missing)), state.question.within)
            state.found |= _index_by_node(fetched)
        of_points = [[state.found[node] for node in nodes if node in state.found] for nodes in grounds]
        best = take_turns([list(take_turns(of_points)), nearest])
        return drop_repeats([*best, *state.found.values()])[: self._limits.shown]

    def _make_context(self, state: _EvolveState, ranked: Sequence[Evidence]) -> Context:
        points = state.memory.rank()
        notes = [Unit(probe=point.id, layer=_PASSAGES, evidence=(), cue=point.description) for point in points]
        return state.contexts.make_context({_PASSAGES: ranked}, notes, "")

    def _select(self, state: _EvolveState) -> Material:
        """What the role that changes points is shown: for each subquery what fits into its budget, nothing twice."""
        room = self._desk.measure_room(EVOLVE) * (_POINTS - 1) // _POINTS // max(1, len(state.searches))
        relations: dict[NodeId, Evidence] = {}
        passages: dict[NodeId, Evidence] = {}
        entities: dict[NodeId, FoundEntity] = {}
        for search in state.searches:
            found = search.found
            most = min(self._limits.relations, room // 4)
            relations |= _index_by_node(fit_to_budget(_drop_known(found.relations, relations), most, self._desk.count))
            most = min(self._limits.passages, room // 2)
            passages |= _index_by_node(fit_to_budget(_drop_known(found.passages, passages), most, self._desk.count))
            entities |= {entity.id: entity for entity in found.entities if entity.id not in entities}
        described = [
            replace(entity, text=state.contexts.shorten(entity.text, self._limits.description))
            for entity in entities.values()
        ]
        shown = [*relations.values(), *self._desk.put_in_order(list(passages.values()))]
        return Material([search.concern.query for search in state.searches], described, shown)

    def _fit_points(self, state: _EvolveState, role: Role[In, Out]) -> list[MemoryPoint]:
        return fit_points(state.memory, self._desk.measure_room(role) // _POINTS, self._desk.count)

    def _make_contexts(self, question: Question) -> Contexts:
        room = self._desk.measure_answer_room(question)
        return Contexts(self._desk, min(self._limits.context, room), _SHARES)


@dataclass(slots=True, kw_only=True)
class _EvolveState(LoopState):
    """The state of the loop for one question. `found` are all passages, in the order of the searches."""

    memory: Hypergraph
    contexts: Contexts
    concerns: tuple[Concern, ...] = ()
    searches: list[Search] = field(default_factory=list)  # of this round
    searched: list[str] = field(default_factory=list)
    found: dict[NodeId, Evidence] = field(default_factory=dict)
    has_past: bool = False  # whether the memory brings points from an earlier question


def _index_by_node(evidence: Sequence[Evidence]) -> dict[NodeId, Evidence]:
    return {piece.node: piece for piece in evidence}


def _drop_known(evidence: Sequence[Evidence], known: dict[NodeId, Evidence]) -> list[Evidence]:
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
            PlannedSearch(concern=each.text, subquery=each.query, place=each.region, points=each.points)
            for each in concerns
        ],
    )


def _make_search_event(step: int, search: Search) -> Event:
    found, is_local = search.found, search.region == "local"
    return Explored(
        step=step,
        subquery=search.concern.query,
        place=search.region,
        points=search.concern.points,
        narrowed_to=search.entities if is_local else None,
        left_out=None if is_local else search.entities,
        entities=[entity.name for entity in found.entities],
        evidence=as_pieces([*found.relations, *found.passages]),
        relations=len(found.relations),
    )
