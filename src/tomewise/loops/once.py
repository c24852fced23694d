"""The plainest loop: retrieve once, then answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from tomewise.calls import CallCount, read_calls, sum_calls
from tomewise.events import Retrieved
from tomewise.loops.desk import Desk
from tomewise.types import Answer, Event, Question, Retriever


class Once:
    """Retrieve, show what fits into the budget best first, answer, or decline unless a guess is asked for.

    `limit` pieces of evidence are asked for; of each passage `neighbours` before and after it are added. `budget` is in
    tokens, None for as much as the model's window holds, near-repeats included. Options reach the answering role alone.
    """

    def __init__(self, recall: Retriever, desk: Desk, *, limit: int, budget: int | None, neighbours: int = 0) -> None:
        self._recall = recall
        self._desk = desk
        self._limit = limit
        self._budget = budget
        self._neighbours = neighbours

    @property
    def calls(self) -> CallCount:
        return sum_calls([CallCount("1", 1), read_calls(self._recall)])

    async def run(self, question: Question) -> AsyncIterator[Event | Answer]:
        """Two steps: `retrieved`, then the answer."""
        found = await self._recall.retrieve(question.text, self._limit, within=question.within)
        if self._neighbours:
            found = await asyncio.to_thread(self._desk.add_neighbours, found, self._neighbours, question.within)
        prepared = await self._desk.prepare(question, found, budget=self._budget)
        yield Retrieved.of(prepared.evidence, prepared.found)
        yield await self._desk.answer(question, prepared)
