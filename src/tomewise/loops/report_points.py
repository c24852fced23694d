"""An answer from reports about a whole text: each batch gives points, the best points the answer (GraphRAG, global)."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import TypeAlias

from tomewise.calls import CallCount, sum_calls
from tomewise.concurrency import gather_calls
from tomewise.events import make_event, report_retrieved
from tomewise.language.labels import find_labelled
from tomewise.language.roles import MAP_REPORTS, RATE_REPORT, MapIn, MapOut, RateIn
from tomewise.loops.desk import Desk, decline
from tomewise.loops.evidence import FENCE, measure_texts
from tomewise.loops.last_prompt import DEPTH
from tomewise.loops.steps import Skipped
from tomewise.recall.community_reports import CommunityReports, ReportedCommunity, ReportShelf
from tomewise.types import Answer, Event, Evidence, Question

_POINTS = 0.5  # of the budget of the answering call that points have before passages
_RATINGS = 2  # times that a report is rated until a reply can be used
# The released code asks for several paragraphs, of 2,000 words at most; the answering role has room for these.
_FORM = "Write two to four paragraphs, 300 words at most, that bring together all points that bear on the question."
_NOTHING = "no report on the documents says anything on this question"


@dataclass(frozen=True, slots=True)
class Point:
    """What reports, or an earlier step, say on a question; `reports` are the keys of those."""

    text: str
    score: int
    reports: tuple[int, ...] = ()


@dataclass(slots=True)
class Choice:
    """The reports that are read for a question, and how many were rated for that."""

    reports: Sequence[ReportedCommunity]
    rated: int = 0
    skipped: Skipped = field(default_factory=Skipped)


@dataclass(frozen=True, eq=False)
class LevelChoice:
    """All reports down to a level: the deepest of each entity."""

    calls = CallCount("0", 0)

    level: int

    async def choose(self, question: Question, shelf: ReportShelf) -> Choice:
        """All of them, by id."""
        return Choice(shelf.list_level(self.level))


@dataclass(frozen=True, eq=False)
class RatedChoice:
    """Reports that a model finds worth reading, from the coarsest level down (GraphRAG's dynamic selection).

    A report that is rated `threshold` or more is kept, and its parts are rated; a part that is kept replaces it. Where
    nothing of a level is kept, the whole next level is rated. No report below `level` is rated, and none is rated
    again. A rating that cannot be read twice is 0.
    """

    calls = CallCount("1 a report rated")

    desk: Desk
    threshold: int
    level: int

    async def choose(self, question: Question, shelf: ReportShelf) -> Choice:
        """Those that are kept, by id."""
        choice = Choice(())
        kept: dict[int, ReportedCommunity] = {}
        rated: set[int] = set()
        shelf = shelf.select_down_to(self.level)
        level, waiting = 0, shelf.list_children(None)
        while waiting:
            shown = await asyncio.to_thread(self._fit, question, waiting)
            ratings = await gather_calls(self._rate(question, each, choice.skipped) for each in shown)
            rated.update(each.key for each in waiting)
            children: list[ReportedCommunity] = []
            for each, rating in zip(waiting, ratings, strict=True):
                if rating >= self.threshold:
                    kept[each.key] = each
                    children += shelf.list_children(each.key)
                    if (parent := shelf.find_parent(each.key)) is not None:
                        kept.pop(parent, None)
            waiting = sorted(children, key=lambda each: each.report.id)
            while not waiting and not kept and level < self.level:
                level += 1
                waiting = [each for each in shelf.list_at(level) if each.key not in rated]
        choice.rated = len(rated)
        choice.reports = sorted(kept.values(), key=lambda each: each.report.id)
        return choice

    def _fit(self, question: Question, waiting: Sequence[ReportedCommunity]) -> list[ReportedCommunity]:
        used = sum(self.desk.count([question.text]))
        return fit_reports(self.desk, waiting, self.desk.measure_room(RATE_REPORT, used))

    async def _rate(self, question: Question, community: ReportedCommunity, skipped: Skipped) -> int:
        given = RateIn(question=question.text, report=community.report.text)
        for _ in range(_RATINGS):
            reply = await skipped.try_call(self.desk.model.ask(RATE_REPORT, given), None)
            if reply is not None:
                return reply.rating
        return 0


Chooser: TypeAlias = LevelChoice | RatedChoice
"""A way to choose reports for a question."""


async def conclude(
    desk: Desk,
    question: Question,
    points: Sequence[Point],
    find_passages: Callable[[Sequence[Point]], list[Evidence]],
    *,
    budget: int,
) -> AsyncIterator[Event | Answer]:
    """The answer from points: the best as notes, as many as fit, then passages from which they come.

    `retrieved`, then the answer; declined without a call without a point, unless a guess is asked for. The paper shows
    points alone; passages let the answer quote. `find_passages` ranks the passages under the points that are shown,
    `budget` is in tokens.
    """
    best = sorted((point for point in points if point.score > 0 and point.text), key=lambda point: -point.score)
    if not best and not question.force:
        yield decline(_NOTHING)
        return
    room = min(budget, await asyncio.to_thread(desk.measure_answer_room, question))
    sizes = measure_texts([point.text for point in best], desk.count)
    shown = best[: bisect_right(list(accumulate(sizes)), _POINTS * room)]
    used = sum(sizes[: len(shown)])
    most = round(_POINTS * room) - FENCE
    if best and not shown and (text := desk.layout.shorten(best[0].text, most)):
        shown = [replace(best[0], text=text)]
        used = sum(measure_texts([text], desk.count))
    found = await asyncio.to_thread(find_passages, shown)
    passages = await asyncio.to_thread(desk.layout.pack, found, max(0, room - used))
    if not (question.options or question.instructions or question.form):
        question = replace(question, instructions=_FORM)
    prepared = await desk.prepare(question, passages, budget=None, notes=[point.text for point in shown])
    yield report_retrieved(prepared.evidence, found)
    yield await desk.answer(question, prepared)


@dataclass(frozen=True, eq=False)
class ReportPoints:
    """Reads reports in batches side by side, each for points on the question; then the answer from the best points.

    A batch has `budget` tokens, as the answering call does. In a batch those reports stand first whose members are
    seen in most passages, then the most important. A batch whose reply cannot be used is left out.
    """

    desk: Desk
    reports: CommunityReports
    chooser: Chooser
    budget: int

    @property
    def calls(self) -> CallCount:
        """Those of the choice, one a batch, and one to answer."""
        return sum_calls([self.chooser.calls, CallCount("1 a batch of reports"), CallCount("1", 1)])

    async def run(self, question: Question) -> AsyncIterator[Event | Answer]:
        """`reports chosen`, `points found` for each batch, `retrieved`, then the answer."""
        shelf = await asyncio.to_thread(self.reports.load, question.within)
        choice = await self.chooser.choose(question, shelf)
        for event in choice.skipped.events(0):
            yield event
        batches = await asyncio.to_thread(self._divide, question, shelf, choice.reports)
        titles = [each.title for each in choice.reports]
        yield make_event("reports chosen", reports=titles, batches=len(batches), rated=choice.rated)
        skipped = Skipped()
        replies = await gather_calls(skipped.try_call(self._map(question, batch), None) for batch in batches)
        if batches and not any(reply is not None for reply in replies) and skipped.last:
            raise skipped.last  # nothing was read, and nobody is asked about nothing
        points: list[Point] = []
        for step, (batch, reply) in enumerate(zip(batches, replies, strict=True), start=1):
            found = [] if reply is None else read_points(reply, [each.key for each in batch])
            points += found
            titles, notes = [each.title for each in batch], [each.text for each in found]
            yield make_event("points found", step, reports=titles, notes=notes)
        for event in skipped.events(len(batches)):
            yield event

        def find_passages(shown: Sequence[Point]) -> list[Evidence]:
            # A guess without a point rests on the reports that were read, or on all where none was worth reading.
            keys = dict.fromkeys(key for point in shown for key in point.reports)
            keys = keys or dict.fromkeys(each.key for each in choice.reports or shelf.communities.values())
            return self.reports.rank_passages(question.text, keys, question.within, DEPTH)

        async for output in conclude(self.desk, question, points, find_passages, budget=self.budget):
            yield output

    def _divide(
        self, question: Question, shelf: ReportShelf, chosen: Sequence[ReportedCommunity]
    ) -> list[list[ReportedCommunity]]:
        """The batches: reports by id, as many as fit."""
        used = sum(self.desk.count([question.text]))
        room = min(self.budget, self.desk.measure_room(MAP_REPORTS, used))
        chosen = fit_reports(self.desk, chosen, room)
        sizes = measure_texts([each.report.text for each in chosen], self.desk.count)
        batches: list[list[ReportedCommunity]] = []
        left = 0
        for community, tokens in zip(chosen, sizes, strict=True):
            if tokens > left or not batches:
                batches.append([])
                left = room
            batches[-1].append(community)
            left -= tokens
        return [shelf.sort_by_weight(batch) for batch in batches]

    async def _map(self, question: Question, batch: Sequence[ReportedCommunity]) -> MapOut:
        shown = self.desk.show([each.as_evidence() for each in batch])
        return await self.desk.model.ask(MAP_REPORTS, MapIn(question=question.text, evidence=shown))


def fit_reports(desk: Desk, reports: Sequence[ReportedCommunity], room: int) -> list[ReportedCommunity]:
    """Reports as they are; one with more than so many tokens by its title and summary, as far as these fit."""

    def shorten(community: ReportedCommunity) -> ReportedCommunity:
        text = desk.layout.shorten(community.short_text, room - FENCE)
        return replace(community, report=replace(community.report, text=text))

    sizes = measure_texts([each.report.text for each in reports], desk.count)
    return [each if size <= room else shorten(each) for each, size in zip(reports, sizes, strict=True)]


def read_points(reply: MapOut, reports: Sequence[int]) -> list[Point]:
    """The points of a reply; `reports` are the keys of those that it was shown, in the order of their labels."""
    points = []
    for each in reply.points:
        named = find_labelled(each.labels, reports) or reports
        points.append(Point(each.description, each.score, tuple(named)))
    return points
