"""The relay with a ledger that can outlive its question, and that can be drawn."""

from __future__ import annotations

from collections.abc import AsyncIterator

from tomewise.calls import CallCount
from tomewise.loops.chunking import Chunking
from tomewise.loops.desk import Desk
from tomewise.loops.ledger_reading import LedgerReading
from tomewise.loops.pictures import draw_ledger
from tomewise.loops.relay import Relay
from tomewise.pictures import Picture
from tomewise.types import Answer, Event, Question
from tomewise.working.ledger_memory import LedgerMemory


class LedgerRelay:
    """`Relay` over the same text, question after question: each starts from the facts and inferences of earlier ones.

    The questions of the ledger begin anew.
    """

    def __init__(self, desk: Desk, chunking: Chunking, reading: LedgerReading) -> None:
        self._desk = desk
        self._chunking = chunking
        self._reading = reading

    @property
    def calls(self) -> CallCount:
        """Those of a relay, for a question without earlier facts."""
        return self._start_from(LedgerMemory()).calls

    def open_memory(self, data: object = None) -> LedgerMemory:
        """A new memory, or the one of which `dump` made `data`."""
        return LedgerMemory() if data is None else LedgerMemory.load(data)

    def draw(self, question: Question, answer: Answer) -> Picture:
        """The ledger behind an answer of this loop, from its events. Raises UsageError without it."""
        return draw_ledger(question, answer)

    async def run(self, question: Question, memory: LedgerMemory | None = None) -> AsyncIterator[Event | Answer]:
        """The events of the relay, then the answer. A `memory` that is given is used and changed."""
        relay = self._start_from(self.open_memory() if memory is None else memory)
        async for output in relay.run(question):
            yield output

    def _start_from(self, memory: LedgerMemory) -> Relay:
        return Relay(self._desk, self._chunking, self._reading.start_from(memory))
