"""Step by step: decide on a smaller question, answer it from memory or by a search, and go on until it suffices.

After DeepRAG (Guan et al. 2025, arXiv 2502.01142): at each step the model decides whether it is finished, and whether
the next smaller question needs a search. The paper trains a model for these two decisions; here a prompt asks for them,
so the loop has another name. What the model answers from memory is marked as such wherever it is shown.

A search is made with the smaller question, and the answering role, which may decline, answers it from what was found.
A reply that stays unusable after its repair is skipped and reported: an unusable decision ends the steps, an unusable
answer counts as not found. Constants are ours: the paper states no limit of steps that applies without its training.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from tomewise.calls import CallCount, read_calls, sum_calls, write_number
from tomewise.events import Decided, Found, Retrieved
from tomewise.language.roles import STEP, StepIn, StepOut
from tomewise.loops.collection import Collection
from tomewise.loops.desk import Desk
from tomewise.loops.repeats import fold
from tomewise.loops.steps import Course, take_steps
from tomewise.recall.ranking import take_turns
from tomewise.types import Answer, Event, Evidence, Question, Retriever

STEPS = 5
_NOT_FOUND = "not found"
_FROM_MEMORY = "(from general knowledge, not from the texts)"


class Stepwise:
    """Answers smaller questions until the model finds that they suffice, at most `steps`; then the question itself.

    Each search asks for `limit` pieces of evidence, of which each answer is shown what fits into `budget` tokens.
    """

    def __init__(self, recall: Retriever, desk: Desk, *, limit: int, budget: int, steps: int = STEPS) -> None:
        self._recall = recall
        self._desk = desk
        self._limit = limit
        self._budget = budget
        self._steps = steps

    @property
    def calls(self) -> CallCount:
        """A decision and an answer a step, the searches, and the last answer. Without a search there is one at last."""
        search = read_calls(self._recall)
        step = sum_calls([CallCount("2", 2), search])
        most = sum_calls([step.repeat(self._steps), search, CallCount("1", 1)]).most
        limit = "" if most is None else f", at most {write_number(most)} in {self._steps} steps"
        return CallCount(f"{step.formula} a step + 1{limit}", most)

    async def run(self, question: Question) -> AsyncIterator[Event | Answer]:
        """By step `decided`, and `recalled` and `found` after a search; `stopped`, `retrieved`, then the answer."""
        course = _Course(question=question)
        async for event in take_steps(course, partial(self._take_step, course), most=self._steps, name="step"):
            yield event
        if not course.lists:
            yield await self._search(course, question.text)
        prepared = await self._desk.prepare(question, course.ranked, notes=course.notes, budget=self._budget)
        yield Retrieved.of(prepared.evidence, prepared.found, course.step)
        yield await self._desk.answer(question, prepared)

    async def _take_step(self, course: _Course) -> AsyncIterator[Event]:
        """Decide, and answer the smaller question."""
        given = StepIn(question=course.question.text, asked=course.asked, findings=course.findings)
        reply = await course.skipped.usable(self._desk.model.ask(STEP, given), None)
        for event in course.report_skipped():
            yield event
        course.end = _find_end(reply, course.asked)
        if reply is None:
            return
        decided = Decided(step=course.step, **reply.model_dump())
        yield decided
        if course.end:
            return
        if decided.needs_search:
            yield await self._search(course, reply.subquestion)
            async for event in self._answer_part(course, reply.subquestion):
                yield event
        else:
            course.add(reply.subquestion, f"{reply.answer} {_FROM_MEMORY}")

    async def _search(self, course: _Course, query: str) -> Event:
        found = await self._recall.retrieve(query, self._limit, within=course.question.within)
        course.lists.append(found)
        return course.collection.take(query, found, course.step)

    async def _answer_part(self, course: _Course, subquestion: str) -> AsyncIterator[Event]:
        """Answer a smaller question from what was just found for it."""
        part = Question(text=subquestion, within=course.question.within)
        prepared = await self._desk.prepare(part, course.lists[-1], budget=self._budget)
        answer = await course.skipped.usable(self._desk.answer(part, prepared, final=False), None)
        for event in course.report_skipped():
            yield event
        if answer is not None:
            cited = {citation.passage for citation in answer.citations}
            course.cited += [piece for piece in prepared.evidence if cited.intersection(piece.sources)]
        text = answer.text if answer and answer.resolved else ""
        course.add(subquestion, text)
        yield Found(step=course.step, answer=text, asked=subquestion)


@dataclass(slots=True, kw_only=True)
class _Course(Course):
    """How far the loop has come with one question. `lists` is what each search found, best first."""

    asked: list[str] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)  # each smaller question with its answer
    notes: list[str] = field(default_factory=list)  # the findings that have one
    lists: list[list[Evidence]] = field(default_factory=list)
    cited: list[Evidence] = field(default_factory=list)  # what the answers rest on
    collection: Collection = field(default_factory=Collection)

    @property
    def ranked(self) -> list[Evidence]:
        """All evidence, each piece once: what answers rest on, then the best of each search in turn."""
        ranked = [*self.cited, *take_turns(self.lists)]
        return list({piece.node: piece for piece in ranked}.values())

    def add(self, subquestion: str, answer: str) -> None:
        """Note a smaller question and its answer, which is empty if none was found."""
        self.asked.append(subquestion)
        self.findings.append(f"{subquestion} {answer or _NOT_FOUND}")
        if answer:
            self.notes.append(self.findings[-1])


def _find_end(reply: StepOut | None, asked: Sequence[str]) -> str:
    """Why this reply ends the steps; empty if it does not."""
    if reply is None:
        return "the reply was not usable"
    if reply.finished:
        return "the findings suffice"
    if not reply.subquestion:
        return "no smaller question was asked"
    return "the smaller question was asked before" if fold(reply.subquestion) in map(fold, asked) else ""
