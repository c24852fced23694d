"""The plainest loop: retrieve once, then answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial

from tomewise.calls import CallCount, read_calls, sum_calls
from tomewise.language.roles import ANSWER, AnswerIn
from tomewise.loops.answering import make_answer_input, read_answer
from tomewise.loops.citing import Citer
from tomewise.loops.events import describe_retrieval, list_facts
from tomewise.loops.evidence import Count, fit_to_budget, fit_to_window
from tomewise.types import Answer, Event, Evidence, LanguageModel, Question, Retriever


class Once:
    """Retrieve, show what fits into the budget best first, answer, or decline unless a guess is asked for.

    `limit` pieces of evidence are asked for; `budget` is in tokens, None for as much as the model's window holds.
    Options reach the answering role alone.
    """

    def __init__(
        self, retriever: Retriever, model: LanguageModel, citer: Citer, count: Count, *, limit: int, budget: int | None
    ) -> None:
        self._retriever = retriever
        self._model = model
        self._citer = citer
        self._count = count
        self._limit = limit
        self._budget = budget

    @property
    def calls(self) -> CallCount:
        return sum_calls([CallCount("1", 1), read_calls(self._retriever)])

    async def run(self, question: Question) -> AsyncIterator[Event | Answer]:
        """Two steps: `retrieved`, then the answer."""
        found = await self._retriever.retrieve(question.text, self._limit)
        given = partial(make_answer_input, question, may_decline=not question.force)
        evidence = await asyncio.to_thread(self._fit, found, given)
        summary = list_facts(found=len(found), cut=len(found) - len(evidence))
        yield Event(name="retrieved", summary=summary, detail=describe_retrieval(evidence, found))
        reply = await self._model.ask(ANSWER, given(evidence))
        yield await asyncio.to_thread(
            read_answer, reply, question, evidence, self._citer, may_decline=not question.force
        )

    def _fit(self, found: Sequence[Evidence], given: Callable[[Sequence[Evidence]], AnswerIn]) -> list[Evidence]:
        best = found if self._budget is None else fit_to_budget(found, self._budget, self._count)
        return fit_to_window(best, self._model, ANSWER, given)
