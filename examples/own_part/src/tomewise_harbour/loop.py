"""A loop of its own: a first answer from little, and a second one from more where the first was declined."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import tomewise.parts as tw


class Doubted:
    """Searches once, and shows the `first` pieces; all of them where the model declines to answer from those."""

    def __init__(self, recall: tw.Retriever, desk: tw.Desk, *, first: int, limit: int, context: int) -> None:
        self._recall, self._desk = recall, desk
        self._first, self._limit, self._context = first, limit, context
        self.calls = tw.sum_calls([tw.CallCount("2", 2), tw.read_calls(recall)])

    async def run(self, question: tw.Question) -> AsyncIterator[tw.Event | tw.Answer]:
        """The events of one attempt or of two, and the answer."""
        found = await self._recall.retrieve(question.text, self._limit, within=question.within)
        little = replace(question, force=False)  # the first answer may be declined, whatever is asked for
        prepared = await self._desk.prepare(little, found[: self._first], budget=self._context)
        yield tw.report_retrieved(prepared.evidence, prepared.found)
        answer = await self._desk.answer(little, prepared, final=False)
        if not answer.resolved:
            yield tw.Event(name="doubted", step=1, summary="the first answer was declined: look at more")
            prepared = await self._desk.prepare(question, found, budget=self._context)
            yield tw.report_retrieved(prepared.evidence, prepared.found, step=1)
            answer = await self._desk.answer(question, prepared)
        yield answer


def doubt_first(
    kit: tw.Kit, recall: tw.Recall, *, first: tw.Count = 1, limit: tw.Count = 20, context: tw.Count = 6000
) -> tw.System:
    """Answer from the first pieces of evidence, and from all where that fails."""
    loop = Doubted(recall.retriever, kit.desk, first=first, limit=limit, context=context)
    return tw.System(loop=loop, retriever=recall.retriever, layers=recall.layers)
