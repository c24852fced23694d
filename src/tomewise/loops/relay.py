"""Read the whole text in order, chunk by chunk, then answer from what was written down (COSMIR; Chain of Agents).

A `Reading` says what is written down: a ledger, or a note in free text. The answering role sees the notes alone, never
the text. A chunk whose call failed is named to it and in the answer.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from itertools import chain

from tomewise.calls import CallCount, sum_calls
from tomewise.concurrency import gather_calls
from tomewise.errors import UsageError
from tomewise.events import AnsweredFromNotes, Divided, as_pieces
from tomewise.language.roles import ANSWER, AnswerIn
from tomewise.loops.chunking import Chunking
from tomewise.loops.desk import Desk, Prepared, make_answer_input
from tomewise.loops.evidence import fit_to_window
from tomewise.loops.ledger_notes import LedgerReading
from tomewise.loops.notes import Findings, Notes, Reading, describe_chunk
from tomewise.loops.repeats import fold
from tomewise.loops.steps import Skipped
from tomewise.loops.working_pictures import draw_ledger
from tomewise.pictures import Picture
from tomewise.reading.chunks import Chunk
from tomewise.types import Answer, Event, Evidence, Question
from tomewise.working.ledger_memory import LedgerMemory

_NO_TEXT = "no text to read was found"
_UNREAD = "This part of the text could not be read: {}."


class Relay:
    """Reads all chunks of a question's scope, then answers from the notes alone.

    With `both_ways` the text is also read backwards, at the same time, and the answering role sees what was written
    down on either way. With
    several `runs` everything is done as often, side by side, and the answer that most runs give is taken, of equals the
    first (self-consistency); a run that fails has no vote. That helps only with a model that replies at random: set its
    temperature.
    """

    def __init__(
        self,
        desk: Desk,
        chunking: Chunking,
        reading: Reading,
        *,
        both_ways: bool = False,
        runs: int = 1,
    ) -> None:
        if runs < 1:
            raise UsageError(f"{runs} runs give no answer: give 1 or more")
        self._desk = desk
        self._chunking = chunking
        self._reading = reading
        self._both_ways = both_ways
        self._runs = runs

    @property
    def calls(self) -> CallCount:
        """Those of each reading, and one to answer, in each run."""
        readings = self._reading.calls.repeat(2 if self._both_ways else 1)
        return sum_calls([readings, CallCount("1", 1)]).repeat(self._runs)

    async def run(self, question: Question) -> AsyncIterator[Event | Answer]:
        """The events of the readings, `answered` for each run, then the answer."""
        chunks = await self._chunking.find_chunks(question)
        yield Divided(chunks=len(chunks), tokens=sum(chunk.tokens for chunk in chunks))
        if not chunks:
            yield Answer(text="", resolved=False, supported="none", missing=_NO_TEXT)
            return
        answers: list[Answer] = []
        async for output in self._run_all(question, chunks):
            if isinstance(output, Event):
                yield output
            else:
                answers.append(output)
        yield _vote(answers)

    async def _run_all(self, question: Question, chunks: Sequence[Chunk]) -> AsyncIterator[Event | Answer]:
        """The events and the answer of each run. Of several runs, those that fail are reported, unless all do."""
        if self._runs == 1:
            async for output in self._run_once(question, chunks):
                yield output
            return
        skipped = Skipped()
        runs = [skipped.try_call(_collect(self._run_once(question, chunks)), []) for _ in range(self._runs)]
        collected = await gather_calls(runs)
        if not any(collected) and skipped.last:
            raise skipped.last
        for output in (*skipped.events(0), *chain.from_iterable(collected)):
            yield output

    async def _run_once(self, question: Question, chunks: Sequence[Chunk]) -> AsyncIterator[Event | Answer]:
        orders = [list(chunks), list(reversed(chunks))] if self._both_ways else [list(chunks)]
        all_notes = [self._reading.open(question) for _ in orders]
        async for event in _merge([notes.read(order) for notes, order in zip(all_notes, orders, strict=True)]):
            yield event
        unread = {id(chunk): chunk for notes in all_notes for chunk in notes.unread}
        for notes in all_notes:
            if len(notes.unread) >= len(chunks) and notes.skipped.last:
                raise notes.skipped.last  # nothing was read, and nobody is asked about nothing
        names = await asyncio.to_thread(lambda: [describe_chunk(chunk, self._desk) for chunk in unread.values()])
        async for output in self._answer(question, all_notes, names):
            yield output

    async def _answer(
        self, question: Question, all_notes: Sequence[Notes], unread: Sequence[str]
    ) -> AsyncIterator[Event | Answer]:
        """Ask the answering role, which sees the notes only."""
        findings = await asyncio.to_thread(lambda: [notes.collect() for notes in all_notes])
        prepared, cut = await asyncio.to_thread(self._fit, question, findings, unread)
        evidence, notes = prepared.evidence, prepared.input.notes
        attempt = await self._desk.attempt(question, prepared, final=self._runs == 1)
        reply, answer = attempt.reply, attempt.answer
        not_read = f"not read: {'; '.join(unread)}" if unread else ""
        answer = replace(answer, missing="; ".join(filter(None, (answer.missing, not_read))))
        shown = list(dict.fromkeys(source for piece in evidence for source in piece.sources))
        *_, ledger = [notes.conclude(answer.text) for notes in all_notes]
        yield AnsweredFromNotes(
            evidence=as_pieces(evidence),
            shown=shown,
            notes=notes,
            cut=cut,
            answer=reply.answer,
            ledger=ledger,
            declined=not answer.resolved,
            missing=answer.missing,
        )
        yield answer

    def _fit(
        self, question: Question, findings: Sequence[Findings], unread: Sequence[str]
    ) -> tuple[Prepared[AnswerIn], int]:
        """What the answering role sees, and how many extracts and notes had no room in its window: notes come first."""
        about_unread = [_UNREAD.format(name) for name in unread]
        notes = [note for each in findings for note in each.notes]
        extracts = list({piece.node: piece for each in findings for piece in each.extracts}.values())
        shown = {piece.node: shown for piece, shown in zip(extracts, self._desk.show(extracts), strict=True)}

        def make_input(fitting: Sequence[Evidence | str]) -> AnswerIn:
            pieces = self._order_extracts(fitting)
            texts = [shown[piece.node].model_copy(update={"label": f"E{n}"}) for n, piece in enumerate(pieces, 1)]
            fitting_notes = [*about_unread, *(note for note in fitting if isinstance(note, str))]
            return make_answer_input(question, texts, notes=fitting_notes, may_decline=not question.force)

        material: list[Evidence | str] = [*notes, *extracts]
        fitting = fit_to_window(material, self._desk.model, ANSWER, make_input)
        return Prepared(make_input(fitting), self._order_extracts(fitting), extracts), len(material) - len(fitting)

    def _order_extracts(self, material: Sequence[Evidence | str]) -> list[Evidence]:
        return self._desk.put_in_order([piece for piece in material if not isinstance(piece, str)])


class LedgerRelay:
    """A relay whose ledger outlives its question: each starts from the facts and inferences of earlier ones.

    The ledger can be drawn. Its questions begin anew.
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


async def _merge(streams: Sequence[AsyncIterator[Event | Answer]]) -> AsyncIterator[Event | Answer]:
    """What several streams yield. A single one is passed on; several run side by side, and come one after the other."""
    if len(streams) == 1:
        async for output in streams[0]:
            yield output
        return
    for outputs in await gather_calls(_collect(stream) for stream in streams):
        for output in outputs:
            yield output


async def _collect(stream: AsyncIterator[Event | Answer]) -> list[Event | Answer]:
    return [output async for output in stream]


def _vote(answers: Sequence[Answer]) -> Answer:
    """The answer that most runs give, by letter or by wording; of equals the first. Declined only if all are."""
    resolved = [answer for answer in answers if answer.resolved] or list(answers)
    votes = Counter(_read_vote(answer) for answer in resolved)
    return max(resolved, key=lambda answer: votes[_read_vote(answer)])


def _read_vote(answer: Answer) -> str:
    return answer.choice or fold(answer.text)
