"""The plainest loop: retrieve once, then answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from tomewise.calls import CallCount, read_calls, sum_calls
from tomewise.events import Retrieved
from tomewise.loops.answering import Answering
from tomewise.loops.citing import Citer
from tomewise.loops.evidence import Count, Shelf
from tomewise.loops.neighbours import Neighbours
from tomewise.types import Answer, Event, LanguageModel, Question, Retriever


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
        self._answering = Answering(model, citer, shelf, count, budget=budget)
        self._neighbours = neighbours
        self._limit = limit

    @property
    def calls(self) -> CallCount:
        return sum_calls([CallCount("1", 1), read_calls(self._retriever)])

    async def run(self, question: Question) -> AsyncIterator[Event | Answer]:
        """Two steps: `retrieved`, then the answer."""
        found = await self._retriever.retrieve(question.text, self._limit, within=question.within)
        if self._neighbours is not None:
            found = await asyncio.to_thread(self._neighbours.add, found, question.within)
        prepared = await self._answering.prepare(question, found)
        yield Retrieved.of(prepared.evidence, prepared.found)
        yield await self._answering.ask(question, prepared)
