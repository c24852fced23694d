"""The plainest loop: retrieve once, then answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from tomewise.calls import CallCount, read_calls, sum_calls
from tomewise.language.roles import ANSWER, AnswerIn
from tomewise.loops.answering import make_answer_input, read_answer
from tomewise.loops.citing import Citer
from tomewise.loops.events import describe_retrieval, list_facts
from tomewise.loops.evidence import Count, Shelf, fit_to_budget, fit_to_window
from tomewise.loops.neighbours import Neighbours
from tomewise.loops.repeats import drop_near_repeats
from tomewise.types import Answer, Event, Evidence, LanguageModel, Question, Retriever


class Once:
    """Retrieve, show what fits into the budget best first, answer, or decline unless a guess is asked for.

    `limit` pieces of evidence are asked for; `neighbours` adds the passages around them. `budget` is in tokens, None
    for as much as the model's window holds, near-repeats included. Options reach the answering role alone.
    """

    def __init__(
        self,
        retriever: Retriever,
        model: LanguageModel,
        citer: Citer,
        shelf: Shelf,
        count: Count,
        *,
        limit: int,
        budget: int | None,
        neighbours: Neighbours | None = None,
    ) -> None:
        self._retriever = retriever
        self._model = model
        self._citer = citer
        self._shelf = shelf
        self._neighbours = neighbours
        self._count = count
        self._limit = limit
        self._budget = budget

    @property
    def calls(self) -> CallCount:
        return sum_calls([CallCount("1", 1), read_calls(self._retriever)])

    async def run(self, question: Question) -> AsyncIterator[Event | Answer]:
        """Two steps: `retrieved`, then the answer."""
        found = await self._retriever.retrieve(question.text, self._limit)
        found, evidence, given = await asyncio.to_thread(self._prepare, question, found)
        summary = list_facts(found=len(found), cut=len(found) - len(evidence))
        yield Event(name="retrieved", summary=summary, detail=describe_retrieval(evidence, found))
        reply = await self._model.ask(ANSWER, given)
        yield await asyncio.to_thread(
            read_answer, reply, question, evidence, self._citer, may_decline=not question.force
        )

    def _prepare(self, question: Question, found: list[Evidence]) -> tuple[list[Evidence], list[Evidence], AnswerIn]:
        """What could be shown, what fits, and the input of the answering role."""
        if self._neighbours is not None:
            found = self._neighbours.add(found, question.within)
        best = found
        if self._budget is not None:
            found = drop_near_repeats(found)
            best = fit_to_budget(found, self._budget, self._count)
        shown = self._shelf.show(best)

        def make_input(evidence: Sequence[Evidence]) -> AnswerIn:
            return make_answer_input(question, shown[: len(evidence)], may_decline=not question.force)

        evidence = fit_to_window(best, self._model, ANSWER, make_input)
        return found, evidence, make_input(evidence)
