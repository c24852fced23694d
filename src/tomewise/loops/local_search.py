"""Answers from what is near to a question in a graph: reports, entities, relations, passages (GraphRAG, local).

DRIFT search is here too: follow-up questions, each by such a search, from the nearest reports down to passages.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from tomewise.calls import CallCount
from tomewise.concurrency import gather_calls
from tomewise.events import make_event
from tomewise.language.roles import EXPLORE, HYPOTHESISE, ExploreIn, ExploreOut, HypothesisOut, RateIn, Shown
from tomewise.loops.desk import Desk, Prepared
from tomewise.loops.evidence import measure_pieces
from tomewise.loops.report_points import Point, conclude
from tomewise.loops.steps import Skipped
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


@dataclass(frozen=True, slots=True)
class LocalContext:
    """What was chosen for a query, in the order in which it is shown, and how many pieces were found."""

    evidence: Sequence[Evidence]
    found: int


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

    def select(self, query: str, within: Scope | None, budget: int, shares: LocalShares) -> LocalContext:
        """What fits into so many tokens: reports, entities, relations, passages."""
        found = self.graph.find(query, within)
        reports = self._fit_reports(found, within, round(budget * shares.reports)) if shares.reports else []
        left = budget - self._measure(reports)
        described = self._fit_relations(found, min(left, round(budget * shares.relations))) if shares.relations else []
        chosen = [*reports, *described]
        passages = self.desk.layout.pack(found.passages, budget - self._measure(chosen))
        relations = found.relations[-1] if found.relations else ()
        whole = len(reports) + len(found.entities) + len(relations) + len(found.passages)
        return LocalContext([*chosen, *passages], max(whole, len(chosen) + len(passages)))

    def _fit_reports(self, found: LocalRelations, within: Scope | None, room: int) -> list[Evidence]:
        shelf = self.reports.load(within)
        ranked = rank_reports(found.keys, shelf, self.level)
        chosen = []
        for community, evidence in zip(ranked, self.reports.make_evidence(ranked, within), strict=True):
            for piece in (evidence, replace(evidence, text=community.short_text)):
                if (size := self._measure([piece])) <= room:
                    chosen.append(piece)
                    room -= size
                    break
        return chosen

    def _fit_relations(self, found: LocalRelations, room: int) -> list[Evidence]:
        """The first entities that fit, and the relations of the longest beginning of the entities that fit beside."""
        entities: list[Evidence] = []
        for piece in found.entities:
            if self._measure([*entities, piece]) > room:
                break
            entities.append(piece)
        room -= self._measure(entities)
        fitting: Sequence[Evidence] = ()
        for relations in found.relations:
            if self._measure(relations) > room:
                break
            fitting = relations
        return [*entities, *fitting]

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

    desk: Desk
    search: LocalSearch
    shares: LocalShares
    budget: int

    async def run(self, question: Question) -> AsyncIterator[Event | Answer]:
        """Two steps: `retrieved`, then the answer."""
        budget = min(self.budget, await asyncio.to_thread(self.desk.measure_answer_room, question))
        context = await asyncio.to_thread(self.search.select, question.text, question.within, budget, self.shares)
        prepared = await self.desk.prepare(question, context.evidence, budget=None)
        prepared = replace(prepared, dropped=context.found - len(prepared.evidence))
        yield make_event("retrieved", evidence=prepared.evidence, found=context.found, cut=prepared.dropped)
        yield await self.desk.answer(question, prepared)


@dataclass(frozen=True, slots=True)
class DriftLimits:
    """How far follow-ups go: so many in each of `depth` rounds.

    `level` is the deepest level of communities whose reports are read.
    """

    follow_ups: int
    depth: int
    level: int


@dataclass(frozen=True, slots=True)
class _Step:
    """A query, the reply to it, and what it was shown."""

    query: str
    reply: ExploreOut
    evidence: Sequence[Evidence]


@dataclass(slots=True)
class _Search:
    """The steps of one question, and what is still to be asked with the score of the step that names it."""

    question: Question
    steps: list[_Step] = field(default_factory=list)
    open: list[tuple[int, str]] = field(default_factory=list)
    known: set[str] = field(default_factory=set)
    skipped: Skipped = field(default_factory=Skipped)

    def add(self, step: _Step) -> None:
        """Take in a step: its follow-ups are asked unless they were named before."""
        self.steps.append(step)
        for query in step.reply.follow_ups:
            if query and (name := " ".join(query.casefold().split())) not in self.known:
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
    for an answer so far and for follow-ups. Deviations: nothing is drawn at random; follow-ups are asked by the score
    of the answer that named them; local searches keep room for entities and relations.
    """

    desk: Desk
    reports: CommunityReports
    search: LocalSearch
    limits: DriftLimits
    budget: int

    @property
    def calls(self) -> CallCount:
        """One for a made-up answer, one a fold, one a follow-up, and one to answer."""
        most = self.limits.follow_ups * self.limits.depth
        return CallCount(f"1 + {_FOLDS} folds + at most {most} follow-ups + 1", 2 + _FOLDS + most)

    async def run(self, question: Question) -> AsyncIterator[Event | Answer]:
        """`reports chosen`, `followed up` for each step, `retrieved`, then the answer."""
        search = _Search(question, known={" ".join(question.text.casefold().split())})
        shelf = await asyncio.to_thread(self.reports.load, question.within)
        shelf = shelf.select_down_to(self.limits.level)
        reports = await self._find_reports(search, shelf)
        titles = [each.title for each in reports]
        yield make_event("reports chosen", reports=titles, batches=min(_FOLDS, len(reports)), rated=0)
        folds = [self._read_fold(search, fold) for fold in _divide(reports)]
        async for event in self._take(search, folds, 0):
            yield event
        if not search.steps:
            search.open.append((0, question.text))
        for depth in range(1, 1 + self.limits.depth):
            queries = search.take_open(self.limits.follow_ups)
            async for event in self._take(search, [self._follow_up(search, query) for query in queries], depth):
                yield event
        if not search.steps and search.skipped.last:
            raise search.skipped.last  # nothing was read, and nobody is asked about nothing
        points = [Point(step.reply.answer, step.reply.score) for step in search.steps]

        def find_passages(_: Sequence[Point]) -> list[Evidence]:
            best = sorted(search.steps, key=lambda step: -step.reply.score)
            found = [[piece for piece in step.evidence if piece.layer == PASSAGES] for step in best]
            return drop_repeats(list(take_turns(found)))

        async for output in conclude(self.desk, question, points, find_passages, budget=self.budget):
            yield output

    async def _find_reports(self, search: _Search, shelf: ReportShelf) -> list[ReportedCommunity]:
        """The reports nearest to a made-up answer in the form of the report nearest to the question."""
        text = search.question.text
        template = await asyncio.to_thread(self.reports.find_nearest, text, 1, shelf)
        if not template:
            return []
        given = RateIn(question=text, report=template[0].report.text)
        usual = HypothesisOut(answer=text)
        hypothesis = await search.skipped.try_call(self.desk.model.ask(HYPOTHESISE, given), usual)
        return await asyncio.to_thread(self.reports.find_nearest, hypothesis.answer, _REPORTS, shelf)

    async def _take(
        self, search: _Search, asked: Iterable[Coroutine[Any, Any, _Step | None]], depth: int
    ) -> AsyncIterator[Event]:
        """Take several steps side by side."""
        for step in await gather_calls(asked):
            if step is not None:
                search.add(step)
                yield make_event(
                    "followed up",
                    depth,
                    query=step.query,
                    score=step.reply.score,
                    notes=[step.reply.answer] if step.reply.answer else [],
                    evidence=step.evidence,
                    follow_ups=step.reply.follow_ups,
                )
        for event in search.skipped.events(depth):
            yield event

    async def _read_fold(self, search: _Search, fold: Sequence[ReportedCommunity]) -> _Step | None:
        found = await asyncio.to_thread(self.reports.make_evidence, fold, search.question.within)
        return await self._explore(search, search.question.text, found)

    async def _follow_up(self, search: _Search, query: str) -> _Step | None:
        room = min(self.budget, self.desk.measure_room(EXPLORE))
        context = await asyncio.to_thread(self.search.select, query, search.question.within, room, _SHARES)
        return await self._explore(search, query, context.evidence)

    async def _explore(self, search: _Search, query: str, found: Sequence[Evidence]) -> _Step | None:
        """Ask what the evidence says on a query; None without evidence, and for a reply that cannot be used."""

        def make_input(shown: Sequence[Shown]) -> ExploreIn:
            return ExploreIn(
                question=search.question.text,
                query=query,
                evidence=list(shown),
                limit=_NAMED,
                words=_WORDS,
            )

        prepared: Prepared[ExploreIn] = await asyncio.to_thread(self.desk.fit, EXPLORE, found, make_input, budget=None)
        if not prepared.evidence:
            return None
        reply = await search.skipped.try_call(self.desk.model.ask(EXPLORE, prepared.input), None)
        return None if reply is None else _Step(query, reply, prepared.evidence)


def _divide(reports: Sequence[ReportedCommunity]) -> list[Sequence[ReportedCommunity]]:
    """The folds: neighbours in the ranking, the first folds one longer where they cannot be equal."""
    size, longer = divmod(len(reports), _FOLDS)
    starts = [fold * size + min(fold, longer) for fold in range(_FOLDS + 1)]
    return [reports[start:end] for start, end in pairwise(starts) if end > start]
