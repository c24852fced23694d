"""The plainest loop: retrieve once, then answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

from tomewise.calls import CallCount, read_calls, sum_calls
from tomewise.events import report_retrieved
from tomewise.loops.desk import Desk
from tomewise.loops.steps import rank_found
from tomewise.types import Answer, Event, Question, Retriever


@dataclass(frozen=True, eq=False)
class Once:
    """Retrieve, show what fits into the budget, answer or decline.

    The search gives up to `limit` pieces of evidence. `budget` is in tokens. None shows as much as the model's window
    holds. Options reach the answering role alone.
    """

    recall: Retriever
    desk: Desk
    limit: int
    budget: int | None

    @property
    def calls(self) -> CallCount:
        """The calls of a question."""
        return sum_calls([CallCount("1", 1), read_calls(self.recall)])

    async def run(self, question: Question) -> AsyncIterator[Event | Answer]:
        """Two steps: `retrieved`, then the answer."""
        found = await self.recall.retrieve(question.text, self.limit, within=question.within)
        ranked = await rank_found(self.desk, question, found)
        prepared = await self.desk.prepare(question, ranked, budget=self.budget)
        yield report_retrieved(prepared.evidence, prepared.found)
        yield await self.desk.answer(question, prepared)
