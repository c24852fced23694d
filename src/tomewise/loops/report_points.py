"""An answer from reports about a whole text: each batch gives points, the best points the answer (GraphRAG, global)."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from tomewise.calls import NO_CALLS, CallCount, sum_calls
from tomewise.concurrency import gather_calls
from tomewise.events import make_event
from tomewise.language.labels import find_labelled
from tomewise.language.roles import MAP_REPORTS, RATE_REPORT, AnswerIn, MapIn, MapOut, RateIn
from tomewise.loops.desk import Desk, Prepared, decline
from tomewise.loops.evidence import FENCE, measure_texts
from tomewise.loops.last_prompt import DEPTH
from tomewise.loops.steps import LoopState
from tomewise.recall.community_reports import CommunityReports, ReportedCommunity, ReportShelf
from tomewise.types import Answer, Event, Evidence, Question

_POINTS = 0.5  # of the budget of the answering call that points have before passages
_RATINGS = 2  # times that a report is rated until a reply can be used
# The released code asks for several paragraphs, of 2,000 words at most; the answering role has room for these.
_FORM = "Write two to four paragraphs, 300 words at most, that bring together all points that bear on the question."
_NOTHING = "no report on the documents says anything on this question"


@dataclass(frozen=True, slots=True)
class Point:
    """What reports, or an earlier step, say on a question; `reports` are the keys of those that it names."""

    text: str
    score: int
    reports: tuple[int, ...] = ()


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
    points alone; passages let the answer quote. Points and passages without room count as cut. `find_passages` ranks
    the passages under the points that are shown, `budget` is in tokens.
    """
    best = sorted((point for point in points if point.score > 0 and point.text), key=lambda point: -point.score)
    if not best and not question.force:
        yield decline(_NOTHING)
        return
    room = min(budget, await asyncio.to_thread(desk.measure_answer_room, question))
    most = round(_POINTS * room)
    if best:  # the first is cut where it is too long
        best[0] = replace(best[0], text=desk.layout.shorten(best[0].text, most - FENCE))
    used = list(accumulate(measure_texts([point.text for point in best], desk.count), initial=0))
    shown = best[: bisect_right(used, most) - 1]
    found = await asyncio.to_thread(find_passages, shown)
    passages = await asyncio.to_thread(desk.layout.pack, found, max(0, room - used[len(shown)]))
    if not (question.options or question.instructions or question.form):
        question = replace(question, instructions=_FORM)
    prepared = await desk.prepare(question, passages, budget=None, notes=[point.text for point in shown])
    async for output in answer_from(desk, question, prepared, len(best) + len(found)):
        yield output


async def answer_from(
    desk: Desk, question: Question, prepared: Prepared[AnswerIn], found: int
) -> AsyncIterator[Event | Answer]:
    """`retrieved`, then the answer. What is neither evidence nor note, of so many that were `found`, counts as cut."""
    cut = found - len(prepared.evidence) - len(prepared.input.notes)
    yield make_event("retrieved", evidence=prepared.evidence, found=found, cut=cut)
    yield await desk.answer(question, replace(prepared, dropped=cut))


