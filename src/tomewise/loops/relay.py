"""Read the whole text in order, chunk by chunk, then answer from what was written down.

`relay` is what all loops that read in order share. Here is the one with a note in free text that each reader hands on
to the next (Chain of Agents, Zhang et al. 2024); `ledger_relay` has the ledger of COSMIR, and `read_through` ours. What
was not read, or had no room, is named to the answering role.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

from tomewise.calls import CallCount
from tomewise.events import make_event
from tomewise.language.roles import CARRY_NOTE, AnswerIn, CarryIn
from tomewise.loops.chunking import Chunk, find_chunks, measure_room
from tomewise.loops.desk import Desk, Prepared, decline, make_answer_input
from tomewise.loops.steps import Skipped
from tomewise.recall.ranking import as_evidence
from tomewise.store.records import PASSAGES
from tomewise.types import Answer, Event, Evidence, Passage, Question
from tomewise.types.proof import Unread

_TOKENS_PER_WORD = 2
_UNREAD = "This part of the text could not be read: {}."
_LEFT = "The reading ended early, as nothing seemed open any more. Not read: {}."
_CUT = "Of {} readers' notes a part had no room."


@dataclass(slots=True, kw_only=True, eq=False)
class Written:
    """What is written down for one question while its text is read.

    `unread` are passages without a usable reply, chunk by chunk; `left` those that nobody read, as nothing was open.
    """

    question: Question
    unread: list[Sequence[Passage]] = field(default_factory=list)
    left: Sequence[Passage] = ()
    skipped: Skipped = field(default_factory=Skipped)

    def conclude(self, answer: str) -> dict[str, Any] | None:
        """Keep the answer with it. Returns what a trace holds of it, if its notes are not all."""
        return None


@runtime_checkable
class InOrder(Protocol):
    """A loop that reads in order."""

    @property
    def desk(self) -> Desk: ...

    async def find_chunks(self, question: Question) -> list[Chunk]:
        """What is to be read, in this order. Raises UsageError if the window of a model is too small."""

    async def estimate_calls(self, question: Question) -> int:
        """The most calls, where no reply is full."""

    def read(self, written: Any, chunks: Sequence[Chunk]) -> AsyncIterator[Event]:
        """Read the chunks, and write down."""

    async def prepare(self, written: Any, remarks: Sequence[str]) -> tuple[Prepared[AnswerIn], list[str]]:
        """The input of the answering role, with `remarks` on what was not read, and the notes in it."""


async def relay(loop: InOrder, written: Written) -> AsyncIterator[Event | Answer]:
    """The events of reading, `answered`, then the answer.

    If nothing could be read, the error of the last call is raised, and nobody is asked about nothing.
    """
    desk, chunks = loop.desk, await loop.find_chunks(written.question)
    yield make_event("divided", chunks=len(chunks), tokens=sum(chunk.tokens for chunk in chunks))
    if not chunks:
        yield decline("no text to read was found")
        return
    async for event in loop.read(written, chunks):
        yield event
    not_read = {passage.id for passages in (*written.unread, written.left) for passage in passages}
    shown = {passage.id for chunk in chunks for passage in chunk.passages} - not_read
    if not shown and written.skipped.last:
        raise written.skipped.last
    unread = await asyncio.to_thread(lambda: [describe_passages(each, desk) for each in written.unread])
    remarks, early = [_UNREAD.format(name) for name in unread], tuple[Unread, ...]()
    if written.left:
        remarks.append(_LEFT.format(await asyncio.to_thread(describe_passages, written.left, desk)))
        early = (Unread(what="passage", count=len(written.left), mend="`to_end=true` reads on"),)
    prepared, notes = await loop.prepare(written, remarks)
    attempt = await desk.attempt(written.question, prepared)
    answer, evidence = attempt.answer, attempt.answer.evidence
    missing = [answer.missing, f"not read: {'; '.join(unread)}" if unread else ""]
    shown |= {piece.id for piece in evidence if piece.layer == PASSAGES}
    coverage = replace(answer.coverage, read=len(shown), unread=early)
    answer = replace(answer, missing="; ".join(filter(None, missing)), coverage=coverage)
    yield make_event(
        "answered",
        0,
        evidence=evidence,
        shown=list(dict.fromkeys(source for piece in evidence for source in piece.sources)),
        notes=notes,
        cut=prepared.dropped,
        answer=attempt.reply.answer,
        failed=not answer.resolved,
        missing=answer.missing,
        ledger=written.conclude(answer.text),
    )
    yield answer


def list_passages(passages: Sequence[Passage]) -> list[Evidence]:
    """The passages as evidence, in this order: E1, E2, ..."""
    return [as_evidence(passage, 1.0) for passage in passages]


def describe_passages(passages: Sequence[Passage], desk: Desk) -> str:
    """Where they stand: "story.md, parts 12 to 30 of 59"; of several documents the first and the last part."""
    documents = list(dict.fromkeys(passage.document for passage in passages))
    ends = []
    for document in dict.fromkeys((documents[0], documents[-1])):
        run = [passage for passage in passages if passage.document == document]
        sources = tuple(passage.id for passage in run)
        (shown,) = desk.show([Evidence(id=document, layer="chunk", text="", score=1.0, sources=sources)])
        ends.append(", ".join(filter(None, (run[0].title or shown.document, shown.place))))
    return " to ".join(ends) + (f" ({len(documents)} documents)" if len(documents) > 2 else "")


# ---------------------------------------------------------------- Chain of Agents


@dataclass(slots=True, kw_only=True, eq=False)
class HandedNote(Written):
    """The note that is handed on. `cut` counts the notes that lost a part."""

    note: str = ""
    cut: int = 0


@dataclass(frozen=True, eq=False)
class ChainOfAgents:
    """Chunks of `size` tokens, each read with the note of the reader before, for a new note of at most `words`."""

    calls = CallCount("1 a chunk + 1")

    desk: Desk
    size: int
    words: int

    async def estimate_calls(self, question: Question) -> int:
        """One a chunk, and the answer. Calls no model. Raises UsageError if the window is too small."""
        chunks = await self.find_chunks(question)
        return len(chunks) + 1 if chunks else 0

    async def run(self, question: Question) -> AsyncIterator[Event | Answer]:
        """See `relay`."""
        async for output in relay(self, HandedNote(question=question)):
            yield output

    async def find_chunks(self, question: Question) -> list[Chunk]:
        empty = CarryIn(question=question.text, evidence=[], words=self.words)
        beside = _TOKENS_PER_WORD * self.words
        room = await asyncio.to_thread(measure_room, self.desk, CARRY_NOTE, empty, beside)
        return await find_chunks(self.desk, question, min(self.size, room))

    async def read(self, written: HandedNote, chunks: Sequence[Chunk]) -> AsyncIterator[Event]:
        """Read the chunks one after the other. One without a usable reply leaves the note as it is.

        A note far beyond its words, or one that a model could not end, is cut, and counted.
        """
        most = _TOKENS_PER_WORD * self.words
        for step, chunk in enumerate(chunks, start=1):
            shown = await asyncio.to_thread(self.desk.show, list_passages(chunk.passages))
            given = CarryIn(question=written.question.text, note=written.note, evidence=shown, words=self.words)
            reply = await written.skipped.try_call(self.desk.model.ask(CARRY_NOTE, given), None)
            if reply is None:
                written.unread.append(chunk.passages)
            else:
                written.note = await asyncio.to_thread(self.desk.layout.shorten, reply.note, most)
                written.cut += bool(reply.unfinished) or written.note != reply.note
            name = await asyncio.to_thread(describe_passages, chunk.passages, self.desk)
            yield make_event("unread" if reply is None else "read", step, chunk=name, notes=[written.note])
            for event in written.skipped.events(step):
                yield event

    async def prepare(self, written: HandedNote, remarks: Sequence[str]) -> tuple[Prepared[AnswerIn], list[str]]:
        """The last note alone."""
        cut = [_CUT.format(written.cut)] if written.cut else []
        notes = [*remarks, *cut, *filter(None, [written.note])]
        given = make_answer_input(written.question, [], notes=notes, may_decline=not written.question.force)
        return Prepared(given, [], [], [], written.cut), notes
