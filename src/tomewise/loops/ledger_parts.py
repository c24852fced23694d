"""What a reading with a ledger is made of, and how much of a text and of a ledger fits into the model's window."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tomewise.errors import UsageError
from tomewise.language.roles import (
    ANSWER,
    EXTRACT_NOTES,
    INFER_NOTES,
    REFINE_QUESTIONS,
    InferIn,
    NotesIn,
    NotesOut,
    RefineIn,
)
from tomewise.loops.chunking import LEAST_ROOM, Chunking, Room, check_rooms
from tomewise.loops.desk import Desk, make_answer_input
from tomewise.types import Question, Retriever, Role

NETS = 4  # places of wide questions
_OF_QUESTION = 30  # tokens of an open question
_OF_FACT = 60  # tokens of a fact with its quotation
_FEWEST, _MOST = 8, 60  # facts that are asked for of one chunk
_PER_FACT = 200  # tokens of a chunk for each of them
_REPLY, _OF_REPLY = 256, 80  # tokens of a reply, and of a fact in it
_SHOWN = 2.1  # times its budget is a ledger when it is shown: half as many inferences, and labels and places


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycle:
    """How a ledger is kept. `memory` is how many tokens of facts the ledger holds, 0: no limit.

    `wave` chunks are read side by side. `questions` places are for open questions; with 0 of them there is neither a
    refinement nor a recovery. `recovery` is the share of the text that may be read again for open questions, up to
    `limit` passages a question; 0: none.
    """

    memory: int = 8_000
    wave: int = 1
    questions: int = 10
    infers: bool = True
    refines: bool = True
    recovery: float = 0.2
    limit: int = 40

    def __post_init__(self) -> None:
        if self.wave < 1:
            raise UsageError(f"waves of {self.wave} chunks read nothing: give 1 or more")
        if not 0 <= self.recovery <= 1:
            raise UsageError(f"recovery is the share of the text that is read again, from 0 to 1, not {self.recovery}")
        if not self.questions:
            object.__setattr__(self, "refines", False)
            object.__setattr__(self, "recovery", 0.0)


@dataclass(frozen=True, slots=True)
class LedgerParts:
    """What a ledger is kept with. `recall` searches for what was missed."""

    recall: Retriever
    desk: Desk
    chunking: Chunking
    cycle: Cycle

    def measure_room(self, question: Question) -> int:
        """The most tokens of a chunk: what the prompt, the open questions and a reply leave.

        Raises UsageError if the window has no room for a chunk and a ledger.
        """
        empty = NotesIn(question=question.text, evidence=[])
        spare = Room.measure(self.desk, make_extract_role(0), empty, beside=self._of_questions).tokens
        room = Room(EXTRACT_NOTES, max(int(spare / (1 + _OF_REPLY / _PER_FACT)), spare - _MOST * _OF_REPLY))
        check_rooms(self.desk, [room, *self._measure_ledger_rooms(question)])
        return room.tokens

    def measure_ledger(self, question: Question) -> int | None:
        """The tokens of facts that a ledger holds; None: no limit."""
        rooms = [int(room.tokens / _SHOWN) for room in self._measure_ledger_rooms(question)]
        return max(1, min(self.cycle.memory, *rooms)) if self.cycle.memory else None

    def count_wanted(self, chunk: int, left: int | None) -> int:
        """How many facts a chunk of so many tokens is asked for, where `left` tokens of the ledger are for it."""
        wanted = chunk // _PER_FACT
        return min(max(wanted if left is None else min(wanted, left // _OF_FACT), _FEWEST), _MOST)

    @property
    def _of_questions(self) -> int:
        """The tokens of all questions that may be open."""
        return _OF_QUESTION * (self.cycle.questions + NETS)

    def _measure_ledger_rooms(self, question: Question) -> list[Room]:
        """What the calls that show a ledger leave for it."""
        asked = question.text
        empty: list[tuple[Role[Any, Any], Any]] = [
            (INFER_NOTES, InferIn(question=asked)),
            (REFINE_QUESTIONS, RefineIn(question=asked)),
            (ANSWER, make_answer_input(question, [])),
        ]
        least = int(_SHOWN * min(LEAST_ROOM, self.cycle.memory or LEAST_ROOM))
        return [Room.measure(self.desk, *each, beside=self._of_questions, least=least) for each in empty]


def make_extract_role(facts: int) -> Role[NotesIn, NotesOut]:
    """The role of extracting with room in its reply for so many facts."""
    return replace(EXTRACT_NOTES, output_tokens=_REPLY + _OF_REPLY * facts)
