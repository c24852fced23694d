"""Step by step: decide on a smaller question, answer it from memory or by a search, and go on until it suffices.

After DeepRAG (Guan et al. 2025, arXiv 2502.01142): at each step the model decides whether it is finished, and whether
the next smaller question needs a search. The paper trains a model for these two decisions; here a prompt asks for them,
so the loop has another name. What the model answers from memory is marked as such wherever it is shown.

A search is made with the smaller question, and the answering role, which may decline, answers it from what was found.
A reply that stays unusable after its repair is skipped and reported: an unusable decision ends the steps, an unusable
answer counts as not found. Constants are ours: the paper states no limit of steps that applies without its training.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from functools import partial

from tomewise.calls import CallCount, read_calls, sum_calls, write_number
from tomewise.events import make_event, report_retrieved
from tomewise.language.roles import STEP, StepIn, StepOut
from tomewise.loops.desk import Desk
from tomewise.loops.evidence import fold
from tomewise.loops.last_prompt import DEPTH, Searched
from tomewise.loops.steps import Collection, LoopState, rank_found, take_steps
from tomewise.types import Answer, Event, Evidence, Question, Retriever

STEPS = 5
_OF_PART = 3  # a smaller answer is shown one part in so many of the budget
_NOT_FOUND = "not found"
_FROM_MEMORY = "(from general knowledge, not from the texts)"


@dataclass(frozen=True, eq=False)
class Stepwise:
    """Answers smaller questions until the model finds that they suffice, at most `steps`; then the question itself.

    Each search asks for `limit` pieces of evidence. The last answer is shown what fits into `budget` tokens, the answer
    to a smaller question what fits into a third of them.
    """

    recall: Retriever
    desk: Desk
    limit: int
    budget: int
    steps: int = STEPS

    @property
    def calls(self) -> CallCount:
        """A decision and an answer a step, the searches, and the last answer. Without a search there is one at last."""
        search = read_calls(self.recall)
        step = sum_calls([CallCount("2", 2), search])
        most = sum_calls([step.repeat(self.steps), search, CallCount("1", 1)]).most
        limit = "" if most is None else f", at most {write_number(most)} in {self.steps} steps"
        return CallCount(f"{step.formula} a step + 1{limit}", most)

    async def run(self, question: Question) -> AsyncIterator[Event | Answer]:
        """By step `decided`, and `searched` and `found` after a search; at last `searched` and the answer."""
        state = _StepwiseState(question=question, collection=Collection(self.recall, self.limit, depth=DEPTH))
        async for event in take_steps(state, partial(self._take_step, state), most=self.steps, name="step"):
            yield event
        queries = list(state.collection.lists)
        yield await state.collection.search(question.text, state)
        ranked = await rank_found(self.desk, question, state.collection.lists[-1], queries, Searched(state.cited))
        prepared = await self.desk.prepare(
            question,
            ranked,
            notes=[f"{asked} {found}" for asked, found in state.answers.items() if found],
            budget=self.budget,
        )
        yield report_retrieved(prepared.evidence, prepared.found, state.step)
        yield await self.desk.answer(question, prepared)

    async def _take_step(self, state: _StepwiseState) -> AsyncIterator[Event]:
        """Decide, and answer the smaller question."""
        findings = [f"{asked} {found or _NOT_FOUND}" for asked, found in state.answers.items()]
        step_input = StepIn(question=state.question.text, asked=list(state.answers), findings=findings)
        reply = await state.ask(self.desk, STEP, step_input)
        state.end = _find_end(reply, state.answers)
        if reply is None:
            return
        yield make_event("decided", state.step, **reply.model_dump())
        if state.end:
            return
        if reply.search or not reply.answer:
            yield await state.collection.search(reply.subquestion, state)
            async for event in self._answer_part(state, reply.subquestion):
                yield event
        else:
            state.answers[reply.subquestion] = f"{reply.answer} {_FROM_MEMORY}"

    async def _answer_part(self, state: _StepwiseState, subquestion: str) -> AsyncIterator[Event]:
        """Answer a smaller question from what was just found for it."""
        part = Question(text=subquestion, within=state.question.within)
        prepared = await self.desk.prepare(
            part, state.collection.lists[-1][: self.limit], budget=self.budget // _OF_PART
        )
        answer = await state.skipped.try_call(self.desk.answer(part, prepared, final=False), None)
        if answer is not None:
            cited = {quote.passage for quote in answer.quotes}
            state.cited[:0] = [piece for piece in prepared.evidence if cited.intersection(piece.sources)]
        text = answer.words if answer and answer.resolved else ""
        state.answers[subquestion] = text
        yield make_event("found", state.step, answer=text, asked=subquestion)


@dataclass(slots=True, kw_only=True)
class _StepwiseState(LoopState):
    """The state of the loop for one question."""

    collection: Collection
    answers: dict[str, str] = field(default_factory=dict)  # of the smaller questions; empty where none was found
    cited: list[Evidence] = field(default_factory=list)  # what the answers cite, that of the newest first


def _find_end(reply: StepOut | None, subquestions: Iterable[str]) -> str:
    """Why this reply ends the steps; empty if it does not."""
    if reply is None:
        return "the reply was not usable"
    if reply.finished:
        return "the findings suffice"
    if not reply.subquestion:
        return "no smaller question was asked"
    return "the smaller question was asked before" if fold(reply.subquestion) in map(fold, subquestions) else ""
