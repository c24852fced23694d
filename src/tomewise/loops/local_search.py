"""Answers from what is near to a question in a graph: reports, entities, relations, passages (GraphRAG, local).

DRIFT search is here too: follow-up questions, each by such a search, from the nearest reports down to passages.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import takewhile

import numpy as np

from tomewise.calls import CallCount
from tomewise.concurrency import gather_calls
from tomewise.events import make_event
from tomewise.language.roles import EXPLORE, HYPOTHESISE, ExploreIn, ExploreOut, RateIn
from tomewise.loops.desk import Desk
from tomewise.loops.evidence import fold, measure_pieces
from tomewise.loops.report_points import Point, answer_from, conclude
from tomewise.loops.steps import LoopState, take_steps
from tomewise.recall.community_reports import CommunityReports, ReportedCommunity, ReportShelf
from tomewise.recall.local_relations import LocalGraph, LocalRelations
from tomewise.recall.ranking import drop_repeats, take_turns
from tomewise.store.records import PASSAGES
from tomewise.types import Answer, Event, Evidence, Question, Scope

_REPORTS = 20  # nearest to what an answer might say
_NAMED = 5  # follow-ups that a reply may name
_WORDS = 300  # of a reply
_FOLDS = 5  # into which they are divided


@dataclass(frozen=True, slots=True)
class LocalShares:
    """The parts of a budget that reports have, and entities with their relations; what they leave is for passages.

    Where both are more than the budget, reports come first.
    """

    reports: float
    relations: float


_SHARES = LocalShares(reports=0.1, relations=0.2)  # of a follow-up


@dataclass(frozen=True, eq=False)
class LocalSearch:
    """Fills a budget with what is near to a query (`recall.local_relations`), and with reports down to a `level`.

    Reports stand by how many of the found entities are in their community, then by importance; one that does not fit is
    shown by its summary, or not at all. Of the relations, those of the longest beginning of the entities are shown that
    fit beside the entities.
    """

    desk: Desk
    graph: LocalGraph
    reports: CommunityReports
    level: int

    def select(self, query: str, within: Scope | None, budget: int, shares: LocalShares) -> tuple[list[Evidence], int]:
        """What fits into so many tokens, in the order reports, entities, relations, passages; how many are found."""
        found = self.graph.find(query, within)
        ranked = rank_reports(found.keys, self.reports.load(within), self.level) if shares.reports else []
        reports = self._fit_reports(ranked, within, round(budget * shares.reports))
        left = budget - self._measure(reports)
        chosen = [*reports, *self._fit_relations(found, min(left, round(budget * shares.relations)))]
        chosen += self.desk.layout.pack(found.passages, budget - self._measure(chosen))
        whole = (ranked, found.entities, found.relations[-1] if found.relations else (), found.passages)
        return chosen, sum(map(len, whole))

    def _fit_reports(self, ranked: Sequence[ReportedCommunity], within: Scope | None, room: int) -> list[Evidence]:
        chosen = []
        for community, whole in zip(ranked, self.reports.make_evidence(ranked, within), strict=True):
            for piece in (whole, replace(whole, text=community.short_text)):
                if (size := self._measure([piece])) <= room:
                    chosen.append(piece)
                    room -= size
                    break
        return chosen

    def _fit_relations(self, found: LocalRelations, room: int) -> list[Evidence]:
        """The first entities that fit, and the relations of the longest beginning of the entities that fit beside."""
        entities = self.desk.layout.pack(found.entities, room, stops=True)
        room -= self._measure(entities)
        fitting = takewhile(lambda relations: self._measure(relations) <= room, found.relations)
        return [*entities, *[(), *fitting][-1]]

    def _measure(self, pieces: Sequence[Evidence]) -> int:
        return sum(measure_pieces(pieces, self.desk.count))


def rank_reports(entities: Sequence[int], shelf: ReportShelf, level: int) -> list[ReportedCommunity]:
    """The reports about the communities of these entities: those with most of them first, then the most important."""
    homes = shelf.find_homes(level)
    counts = Counter(homes[entity] for entity in entities if entity in homes)
    return sorted(
        (shelf.communities[key] for key in counts),
        key=lambda each: (-counts[each.key], -each.importance, each.report.id),
    )


@dataclass(frozen=True, eq=False)
class LocalAnswer:
    """One search near to the question, then the answer. `budget` is in tokens."""

    calls = CallCount("1", 1)

    search: LocalSearch
    shares: LocalShares
    budget: int

    async def run(self, question: Question) -> AsyncIterator[Event | Answer]:
        """Two steps: `retrieved`, then the answer."""
        desk = self.search.desk
        budget = min(self.budget, await asyncio.to_thread(desk.measure_answer_room, question))
        chosen, found = await asyncio.to_thread(self.search.select, question.text, question.within, budget, self.shares)
        async for output in answer_from(desk, question, await desk.prepare(question, chosen, budget=None), found):
            yield output


@dataclass(frozen=True, slots=True)
class _Step:
    """A query, the reply to it, and what it was shown."""

    query: str
    reply: ExploreOut
    evidence: Sequence[Evidence]


@dataclass(slots=True, kw_only=True)
class _DriftState(LoopState):
    """What was asked for one question, and what is still to be asked with the score of the step that names it."""

    known: set[str]
    steps: list[_Step] = field(default_factory=list)
    open: list[tuple[int, str]] = field(default_factory=list)

    def add(self, step: _Step) -> None:
        """Take in a step: its follow-ups are asked unless they were named before."""
        self.steps.append(step)
        for query in step.reply.follow_ups:
            if (name := fold(query)) not in self.known:
                self.known.add(name)
                self.open.append((step.reply.score, query))

    def take_open(self, count: int) -> list[str]:
        """The next queries: those of the best steps first, then in their order."""
        ranked = sorted(self.open, key=lambda item: -item[0])
        self.open = ranked[count:]
        return [query for _, query in ranked[:count]]


@dataclass(frozen=True, eq=False)
class Drift:
    """Answers from reports first, then follow-up questions by local searches, and one answer from all of these.

    The nearest report shows the form of a made-up answer; the reports that are nearest to this are read in folds, each
    for an answer so far and for follow-ups: at most so many `follow_ups` in each of `depth` rounds. Deviations: nothing
    is drawn at random; follow-ups are asked by the score of the answer that named them; local searches keep room for
    entities and relations.
    """

    search: LocalSearch
    follow_ups: int
    depth: int
    budget: int

    @property
    def calls(self) -> CallCount:
        """One for a made-up answer, one a fold, one a follow-up, and one to answer."""
        most = self.follow_ups * self.depth
        return CallCount(f"1 + {_FOLDS} folds + at most {most} follow-ups + 1", 2 + _FOLDS + most)

    async def run(self, question: Question) -> AsyncIterator[Event | Answer]:
        """`reports chosen`, `followed up` for each query, `stopped`, `retrieved`, then the answer."""
        state = _DriftState(question=question, known={"", fold(question.text)})
        reports = await self._find_reports(state)
        # Neighbours in the ranking are read together; the first folds are one longer where they cannot be equal.
        folds = np.array_split(np.array(reports, object), _FOLDS)
        parts = [fold.tolist() for fold in folds if fold.size]
        yield make_event("reports chosen", reports=[each.title for each in reports], batches=len(parts), rated=0)
        read = [(question.text, partial(self.search.reports.make_evidence, part, question.within)) for part in parts]
        async for event in self._explore_all(state, read):
            yield event
        for event in state.report_skipped():
            yield event
        if not state.steps:
            state.open.append((0, question.text))
        async for event in take_steps(state, partial(self._follow_up, state), most=self.depth, name="round"):
            yield event
        if not state.steps and state.skipped.last:
            raise state.skipped.last  # nothing was read, and nobody is asked about nothing
        best = sorted(state.steps, key=lambda step: -step.reply.score)
        points = [Point(step.reply.answer, step.reply.score) for step in best]
        found = [[piece for piece in step.evidence if piece.layer == PASSAGES] for step in best]
        passages = drop_repeats(take_turns(found))
        async for output in conclude(self.search.desk, question, points, lambda _: passages, budget=self.budget):
            yield output

    async def _find_reports(self, state: _DriftState) -> list[ReportedCommunity]:
        """The reports nearest to a made-up answer in the form of the report nearest to the question."""
        text, reports = state.question.text, self.search.reports
        shelf = await asyncio.to_thread(reports.load, state.question.within)
        shelf = shelf.select_down_to(self.search.level)
        template = await asyncio.to_thread(reports.find_nearest, text, 1, shelf)
        if not template:
            return []
        given = RateIn(question=text, report=template[0].report.text)
        hypothesis = await state.ask(self.search.desk, HYPOTHESISE, given)
        nearest = hypothesis.answer if hypothesis else text
        return await asyncio.to_thread(reports.find_nearest, nearest, _REPORTS, shelf)

    async def _follow_up(self, state: _DriftState) -> AsyncIterator[Event]:
        """One round: the best of what is open, each by a local search."""
        room = min(self.budget, self.search.desk.measure_room(EXPLORE))

        def search(query: str) -> list[Evidence]:
            return self.search.select(query, state.question.within, room, _SHARES)[0]

        queries = state.take_open(self.follow_ups)
        if not queries:
            state.end = "no question is open"
        async for event in self._explore_all(state, [(query, partial(search, query)) for query in queries]):
            yield event

    async def _explore_all(
        self, state: _DriftState, asked: Sequence[tuple[str, Callable[[], Sequence[Evidence]]]]
    ) -> AsyncIterator[Event]:
        """Ask side by side about several queries, each with a way to find its evidence."""
        for step in await gather_calls(self._explore(state, query, find) for query, find in asked):
            if step is not None:
                state.add(step)
                yield make_event(
                    "followed up",
                    state.step,
                    query=step.query,
                    score=step.reply.score,
                    notes=[step.reply.answer] if step.reply.answer else [],
                    evidence=step.evidence,
                    follow_ups=step.reply.follow_ups,
                )

    async def _explore(self, state: _DriftState, query: str, find: Callable[[], Sequence[Evidence]]) -> _Step | None:
        """Ask what the evidence says on a query; None without evidence, and for a reply that cannot be used."""
        desk = self.search.desk
        given = ExploreIn(question=state.question.text, query=query, evidence=[], limit=_NAMED, words=_WORDS)
        prepared = await asyncio.to_thread(lambda: desk.fit(EXPLORE, find(), given))
        if not prepared.evidence:
            return None
        reply = await state.ask(desk, EXPLORE, prepared.input)
        return None if reply is None else _Step(query, reply, prepared.evidence)
