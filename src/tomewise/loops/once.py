"""The plainest loop: retrieve once, then answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

from tomewise.calls import CallCount, read_calls, sum_calls
from tomewise.events import report_retrieved
from tomewise.loops.desk import Desk
from tomewise.loops.last_prompt import Searched
from tomewise.types import Answer, Choosing, Event, Question, Retriever

_BESIDE_CHOSEN = 0.2  # of the score of a hit that a model chose goes to the passages beside it


@dataclass(frozen=True, eq=False)
class Once:
    """Retrieve, show what fits into the budget by the rule of the last prompt, answer or decline.

    The search gives up to `limit` pieces of evidence. `budget` is in tokens. None shows what was found alone, as much
    as the model's window holds, near-repeats included. Options reach the answering role alone. Where a model chooses
    what comes first (`types.Choosing`), the desk does not search as well: its finds would stand before that.
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
        if self.budget is None:
            prepared = await self.desk.prepare(question, found, budget=None)
        else:
            if isinstance(self.recall, Choosing) and self.recall.chooses:
                searches = [Searched(found, beside=_BESIDE_CHOSEN)]
            else:
                searches = [Searched(found), *await self.desk.search_plainly(question, found, self.recall)]
            ranked = await self.desk.rank(searches, question.within)
            prepared = await self.desk.lay_out(question, ranked, budget=self.budget)
        yield report_retrieved(prepared.evidence, prepared.found)
        yield await self.desk.answer(question, prepared)
