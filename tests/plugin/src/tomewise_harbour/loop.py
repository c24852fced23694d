"""A loop: a first answer from little, and a second from more where the first was declined."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

from tomewise.parts import Answer, CallCount, Count, Event, Kit, Loop, Question, Recall, System, answer_once, read_calls


class Doubted:
    """Asks the second loop only where the first one declines."""

    def __init__(self, first: Loop, second: Loop) -> None:
        self._loops = first, second
        most = [read_calls(loop).most for loop in self._loops]
        self.calls = CallCount("twice one search and one answer", None if None in most else sum(map(float, most)))

    async def run(self, question: Question) -> AsyncIterator[Event | Answer]:
        """The events of the loops that run, and one answer."""
        async for output in self._loops[0].run(replace(question, force=False)):
            if isinstance(output, Answer) and output.resolved:
                yield output
                return
            if isinstance(output, Event):
                yield output
        yield Event(name="doubted", step=1, summary="the first answer was declined: look at more")
        async for output in self._loops[1].run(question):
            yield replace(output, step=1) if isinstance(output, Event) else output


def doubt_first(kit: Kit, recall: Recall, *, first: Count = 1, limit: Count = 20, context: Count = 6000) -> System:
    """Answer from the first pieces of evidence, and from all where that fails."""
    little, much = (answer_once(kit, recall.retriever, most, context).loop for most in (first, limit))
    return System(loop=Doubted(little, much), retriever=recall.retriever, layers=recall.layers)