@dataclass(frozen=True, eq=False)
class ReportPoints:
    """Reads reports in batches side by side, each for points on the question; then the answer from the best points.

    The reports are the deepest of each entity, down to a `level`. With a `threshold` a model chooses (GraphRAG's
    dynamic selection), from the coarsest level down to `level`: a report that it rates so or higher is kept, and its
    parts are rated; a part that is kept replaces it. Where nothing of a level is kept, the whole next level is rated.
    None is rated again. A rating that cannot be read twice is 0.

    A batch has `budget` tokens, as the answering call does. In a batch those reports stand first whose members are
    seen in most passages, then the most important. A batch whose reply cannot be used is left out.
    """

    desk: Desk
    reports: CommunityReports
    level: int
    budget: int
    threshold: int | None = None

    @property
    def calls(self) -> CallCount:
        """Those of the choice, one a batch, and one to answer."""
        ratings = NO_CALLS if self.threshold is None else CallCount("1 a report rated")
        return sum_calls([ratings, CallCount("1 a batch of reports"), CallCount("1", 1)])

    async def run(self, question: Question) -> AsyncIterator[Event | Answer]:
        """`reports chosen`, `points found` for each batch, `retrieved`, then the answer."""
        state = LoopState(question=question)
        shelf = await asyncio.to_thread(self.reports.load, question.within)
        chosen, rated = shelf.list_level(self.level), 0
        if self.threshold is not None:
            chosen, rated = await self._choose(state, shelf.select_down_to(self.level), self.threshold)
        for event in state.report_skipped():
            yield event
        batches = await asyncio.to_thread(self._divide, question, shelf, chosen)
        yield make_event("reports chosen", reports=[each.title for each in chosen], batches=len(batches), rated=rated)
        replies = await gather_calls(self._map(state, batch) for batch in batches)
        if batches and not any(replies) and state.skipped.last:
            raise state.skipped.last  # nothing was read, and nobody is asked about nothing
        points: list[Point] = []
        for state.step, (batch, reply) in enumerate(zip(batches, replies, strict=True), start=1):
            found = read_points(reply, [each.key for each in batch]) if reply else []
            points += found
            titles, notes = [each.title for each in batch], [each.text for each in found]
            yield make_event("points found", state.step, reports=titles, notes=notes)
        for event in state.report_skipped():
            yield event

        def find_passages(shown: Sequence[Point]) -> list[Evidence]:
            # Without a named report they rest on those that were read, or on all where none was worth reading.
            keys = dict.fromkeys(key for point in shown for key in point.reports)
            keys = keys or dict.fromkeys(each.key for each in chosen or shelf.communities.values())
            return self.reports.rank_passages(question.text, keys, question.within, DEPTH)

        async for output in conclude(self.desk, question, points, find_passages, budget=self.budget):
            yield output

    async def _choose(
        self, state: LoopState, shelf: ReportShelf, threshold: int
    ) -> tuple[list[ReportedCommunity], int]:
        """The reports that a model finds worth reading, by id, and how many it rated."""
        kept: dict[int, ReportedCommunity] = {}
        rated: set[int] = set()
        level, waiting = 0, shelf.list_children(None)
        while waiting:
            room = self.desk.measure_room(RATE_REPORT, sum(self.desk.count([state.question.text])))
            shown = await asyncio.to_thread(self._fit, waiting, room)
            ratings = await gather_calls(self._rate(state, each) for each in shown)
            rated.update(each.key for each in waiting)
            children: list[ReportedCommunity] = []
            for each, rating in zip(waiting, ratings, strict=True):
                if rating >= threshold:
                    kept[each.key] = each
                    children += shelf.list_children(each.key)
                    if (parent := shelf.find_parent(each.key)) is not None:
                        kept.pop(parent, None)
            waiting = sorted(children, key=lambda each: each.report.id)
            while not waiting and not kept and level < self.level:
                level += 1
                waiting = [each for each in shelf.list_at(level) if each.key not in rated]
        return sorted(kept.values(), key=lambda each: each.report.id), len(rated)

    async def _rate(self, state: LoopState, community: ReportedCommunity) -> int:
        given = RateIn(question=state.question.text, report=community.report.text)
        for _ in range(_RATINGS):
            reply = await state.ask(self.desk, RATE_REPORT, given)
            if reply is not None:
                return reply.rating
        return 0

    def _divide(
        self, question: Question, shelf: ReportShelf, chosen: Sequence[ReportedCommunity]
    ) -> list[list[ReportedCommunity]]:
        """The batches: reports by id, as many as fit."""
        room = min(self.budget, self.desk.measure_room(MAP_REPORTS, sum(self.desk.count([question.text]))))
        chosen = self._fit(chosen, room)
        batches: list[list[ReportedCommunity]] = []
        left = 0
        for community, tokens in zip(chosen, self._measure(chosen), strict=True):
            if tokens > left or not batches:
                batches.append([])
                left = room
            batches[-1].append(community)
            left -= tokens
        return [shelf.sort_by_weight(batch) for batch in batches]

    async def _map(self, state: LoopState, batch: Sequence[ReportedCommunity]) -> MapOut | None:
        shown = self.desk.show([each.as_evidence() for each in batch])
        return await state.ask(self.desk, MAP_REPORTS, MapIn(question=state.question.text, evidence=shown))

    def _fit(self, reports: Sequence[ReportedCommunity], room: int) -> list[ReportedCommunity]:
        """Reports as they are; one with more than so many tokens by its title and summary, as far as these fit."""
        shorten = self.desk.layout.shorten
        return [
            each if size <= room else each.with_text(shorten(each.short_text, room - FENCE))
            for each, size in zip(reports, self._measure(reports), strict=True)
        ]

    def _measure(self, reports: Sequence[ReportedCommunity]) -> list[int]:
        return measure_texts([each.report.text for each in reports], self.desk.count)


def read_points(reply: MapOut, reports: Sequence[int]) -> list[Point]:
    """The points of a reply; `reports` are the keys of those that it was shown, in the order of their labels."""
    return [Point(each.description, each.score, tuple(find_labelled(each.labels, reports))) for each in reply.points]
