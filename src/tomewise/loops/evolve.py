"""The loop whose working memory is a hypergraph (HGMem, sections 3.2 to 3.6): plan, search, change, merge, answer.

- The first round searches all of the long-term memory with the question itself, without a plan. If the hypergraph has
  points of an earlier question, a plan adds subqueries to it.
- A round is one call to plan, one to change points and one to merge them, one after the other; searches run side by
  side. A round that finds no new passage changes nothing, and points are merged only where some changed since they were
  merged last. The first round of a new memory merges nothing.
- Rounds end when the memory suffices, without a usable subquery, or after the last one, which no planning follows.
- What cannot be used of a reply is recorded and skipped: a point, label or entity that does not exist, an empty
  description, a point merged twice.
- The answering role sees all points, and the passages that they name as evidence or in which their entities are seen
  (section 3.6, which gives no order and no bound). Points have up to half of the room, passages what is left.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, TypeAlias

from tomewise.calls import CallCount, read_calls, sum_calls
from tomewise.concurrency import gather_calls
from tomewise.errors import UsageError
from tomewise.events import make_event
from tomewise.language.labels import find_labelled
from tomewise.language.roles import (
    EVOLVE,
    MERGE_POINTS,
    PLAN,
    EvolveIn,
    InsertionOut,
    MergePointsIn,
    PlanIn,
    PlanOut,
    PointShown,
    UpdateOut,
)
from tomewise.loops.desk import Desk
from tomewise.loops.evidence import measure_texts
from tomewise.loops.last_prompt import DEPTH, Context, Searched, fuse, weigh_queries
from tomewise.loops.steps import LoopState, make_attempt_event, take_steps
from tomewise.memory.graph.entity_names import normalise_name
from tomewise.recall.entity_graph import Findings, Investigation
from tomewise.recall.ranking import drop_repeats, rank_evidence, take_turns
from tomewise.store.records import PASSAGES
from tomewise.types import Answer, Embedder, Event, Evidence, NodeId, Question, Retriever, Role, Scope
from tomewise.working.hypergraph import Hypergraph, MemoryPoint, PointId
from tomewise.working.nearness import Nearness

# Where to search: around points, beyond all of them, or in the whole memory.
Region: TypeAlias = Literal["local", "global", "everywhere"]
Regions: TypeAlias = Literal["either", "local", "global"]
_PART = 3  # beside what is found, points take at most one part in so many of what a role is shown
_ANSWER_PART = 2  # and of what the answering role is shown
_PAST = 800  # tokens of all points that a role is shown if points of earlier questions are among them


@dataclass(frozen=True, slots=True)
class Concern:
    """An open matter with its subquery, and where to search."""

    text: str
    query: str
    region: Region = "global"
    points: tuple[PointId, ...] = ()


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


@dataclass(frozen=True, eq=False, kw_only=True)
class Evolve:
    """Fills a hypergraph with what searches find until it suffices, then answers from it.

    A subquery finds `limit` passages of the entities that it finds (n_d). A local search looks `hops` steps from the
    entities of a point: 1 as in the paper, 2 as in the released code. Unless the loop `may_stop`, it asks for concerns
    although the memory suffices (figure 3). With `replaces_entities` an update changes the entities of a point, as in
    the released code; with `keeps_merged` merged points stay. A call that changes points reads `reading` tokens of
    evidence, and the answering role sees `context`. `passages` ranks those in which given entities are seen.
    """

    investigation: Investigation
    passages: Retriever
    desk: Desk
    embedder: Embedder
    rounds: int
    subqueries: int
    regions: Regions
    may_stop: bool
    limit: int
    hops: int
    updates: bool
    merges: bool
    replaces_entities: bool
    keeps_merged: bool
    reading: int
    context: int

    @property
    def calls(self) -> CallCount:
        """The calls of a question without points of earlier ones."""
        later = 2 + self.merges  # plan, change, merge
        most = 1 + (self.rounds - 1) * later + 1
        formula = f"1 in the first round, at most {later} in a later one and 1 for the answer"
        calls = CallCount(f"{formula}, at most {most} in {self.rounds} rounds", most)
        searches = 1 + (self.rounds - 1) * self.subqueries
        return sum_calls([calls, read_calls(self.investigation.passages).repeat(searches)])

    def open_memory(self, data: object = None) -> Hypergraph:
        """A new hypergraph, or the one of which `dump` made `data`."""
        return Hypergraph() if data is None else Hypergraph.load(data)

    async def run(self, question: Question, memory: Hypergraph | None = None) -> AsyncIterator[Event | Answer]:
        """Events by round, then the answer. `memory` is used and changed; without it the hypergraph is new."""
        memory = self.open_memory() if memory is None else memory
        past = memory.issued if memory.points else 0
        state = _EvolveState(question=question, memory=memory, nearness=Nearness(self.embedder), past=past)
        async for event in take_steps(state, partial(self._take_round, state), most=self.rounds, name="round"):
            yield event
        context = await self._make_context(state)
        prepared = await self.desk.prepare_context(question, context, may_decline=not question.force)
        attempt = await self.desk.attempt(question, prepared)
        sizes = [len(point.entities) for point in memory.points]
        yield make_attempt_event(
            "answered from points",
            state.step,
            context,
            attempt,
            points=len(sizes),
            vertices_per_point=round(sum(sizes) / len(sizes), 2) if sizes else 0.0,  # HGMem, table 3
            pool=_list_rows(memory.points),
        )
        yield attempt.answer

    async def _take_round(self, state: _EvolveState) -> AsyncIterator[Event]:
        """Find concerns, search for them, and change and merge points by what is new (equation 2)."""
        asked = state.question.text
        is_first, is_planned = not state.searched, bool(state.searched or state.past)
        concerns = [Concern(asked, asked, "everywhere")] if is_first else []
        if is_planned:
            planned, event = await self._plan(state)
            yield event
            if state.end:
                return
            concerns += planned
        if not concerns:
            state.end = "no new subquery was thought of"
            return
        searches = await gather_calls(self._search(concern, state) for concern in concerns)
        for search in searches:
            query = search.concern.query
            if search.region != search.concern.region:
                state.skipped.drop(f"the graph has no entity near these points: {query!r} searches globally")
            state.searched.append(query)
            yield _make_search_event(state.step, search)
        async for event in self._change_points(state, searches):
            yield event
        if self.merges and is_planned and state.is_changed:
            async for event in self._merge_points(state):
                yield event

    # ------------------------------------------------------------ plan and search (section 3.4)

    async def _plan(self, state: _EvolveState) -> tuple[list[Concern], Event]:
        """What to search for next: the question beyond the memory, if no plan can be read.

        HGMem asks for the concerns first and then for the subqueries of all. Here each concern of the reply holds its
        own, so that they cannot differ in number, and a round takes a call less.
        """
        asked = state.question.text
        plan_input = PlanIn(
            question=asked,
            points=await asyncio.to_thread(self._show_points, state, PLAN),
            searched=state.searched or [asked],
            limit=self.subqueries,
            place=self.regions,
            may_stop=self.may_stop,
        )
        plan = await state.ask(self.desk, PLAN, plan_input)
        concerns = [] if plan else [Concern(asked, asked)] * bool(state.searched)
        sufficient = bool(plan and plan.sufficient and self.may_stop)
        if sufficient:
            state.end = "the memory suffices"
        elif plan:
            concerns = list(self._read_concerns(plan, state))
        event = make_event(
            "planned",
            state.step,
            sufficient=sufficient,
            reasoning=plan.reasoning if plan else "",
            concerns=[
                {"concern": each.text, "subquery": each.query, "place": each.region, "points": each.points}
                for each in concerns
            ],
        )
        return concerns, event

    def _read_concerns(self, plan: PlanOut, state: _EvolveState) -> Iterator[Concern]:
        """The concerns of a plan, each with one subquery; one without is searched for in its own words."""
        drop, count = state.skipped.drop, 0
        for concern in plan.concerns:
            query, *surplus = [*filter(None, concern.subqueries)] or [concern.concern]
            for each in surplus:
                drop(f"a second subquery of one concern: {each!r}")
            if not query:
                drop("a concern without words")
                continue
            if count == self.subqueries:
                drop(f"a concern beyond the limit of {self.subqueries}: {query!r}")
                continue
            count += 1
            points = list[PointId]()
            for label in concern.points:
                try:
                    points.append(state.memory.find(label).id)
                except UsageError as error:
                    drop(str(error))
            point, *others = dict.fromkeys(points) or [""]
            for each in others:
                drop(f"a second point of one concern: {each}")
            region: Region = concern.place if self.regions == "either" else self.regions
            if region == "local" and not point and self.regions == "either":
                drop(f"a local search around no point, so it searches globally: {query!r}")
                region = "global"
            yield Concern(concern.concern or query, query, region, (point,) if point else ())

    async def _search(self, concern: Concern, state: _EvolveState) -> Search:
        """Search for one concern in its part of the memory (equations 1, 6 and 7)."""
        graph, memory, region = self.investigation, state.memory, concern.region
        around, beyond = frozenset[NodeId](), frozenset[NodeId]()
        if region == "local":
            # A concern that names no point is about all of them.
            anchors = _join_entities([*map(memory.find, concern.points)] or memory.points)
            near, known = await graph.find_named(memory.find_neighbours(anchors)), await graph.find_named(anchors)
            around = near | await graph.find_neighbours(known, self.hops)
            region = "local" if around else "global"
        if region == "global":
            beyond = await graph.find_named(_join_entities(memory.points))
        scope = _narrow(state.question.within, around or None)
        scope = replace(scope, without_entities=scope.without_entities | beyond)
        return Search(concern, region, len(around or beyond), await graph.investigate(concern.query, self.limit, scope))

    # ------------------------------------------------------------ change and merge points (section 3.5)

    async def _change_points(self, state: _EvolveState, searches: Sequence[Search]) -> AsyncIterator[Event]:
        """Update and insert points by what was found, if a passage of it was not read before (equation 2).

        Passages that were read come last.
        """
        asked = state.question.text
        found = sorted(_list_found(searches), key=lambda piece: piece.id in state.read)
        points = await asyncio.to_thread(self._show_points, state, EVOLVE)
        given = EvolveIn(
            question=asked,
            subqueries=[search.concern.query for search in searches if search.concern.query != asked],
            points=points,
            may_update=self.updates,
            replaces_entities=self.replaces_entities,
        )
        prepared = await asyncio.to_thread(
            self.desk.fit, EVOLVE, found, given, budget=self.reading, arrange=self.desk.put_in_order
        )
        passages = {piece.id for search in searches for piece in search.found.passages}
        passages.intersection_update(piece.id for piece in prepared.evidence)
        if passages <= state.read:
            return
        reply = await state.ask(self.desk, EVOLVE, prepared.input)
        if reply is None:
            return
        state.read |= passages
        take = partial(self._take_record, state, prepared.evidence)
        updated = {point.id: point for record in reply.updates for point in take(record)}
        inserted = [point for record in reply.insertions for point in take(record)]
        changed = [*updated.values(), *inserted]
        state.is_changed |= bool(changed)
        yield make_event(
            "evolved",
            state.step,
            inserted=_list_rows(inserted),
            updated=_list_rows(updated.values()),
            shown=[piece.id for piece in prepared.evidence],
            cut=prepared.dropped,
            notes=[point.description for point in changed],
        )

    def _take_record(
        self, state: _EvolveState, evidence: Sequence[Evidence], record: UpdateOut | InsertionOut
    ) -> list[MemoryPoint]:
        """The point that a record changes or adds, in a list; an empty list if the record cannot be used.

        It rests on the passages of the evidence that it names. If it names evidence, but none that was shown, it cannot
        be used.
        """
        drop, names = state.skipped.drop, record.entities
        write, what = state.memory.insert, "a new point"
        if isinstance(record, UpdateOut):
            write, what = partial(state.memory.update, record.point), f"an update of {record.point!r}"
            names = names if self.replaces_entities else []
        named = find_labelled(record.evidence, evidence)
        unknown = [label for label in record.evidence if not find_labelled([label], evidence)]
        grounds, shown = ([source for piece in pieces for source in piece.sources] for pieces in (named, evidence))
        try:
            if isinstance(record, UpdateOut) and not self.updates:
                raise UsageError("points are not updated")
            if unknown and not named:
                raise UsageError(f"no evidence was shown as {', '.join(unknown)}")
            for label in unknown:
                drop(f"a label that was not shown: {label!r}")
            for name in names:
                if not normalise_name(name):
                    drop(f"an entity without a name: {name!r}")
            return [write(record.description, names, list(dict.fromkeys(grounds)), shown)]
        except UsageError as error:
            drop(f"{what}: {error}: {record.description[:60]!r}")
            return []

    async def _merge_points(self, state: _EvolveState) -> AsyncIterator[Event]:
        """Join points that belong together, if there are two that no other point was made of."""
        memory = state.memory
        parts = {part for point in memory.points for part in point.parts}
        if sum(point.id not in parts for point in memory.points) < 2:
            return
        points = await asyncio.to_thread(self._show_points, state, MERGE_POINTS)
        reply = await state.ask(self.desk, MERGE_POINTS, MergePointsIn(question=state.question.text, points=points))
        if reply is None:
            return
        state.is_changed = False
        merged, used = list[MemoryPoint](), set[PointId]()
        for record in reply.merges:
            try:
                names = [memory.find(point).id for point in record.points]
                if again := sorted(used.intersection(names)):
                    raise UsageError(f"{again[0]} is merged twice: merge a point once a round")
                merged.append(memory.merge(names, record.description, keep=self.keeps_merged))
                used.update(names, [merged[-1].id])
            except UsageError as error:
                state.skipped.drop(f"a merge of {', '.join(record.points) or 'nothing'}: {error}")
        notes = [point.description for point in merged]
        yield make_event("merged", state.step, merged=_list_rows(merged), notes=notes)

    # ------------------------------------------------------------ what roles are shown

    async def _make_context(self, state: _EvolveState) -> Context:
        """What the answering role sees (section 3.6): points, and passages, as many as have room."""
        question, memory = state.question, state.memory
        room = min(self.context, await asyncio.to_thread(self.desk.measure_answer_room, question))
        points = await asyncio.to_thread(self._fit_points, state, room // _ANSWER_PART)
        notes = tuple(dict.fromkeys(point.description for point in _put_in_order(points)))
        ranked = await self._rank_passages(state, points)
        room -= sum(measure_texts(notes, self.desk.count))
        shown = await asyncio.to_thread(self.desk.layout.pack, ranked, room)
        memory.weigh(state.weigh_points())
        return Context(tuple(shown), {}, notes, len(memory.points) - len(points) + len(ranked) - len(shown))

    async def _rank_passages(self, state: _EvolveState, points: Sequence[MemoryPoint]) -> list[Evidence]:
        """What points name as evidence, and the passages of their entities: first what the first point names.

        What each point names counts as a search of its own, beside that of the question among all these passages. Of
        two passages that count the same, the one of the earlier point comes first.
        """
        question = state.question
        known = await self.investigation.find_named(_join_entities(points))
        scope = _narrow(question.within, known) if points else question.within  # without points, what a search finds
        seen = await self.passages.retrieve(question.text, DEPTH, within=scope)
        nodes = dict.fromkeys(node for point in points for node in point.grounds)
        named = await asyncio.to_thread(self.desk.fetch, list(nodes), question.within)
        scores = await asyncio.to_thread(state.nearness.score, question.text, [piece.text for piece in named])
        named = [replace(piece, score=score) for piece, score in zip(named, scores.tolist(), strict=True)]
        nearest = rank_evidence(drop_repeats([*seen, *named]))
        pieces = {piece.id: piece for piece in (*named, *nearest)}
        grounds = [[pieces[node] for node in point.grounds if node in pieces] for point in points]
        searches = [Searched(nearest), *weigh_queries([each for each in grounds if each])]
        ranked = await asyncio.to_thread(fuse, self.desk.store, searches, scope)
        places = {node: place for place, node in enumerate(pieces)}
        first = points[0].grounds if points else ()
        return sorted(
            ranked, key=lambda piece: (piece.id not in first, -piece.score, places.get(piece.id, len(places)))
        )

    def _show_points(self, state: _EvolveState, role: Role[Any, Any]) -> list[PointShown]:
        """The points that a role is shown, under their ids."""
        return [
            PointShown(
                id=point.id,
                description=point.description,
                entities=sorted(point.entities),
                parts=len(point.parts),
            )
            for point in _put_in_order(self._fit_points(state, self.desk.measure_room(role) // _PART))
        ]

    def _fit_points(self, state: _EvolveState, room: int) -> list[MemoryPoint]:
        """The points that have room, those of this question first, of both the nearest to the question first.

        Those of earlier questions have room only while all together take at most `_PAST` tokens.
        """
        relevance = state.weigh_points()
        ranked = sorted(state.memory.points, key=lambda point: (point.number <= state.past, -relevance[point.id]))
        sizes = measure_texts([point.description for point in ranked], self.desk.count)
        kept, used = list[MemoryPoint](), 0
        for point, tokens in zip(ranked, sizes, strict=True):
            if used + tokens <= (min(room, _PAST) if point.number <= state.past else room):
                kept.append(point)
                used += tokens
        return kept


@dataclass(slots=True, kw_only=True)
class _EvolveState(LoopState):
    """The state of the loop for one question.

    `past` is the number of the last point of an earlier question. `read` are the passages that a call to change points
    read, `is_changed` whether points changed since they were merged.
    """

    memory: Hypergraph
    nearness: Nearness
    past: int
    searched: list[str] = field(default_factory=list)
    read: set[NodeId] = field(default_factory=set)
    is_changed: bool = False

    def weigh_points(self) -> dict[PointId, float]:
        """How near each point is to the question."""
        scores = self.nearness.score(self.question.text, self.memory.notes).tolist()
        return {point.id: score for point, score in zip(self.memory.points, scores, strict=True)}


def _put_in_order(points: Iterable[MemoryPoint]) -> list[MemoryPoint]:
    """Points in the order in which they came."""
    return sorted(points, key=lambda point: point.number)


def _join_entities(points: Iterable[MemoryPoint]) -> frozenset[str]:
    return frozenset[str]().union(*(point.entities for point in points))


def _narrow(within: Scope | None, entities: frozenset[NodeId] | None) -> Scope:
    """The scope of a question, narrowed to entities; where it names entities too, only those of both are left."""
    within = within or Scope()
    if entities is None:
        return within
    return replace(within, entities=entities if within.entities is None else entities & within.entities)


def _list_found(searches: Sequence[Search]) -> list[Evidence]:
    """All that searches found, each piece once: passages, then relations, then entities, the best of each in turn.

    Names of the graph in small letters are written as the texts write them.
    """
    found = [search.found for search in searches]
    kinds = [each.passages for each in found], [each.relations for each in found], [each.entities for each in found]
    pieces = drop_repeats(piece for lists in kinds for piece in take_turns(lists))
    texts = "\n".join(piece.text for piece in pieces)
    return [piece if piece.layer == PASSAGES else replace(piece, title=_spell(piece.title, texts)) for piece in pieces]


def _spell(names: str, texts: str) -> str:
    """Names in small letters, with commas between them, as the texts write them; others stay as they are."""
    return ", ".join(_find_spelling(name, texts) if name.islower() else name for name in names.split(", "))


def _find_spelling(name: str, texts: str) -> str:
    words = r"\W{1,3}".join(map(re.escape, name.split()))
    found = re.search(rf"\b{words}\b", texts, re.IGNORECASE)
    return " ".join(found[0].split()) if found else name


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


def _list_rows(points: Iterable[MemoryPoint]) -> list[dict[str, object]]:
    """Points as rows of plain values, for events."""
    return [
        {
            "point": point.id,
            "description": point.description,
            "entities": "; ".join(sorted(point.entities)),
            "order": point.order,
            "parts": ", ".join(point.parts),
        }
        for point in points
    ]
