"""The relay with a ledger that can outlive its question, and that can be drawn."""

from __future__ import annotations

from collections.abc import AsyncIterator

from tomewise.calls import NO_CALLS, CallCount, read_calls
from tomewise.loops.chunking import Chunking
from tomewise.loops.desk import Desk
from tomewise.loops.ledger_notes import LedgerNotebook, LedgerParts
from tomewise.loops.relay import Relay
from tomewise.loops.working_pictures import draw_ledger
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


class LedgerReading:
    """Opens a notebook with a ledger for each question: an empty one, or that of `memory`."""

    def __init__(self, parts: LedgerParts, memory: LedgerMemory | None = None) -> None:
        self._parts = parts
        self._memory = memory

    @property
    def calls(self) -> CallCount:
        """The plan, one call a chunk, up to two a wave; the same again for the part that is read again.

        That is for a question without earlier facts; these take up to two calls more.
        """
        cycle = self._parts.cycle
        steps = cycle.infers + cycle.refines
        waves = f" + {steps} a wave of {cycle.wave}" if steps and cycle.wave > 1 else ""
        each = f"1 + {1 if waves else 1 + steps} a chunk{waves}"
        search = read_calls(self._parts.recall)
        again = f", at most {cycle.recovery:.0%} of the text read twice" if cycle.recovery else ""
        searches = f", searches of {search.formula}" if again and search != NO_CALLS else ""
        return CallCount(each + again + searches)

    def start_from(self, memory: LedgerMemory) -> LedgerReading:
        """The same reading from this memory, in which a notebook leaves what outlives its question."""
        return LedgerReading(self._parts, memory)

    def open(self, question: Question) -> LedgerNotebook:
        """A notebook with the ledger to start from."""
        return LedgerNotebook(question, self._parts, self._memory or LedgerMemory())
