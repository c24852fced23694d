"""The loop whose working memory is a hypergraph (HGMem, sections 3.2 to 3.6): plan, explore, change, merge, answer.

- The first round searches all of the long-term memory with the question itself, without a plan. If the hypergraph has
  points of an earlier question, a plan adds subqueries to it.
- A round is one call to plan, one to change points and one to merge them, one after the other; searches run side by
  side. Without a usable plan it searches with the question.
- Rounds end when the memory suffices, when no usable subquery is left, when nothing new is found, or after the last
  round, which no planning follows. A declined answer uses the rounds that are left: what it misses is searched for.
- Relations, then passages, fill a budget of tokens for each subquery. Nothing is shown twice (`loops.exploring`).
- Roles are shown the points that are most relevant to the question, up to a number of tokens.
- What cannot be used of a reply is recorded and skipped: a point, label or entity that does not exist, an empty
  description, a point merged twice.
- The answering role sees what all searches found and the points, by the rule of the last prompt (`loops.last_prompt`);
  the passages on which points rest count as one more search. The question may be declined unless a guess is asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain

from tomewise.calls import CallCount, read_calls, sum_calls
from tomewise.concurrency import gather_calls
from tomewise.errors import UsageError
from tomewise.events import make_event
from tomewise.language.roles import ANSWER, EVOLVE, MERGE_POINTS, PLAN
from tomewise.loops.desk import Attempt, Desk
from tomewise.loops.evidence import fold, measure_texts
from tomewise.loops.exploring import Concern, Exploring, Material, Plan, Planning, Search, Seen
from tomewise.loops.last_prompt import DEPTH, Context, Note, Searched
from tomewise.loops.point_editor import Changes, PointEditor
from tomewise.loops.steps import Contexts, LoopState, make_attempt_event, rank_found
from tomewise.loops.working_pictures import draw_hypergraph
from tomewise.recall.ranking import drop_repeats, take_turns
from tomewise.types import Answer, Embedder, Event, Evidence, In, NodeId, Out, Question, Retriever, Role
from tomewise.working.hypergraph import Hypergraph, MemoryPoint
from tomewise.working.nearness import Nearness

_POINTS = 3  # points take at most one part in so many of what a role is shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How many rounds the loop may take, and how many tokens it may show.

    `relations`, `passages` are for each subquery, `description` for each entity, `past` for all points that a role is
    shown if points of earlier questions are among them, `context` for the answer. A loop that `goes_on` ends only after
    the last round, or without a subquery (figure 3).
    """

    rounds: int = 4
    goes_on: bool = False
    past: int = 800
    relations: int = 1500
    passages: int = 4000
    description: int = 100
    context: int = 6000

    def __post_init__(self) -> None:
        if self.rounds < 1:
            raise UsageError(f"{self.rounds} rounds find nothing: give 1 or more")


