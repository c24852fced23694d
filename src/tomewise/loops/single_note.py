"""Reading with one note in free text that each reader hands on to the next (Chain of Agents, Zhang et al. 2024)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from tomewise.calls import CallCount
from tomewise.events import ChunkRead, ChunkUnread
from tomewise.language.roles import CARRY_NOTE, CarryIn
from tomewise.loops.desk import Desk
from tomewise.loops.layout import Note
from tomewise.loops.notes import Findings, describe_chunk, list_passages
from tomewise.loops.rooms import Room, check_rooms
from tomewise.loops.steps import Skipped
from tomewise.reading.chunks import Chunk
from tomewise.types import Event, Question

_TOKENS_PER_WORD = 1.5


class NoteReading:
    """Opens an empty note for each question. `words` is how long a note may be."""

    calls = CallCount("1 a chunk")

    def __init__(self, desk: Desk, *, words: int) -> None:
        self._desk = desk
        self._words = words

    def measure_room(self, question: Question) -> int:
        """What the prompt and a note of the greatest length leave."""
        empty = CarryIn(question=question.text, evidence=[], words=self._words)
        room = Room.measure(self._desk, CARRY_NOTE, empty, beside=round(_TOKENS_PER_WORD * self._words))
        check_rooms(self._desk, [room])
        return room.tokens

    def count_calls(self, chunks: Sequence[Chunk]) -> int:
        """One a chunk."""
        return len(chunks)

    def open(self, question: Question) -> SingleNote:
        """An empty note."""
        return SingleNote(question, self._desk, self._words)


class SingleNote:
    """The note of one question while its text is read. A chunk without a usable reply leaves the note as it is."""

    def __init__(self, question: Question, desk: Desk, words: int) -> None:
        self._question = question
        self._desk = desk
        self._words = words
        self.note = ""
        self.unread: list[Chunk] = []
        self.skipped = Skipped()

    async def read(self, chunks: Sequence[Chunk]) -> AsyncIterator[Event]:
        """Read the chunks one after the other."""
        for step, chunk in enumerate(chunks, start=1):
            shown = await asyncio.to_thread(self._desk.show, list_passages(chunk))
            carry_input = CarryIn(question=self._question.text, note=self.note, evidence=shown, words=self._words)
            reply = await self.skipped.try_call(self._desk.model.ask(CARRY_NOTE, carry_input), None)
            if reply is None:
                self.unread.append(chunk)
            else:
                self.note = reply.note
            kind = ChunkUnread if reply is None else ChunkRead
            name = await asyncio.to_thread(describe_chunk, chunk, self._desk)
            yield kind(step=step, chunk=name, notes=[self.note])
            for event in self.skipped.events(step):
                yield event

    def collect(self) -> Findings:
        """The note."""
        return Findings(notes=(Note(self.note),) if self.note else ())

    def conclude(self, answer: str) -> None:
        """Nothing: the note is among what the answering role saw."""
