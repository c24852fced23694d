"""Opens the ledger of each question, and states what the reading costs."""

from __future__ import annotations

from tomewise.calls import NO_CALLS, CallCount, read_calls
from tomewise.loops.ledger_notebook import LedgerNotebook, LedgerParts
from tomewise.types import Question
from tomewise.working.ledger_memory import LedgerMemory


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
