"""Read the whole text in order, chunk by chunk, then answer from what was written down.

`InOrder` is what all loops that read in order share. Here is the one with a note in free text that each reader hands on
to the next (Chain of Agents, Zhang et al. 2024); `ledger_relay` has the ledger of COSMIR, and `read_through` ours. What
was not read, or had no room, is named to the answering role.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from tomewise.calls import CallCount
from tomewise.events import make_event
from tomewise.language.roles import CARRY_NOTE, AnswerIn, CarryIn, Shown
from tomewise.loops.chunking import Chunk, cut_chunks, measure_room
from tomewise.loops.desk import Desk, Prepared, decline
from tomewise.loops.last_prompt import Context
from tomewise.loops.steps import LoopState
from tomewise.recall.flat import Everything
from tomewise.recall.ranking import as_evidence
from tomewise.store.records import PASSAGES
from tomewise.types import Answer, Cost, Event, Evidence, Passage, Question, Role
from tomewise.types.proof import Unread

EmptyCall: TypeAlias = tuple[Role[Any, Any], Any, int]
_ALL = 10**9  # passages
_TOKENS_PER_WORD = 2
_BESIDE = 4_000  # tokens of a call that reads no text, for its rules and notes
_UNREAD = "This part of the text could not be read: {}."
_LEFT = "The reading ended early, as nothing seemed open any more. Not read: {}."
_CUT = "Of {} readers' notes a part had no room."


@dataclass(slots=True, kw_only=True)
class Written(LoopState):
    """What is written down for one question while its text is read.

    `unread` are passages without a usable reply, chunk by chunk; `left` those that nobody read, as nothing was open.
    """

    unread: list[Sequence[Passage]] = field(default_factory=list)
    left: Sequence[Passage] = ()


@dataclass(frozen=True, eq=False)
class InOrder(ABC):
    """A loop that reads chunks of `size` tokens, fewer where a window is smaller, and answers from what it wrote.

    `recovery` is the share of the text that may be read again.
    """

    desk: Desk
    size: int
    recovery: float = field(default=0.0, kw_only=True)

    @abstractmethod
    def make_empty_call(self, question: Question) -> EmptyCall:
        """The role that reads a chunk, its input without text, and the tokens of what grows in it."""

    @abstractmethod
    def count_calls(self, chunks: Sequence[Chunk]) -> int:
        """The most calls, where no reply is full."""

    @abstractmethod
    def begin(self, question: Question, memory: Any) -> Written:
        """What is written down before the first chunk."""

    @abstractmethod
    def read(self, written: Any, chunks: Sequence[Chunk]) -> AsyncIterator[Event]:
        """Read the chunks, and write down."""

    @abstractmethod
    async def prepare(self, written: Any, remarks: Sequence[str]) -> Prepared[AnswerIn]:
        """The input of the answering role, with `remarks` on what was not read."""

    def measure_size(self, question: Question) -> int:
        """The tokens of a chunk. Raises UsageError if the window of a model is too small."""
        return min(self.size, measure_room(self.desk, *self.make_empty_call(question)))

    async def find_chunks(self, question: Question) -> list[Chunk]:
        """All documents in the question's scope, in document order. Raises UsageError, see `measure_size`."""
        return await find_chunks(self.desk, question, await asyncio.to_thread(self.measure_size, question))

    async def measure(self, question: Question) -> Cost:
        """The most calls and tokens of prompts that reading takes. Calls no model; raises UsageError, see above."""
        chunks = await self.find_chunks(question)
        role, empty, grows = self.make_empty_call(question)

        def count_tokens(chunk: Chunk) -> int:
            shown = self.desk.show(list_passages(chunk.passages))
            return grows + self.desk.model.count_input_tokens(role, empty.model_copy(update={"evidence": shown}))

        read = await asyncio.to_thread(lambda: sum(map(count_tokens, chunks)))
        calls = self.count_calls(chunks) if chunks else 0
        return Cost(calls=calls, input_tokens=round((1 + self.recovery) * read) + (calls - len(chunks)) * _BESIDE)

    async def run(self, question: Question, memory: Any = None) -> AsyncIterator[Event | Answer]:
        """The events of reading, `answered`, then the answer. A `memory` that is given is used and changed.

        If nothing could be read, the error of the last call is raised, and nobody is asked about nothing.
        """
        desk, chunks = self.desk, await self.find_chunks(question)
        yield make_event("divided", chunks=len(chunks), tokens=sum(chunk.tokens for chunk in chunks))
        if not chunks:
            yield decline("no text to read was found")
            return
        written = self.begin(question, memory)
        async for event in self.read(written, chunks):
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
        prepared = await self.prepare(written, remarks)
        attempt = await desk.attempt(question, prepared)
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
            notes=prepared.input.notes,
            cut=prepared.dropped,
            answer=attempt.reply.answer,
            failed=not answer.resolved,
            missing=answer.missing,
        )
        yield answer