@dataclass(frozen=True, eq=False)
class Evolve:
    """Fills a hypergraph with what searches find until it suffices, then answers from it.

    `embedder` compares points with the question.
    """

    recall: Retriever
    desk: Desk
    embedder: Embedder
    planning: Planning
    exploring: Exploring
    editor: PointEditor
    limits: Limits
    draw = staticmethod(draw_hypergraph)

    @property
    def calls(self) -> CallCount:
        """The calls of a question without points of earlier ones. Each subquery makes two searches."""
        rounds, merging = self.limits.rounds, 1 if self.editor.merges else 0
        searches = 2 * (1 + (rounds - 1) * self.planning.limit) + 1
        later = 3 + merging  # plan, an answer that is declined, change, merge
        most = 1 + (rounds - 1) * later + 1
        formula = f"1 in the first round, at most {later} in a later one and 1 for the answer"
        calls = CallCount(f"{formula}, at most {most} in {rounds} rounds", most)
        return sum_calls([calls, read_calls(self.recall).repeat(searches)])

    def open_memory(self, data: object = None) -> Hypergraph:
        """A new hypergraph, or the one of which `dump` made `data`."""
        return Hypergraph() if data is None else Hypergraph.load(data)

    async def run(self, question: Question, memory: Hypergraph | None = None) -> AsyncIterator[Event | Answer]:
        """Events by round, then the answer. `memory` is used and changed; without it the hypergraph is new."""
        memory = self.open_memory() if memory is None else memory
        memory.begin_question()
        state = _EvolveState(
            question=question,
            memory=memory,
            nearness=Nearness(self.embedder),
            contexts=await asyncio.to_thread(Contexts, question, self.desk, self.limits.context, {}),
            seen=Seen(self.desk),
            has_past=bool(memory.points),
        )
        while True:
            async for event in self._take_rounds(state):
                yield event
            context, attempt = await self._attempt(state)
            missing = attempt.answer.missing
            goes_on = not (attempt.answer.resolved or question.force or state.taken == self.limits.rounds)
            if not goes_on or fold(missing) in {"", *map(fold, state.searched)}:
                break
            yield make_attempt_event("tried", state.step, context, attempt)
            state.concerns, state.end = [Concern(missing, missing, "everywhere")], ""
        sizes, rows = _measure_points(memory.points), _list_rows(memory, memory.points)
        yield make_attempt_event(
            "answered from points", state.step, context, attempt, **sizes, pool=rows, memory=memory.dump()
        )
        yield attempt.answer

    async def _take_rounds(self, state: _EvolveState) -> AsyncIterator[Event]:
        """Rounds until one says why it is the last."""
        while not state.end:
            state.step = state.taken
            async for event in self._take_round(state):
                yield event
            for event in state.report_skipped():
                yield event
            if not state.end and state.taken == self.limits.rounds:
                state.end = f"no round is left (allowed: {state.taken})"
        yield make_event("stopped", state.step, reason=state.end)

    async def _take_round(self, state: _EvolveState) -> AsyncIterator[Event]:
        """Find concerns, search for them, and change and merge points by what is new."""
        if not state.concerns and (state.searched or state.has_past):
            yield await self._plan(state)
        if not state.searched:
            state.concerns.insert(0, state.whole)
        for event in state.report_skipped():
            yield event
        if state.concerns:
            async for event in self._explore(state):
                yield event
        if state.end:
            return
        state.taken += 1
        material = await asyncio.to_thread(self._select, state)
        if material.evidence:
            yield await self._change_points(state, material)
            if self.editor.merges and (state.step or state.has_past) and len(state.memory.points) > 1:
                yield await self._merge_points(state)
        elif not self.limits.goes_on:
            state.end = "nothing new was found"

    async def _plan(self, state: _EvolveState) -> Event:
        """Find the next concerns; without any the loop ends, unless the question itself was not searched yet."""
        shown = await asyncio.to_thread(self._fit_points, state, PLAN)
        searched = state.searched or [state.question.text]
        call = self.planning.plan(state.question.text, state.memory, shown, searched, state.skipped)
        plan = await state.skipped.try_call(call, None)
        state.concerns = [*plan.concerns] if plan else [state.whole]
        plan = plan or Plan(False, "")
        if plan.sufficient:
            state.end = "the memory suffices"
        elif not state.concerns and state.searched:
            state.end = "no new subquery was thought of"
        return make_event(
            "planned",
            state.step,
            sufficient=plan.sufficient,
            reasoning=plan.reasoning,
            concerns=[
                {"concern": each.text, "subquery": each.query, "place": each.region, "points": each.points}
                for each in plan.concerns
            ],
        )

    async def _explore(self, state: _EvolveState) -> AsyncIterator[Event]:
        """Search for all concerns side by side."""
        concerns, state.concerns = state.concerns, []
        read = frozenset(state.seen.nodes)
        state.searches = await gather_calls(
            self.exploring.search(concern, state.memory, state.question.within, read) for concern in concerns
        )
        for search in state.searches:
            concern = search.concern
            if search.region != concern.region:
                state.skipped.drop(f"the graph has no entity near these points: {concern.query!r} searches globally")
            state.searched.append(concern.query)
            state.found.setdefault(concern.query, []).extend(search.found.passages)
            yield _make_search_event(state.step, search)

    async def _change_points(self, state: _EvolveState, material: Material) -> Event:
        """Change points, and add new ones, by what was found."""
        shown = await asyncio.to_thread(self._fit_points, state, EVOLVE)
        call = self.editor.change_points(state.question.text, state.memory, shown, material, state.skipped)
        changes = await state.skipped.try_call(call, Changes())
        points = (*changes.updated, *changes.inserted)
        vertices = {state.memory.vertices[vertex] for point in points for vertex in point.vertices}
        return make_event(
            "evolved",
            state.step,
            inserted=_list_rows(state.memory, changes.inserted),
            updated=_list_rows(state.memory, changes.updated),
            overlay=sorted(vertex.name for vertex in vertices if not vertex.in_graph),
            shown=[piece.id for piece in material.evidence],
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

    async def _attempt(self, state: _EvolveState) -> tuple[Context, Attempt]:
        """Answer from the points and from what all searches found."""
        context = await self._make_context(state)
        prepared = await self.desk.prepare_context(state.question, context, may_decline=not state.question.force)
        return context, await self.desk.attempt(state.question, prepared)

    async def _make_context(self, state: _EvolveState) -> Context:
        """What the answering role sees: the points, and what all searches found, each asked again and deeper.

        Of the question and of each subquery what its rounds read comes first, which the graph may have found.
        The passages on which points rest count as one more search: of each point in turn, the most relevant first.
        """
        question = state.question
        shown = await asyncio.to_thread(self._fit_points, state, ANSWER)
        ranked_points = [point for point in state.memory.rank() if point in shown]
        grounds: dict[str, list[NodeId]] = {}
        for point in ranked_points:
            grounds.setdefault(point.description, []).extend(state.memory.find_grounds(point))
        queries = dict.fromkeys([question.text, *state.searched])
        searches = (self.recall.retrieve(query, DEPTH, within=question.within) for query in queries)
        found = await gather_calls(searches)
        first, *others = [
            drop_repeats([*state.found.get(query, ()), *deeper]) for query, deeper in zip(queries, found, strict=True)
        ]
        nodes = list(chain.from_iterable(grounds.values()))
        fetched = await asyncio.to_thread(self.desk.fetch, list(dict.fromkeys(nodes)), question.within)
        pieces = {piece.id: piece for piece in fetched}
        in_turn = take_turns([[pieces[node] for node in nodes if node in pieces] for nodes in grounds.values()])
        cited = [Searched(drop_repeats(in_turn))]
        ranked = await rank_found(self.desk, question, first, others, after=cited)
        notes = [Note(text, nodes) for text, nodes in grounds.items()]
        return await asyncio.to_thread(state.contexts.make_context, ranked, notes)

    def _select(self, state: _EvolveState) -> Material:
        """What the role that changes points is shown: for each subquery what fits into its budget, nothing twice."""
        limits = self.limits
        room = self.desk.measure_room(EVOLVE) * (_POINTS - 1) // _POINTS // max(1, len(state.searches))
        relations, passages = min(limits.relations, room // 4), min(limits.passages, room // 2)
        return state.seen.select(state.searches, relations=relations, passages=passages, description=limits.description)

    def _fit_points(self, state: _EvolveState, role: Role[In, Out]) -> list[MemoryPoint]:
        """The points that have room, those most relevant to the question, in the order in which they came.

        Those of earlier questions are added only while all together take at most `past` tokens.
        """
        memory = state.memory
        scores = state.nearness.score(state.question.text, [point.description for point in memory.points])
        memory.weigh(dict(zip((point.id for point in memory.points), scores.tolist(), strict=True)))
        room = self.desk.measure_room(role) // _POINTS
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
    contexts: Contexts
    seen: Seen
    concerns: list[Concern] = field(default_factory=list)  # to be searched for next
    taken: int = 0  # rounds that searched, each to the end
    searches: list[Search] = field(default_factory=list)  # of this round
    searched: list[str] = field(default_factory=list)
    found: dict[str, list[Evidence]] = field(default_factory=dict)  # by query
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
        entities=[entity.name for entity in found.entities],
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