async def find_chunks(desk: Desk, question: Question, size: int) -> list[Chunk]:
    """All documents in the question's scope, in document order, in chunks of `size` tokens."""
    found = await Everything(desk.store).retrieve(question.text, _ALL, within=question.within)
    return await asyncio.to_thread(cut_chunks, desk, [piece.id for piece in found], size)


def list_passages(passages: Sequence[Passage]) -> list[Evidence]:
    """The passages as evidence, in this order: E1, E2, ..."""
    return [as_evidence(passage, 1.0) for passage in passages]


def describe_shown(shown: Shown) -> str:
    """Its title or document, and its place: "story.md, part 12 of 59"."""
    return ", ".join(filter(None, (shown.title or shown.document, shown.place)))


def describe_passages(passages: Sequence[Passage], desk: Desk) -> str:
    """Where they stand: "story.md, parts 12 to 30 of 59"; of several documents the first and the last part."""
    by_document: dict[str, list[Passage]] = {}
    for passage in passages:
        by_document.setdefault(passage.document, []).append(passage)
    first, *others = by_document.values()
    ends = [
        Evidence(id="", layer="chunk", text="", score=1.0, title=run[0].title, sources=tuple(each.id for each in run))
        for run in (first, *others[-1:])
    ]
    more = f" ({len(by_document)} documents)" if others[1:] else ""
    return " to ".join(map(describe_shown, desk.show(ends))) + more


# ---------------------------------------------------------------- Chain of Agents


@dataclass(slots=True, kw_only=True)
class HandedNote(Written):
    """The note that is handed on. `cut` counts the notes that lost a part."""

    note: str = ""
    cut: int = 0


@dataclass(frozen=True, eq=False)
class ChainOfAgents(InOrder):
    """Chunks of `size` tokens, each read with the note of the reader before, for a new note of at most `words`."""

    calls = CallCount("1 a chunk + 1")

    words: int

    def make_empty_call(self, question: Question) -> EmptyCall:
        empty = CarryIn(question=question.text, evidence=[], words=self.words)
        return CARRY_NOTE, empty, _TOKENS_PER_WORD * self.words

    def count_calls(self, chunks: Sequence[Chunk]) -> int:
        return len(chunks) + 1

    def begin(self, question: Question, memory: None) -> HandedNote:
        return HandedNote(question=question)

    async def read(self, written: HandedNote, chunks: Sequence[Chunk]) -> AsyncIterator[Event]:
        """Read the chunks one after the other. One without a usable reply leaves the note as it is.

        A note far beyond its words, or one that a model could not end, is cut, and counted.
        """
        most = _TOKENS_PER_WORD * self.words
        for written.step, chunk in enumerate(chunks, start=1):
            shown = await asyncio.to_thread(self.desk.show, list_passages(chunk.passages))
            given = CarryIn(question=written.question.text, note=written.note, evidence=shown, words=self.words)
            reply = await written.ask(self.desk, CARRY_NOTE, given)
            if reply is None:
                written.unread.append(chunk.passages)
            else:
                written.note = await asyncio.to_thread(self.desk.layout.shorten, reply.note, most)
                written.cut += bool(reply.unfinished) or written.note != reply.note
            name = await asyncio.to_thread(describe_passages, chunk.passages, self.desk)
            yield make_event("unread" if reply is None else "read", written.step, chunk=name, notes=[written.note])
            for event in written.report_skipped():
                yield event

    async def prepare(self, written: HandedNote, remarks: Sequence[str]) -> Prepared[AnswerIn]:
        """The last note alone."""
        cut = _CUT.format(written.cut) if written.cut else ""
        notes = (*remarks, *filter(None, [cut, written.note]))
        question = written.question
        context = Context((), {}, notes, written.cut)
        return await self.desk.prepare_context(question, context, may_decline=not question.force)
