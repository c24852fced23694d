"""Read the whole text in order, chunk by chunk, then answer from what was written down (COSMIR; Chain of Agents).

A `Reading` says what is written down: a ledger, or a note in free text. The answering role sees that alone. In
`read_through`, which is ours, passages fill what it leaves, by the rule of the last prompt (`loops.last_prompt`). A
chunk whose call failed is named to the answering role and in the answer.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TypeAlias

from tomewise.calls import CallCount, sum_calls
from tomewise.concurrency import gather_calls
from tomewise.errors import UsageError
from tomewise.events import make_event
from tomewise.language.roles import ANSWER, AnswerIn
from tomewise.loops.chunking import Chunk, Chunking
from tomewise.loops.desk import Desk, Prepared, decline, make_answer_input
from tomewise.loops.evidence import drop_near_repeats, fit_to_window, fold, measure_pieces, measure_texts
from tomewise.loops.last_prompt import DEPTH, Note, join
from tomewise.loops.ledger_notes import LedgerNotes, LedgerReading
from tomewise.loops.notes import Findings, NoteReading, SingleNote, describe_chunk
from tomewise.loops.steps import Skipped, rank_found
from tomewise.store.records import PASSAGES
from tomewise.types import Answer, Event, Evidence, Question
from tomewise.working.ledger import LedgerMemory

Notes: TypeAlias = SingleNote | LedgerNotes
"""What one reading writes down: its working memory. `unread` are the chunks whose call failed."""
Reading: TypeAlias = NoteReading | LedgerReading
"""A way of reading: opens empty notes for a question."""
_NO_TEXT = "no text to read was found"
_UNREAD = "This part of the text could not be read: {}."


@dataclass(frozen=True, eq=False)
class Relay:
    """Reads all chunks of a question's scope, then answers from the notes, which passages fill up to `context` tokens.

    With several `runs` everything is done as often, side by side, and the answer that most runs give is taken, of
    equals the first (self-consistency); a run that fails has no vote. That helps only with a model that replies at
    random: set its temperature.
    """

    desk: Desk
    chunking: Chunking
    reading: Reading
    context: int = 0
    runs: int = 1

    def __post_init__(self) -> None:
        if self.runs < 1:
            raise UsageError(f"{self.runs} runs give no answer: give 1 or more")

    @property
    def calls(self) -> CallCount:
        """Those of the reading, and one to answer, in each run."""
        return sum_calls([self.reading.calls, CallCount("1", 1)]).repeat(self.runs)

    async def estimate_calls(self, question: Question) -> int:
        """The most calls that this question takes. Calls no model. Raises UsageError if its window is too small."""
        chunks = await self._find_chunks(question)
        return self.runs * (self.reading.count_calls(chunks) + 1) if chunks else 0

    async def _find_chunks(self, question: Question) -> list[Chunk]:
        room = await asyncio.to_thread(self.reading.measure_room, question)
        return await self.chunking.find_chunks(question, room)

    async def run(self, question: Question) -> AsyncIterator[Event | Answer]:
        """The events of the readings, `answered` for each run, then the answer."""
        chunks = await self._find_chunks(question)
        yield make_event("divided", chunks=len(chunks), tokens=sum(chunk.tokens for chunk in chunks))
        if not chunks:
            yield decline(_NO_TEXT)
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
        if self.runs == 1:
            async for output in self._run_once(question, chunks):
                yield output
            return
        skipped = Skipped()
        runs = [skipped.try_call(_collect(self._run_once(question, chunks)), []) for _ in range(self.runs)]
        collected = await gather_calls(runs)
        if not any(collected) and skipped.last:
            raise skipped.last
        for output in (*skipped.events(0), *chain.from_iterable(collected)):
            yield output

    async def _run_once(self, question: Question, chunks: Sequence[Chunk]) -> AsyncIterator[Event | Answer]:
        notes = self.reading.open(question)
        async for event in notes.read(chunks):
            yield event
        if len(notes.unread) >= len(chunks) and notes.skipped.last:
            raise notes.skipped.last  # nothing was read, and nobody is asked about nothing
        async for output in self._answer(question, notes, chunks):
            yield output

    async def _answer(
        self, question: Question, written: Notes, chunks: Sequence[Chunk]
    ) -> AsyncIterator[Event | Answer]:
        """Ask the answering role, which sees what was written down, and passages that fill what this leaves."""
        unread = await asyncio.to_thread(lambda: [describe_chunk(chunk, self.desk) for chunk in written.unread])
        read = {each.id for chunk in chunks if chunk not in written.unread for each in chunk.passages}
        findings = await asyncio.to_thread(written.collect)
        ranked = await self._search(question, findings)
        prepared, notes = await asyncio.to_thread(self._fit, question, findings, ranked, unread)
        evidence = prepared.evidence
        attempt = await self.desk.attempt(question, prepared, final=self.runs == 1)
        reply, answer = attempt.reply, attempt.answer
        not_read = f"not read: {'; '.join(unread)}" if unread else ""
        missing = "; ".join(filter(None, (answer.missing, not_read)))
        read |= {piece.id for piece in evidence if piece.layer == PASSAGES}
        answer = replace(answer, missing=missing, coverage=replace(answer.coverage, read=len(read)))
        shown = list(dict.fromkeys(source for piece in evidence for source in piece.sources))
        yield make_event(
            "answered",
            0,
            evidence=evidence,
            shown=shown,
            notes=notes,
            cut=prepared.dropped,
            answer=reply.answer,
            failed=not answer.resolved,
            missing=answer.missing,
            ledger=written.conclude(answer.text),
        )
        yield answer

    async def _search(self, question: Question, findings: Findings) -> list[Evidence]:
        """Passages for the question and for those that the reading asked, by the rule of the last prompt."""
        recall = self.chunking.recall
        if recall is None or not self.context:
            return []
        texts = dict.fromkeys((question.text, *findings.questions))
        found, *others = await gather_calls(recall.retrieve(text, DEPTH, within=question.within) for text in texts)
        return await rank_found(self.desk, question, found, others)

    def _fit(
        self, question: Question, findings: Findings, ranked: Sequence[Evidence], unread: Sequence[str]
    ) -> tuple[Prepared[AnswerIn], list[str]]:
        """What the answering role sees, and the notes in it; what was written down may have no room in its window.

        Notes come first, then pieces with facts; passages fill what these leave.
        """
        about_unread = [_UNREAD.format(name) for name in unread]
        notes, pieces = findings.notes, findings.pieces

        def make_input(fitting: Sequence[Evidence | Note]) -> AnswerIn:
            labelled = self._label(fitting)
            fitting_notes = [_write_note(note, labelled) for note in notes if note in fitting]
            return make_answer_input(
                question,
                self.desk.show(labelled),
                notes=[*about_unread, *fitting_notes],
                may_decline=not question.force,
            )

        written: list[Evidence | Note] = [*reversed(notes), *pieces]
        material = [*written, *self._fill(question, findings, ranked)]
        fitting = fit_to_window(material, self.desk.model, ANSWER, make_input)
        kept = [*about_unread, *(note.text for note in notes if note in fitting)]
        evidence = [piece for piece in fitting if isinstance(piece, Evidence)]
        dropped = max(0, len(written) - len(fitting))
        return Prepared(make_input(fitting), evidence, [*pieces, *ranked], self._label(fitting), dropped), kept

    def _label(self, fitting: Sequence[Evidence | Note]) -> list[Evidence]:
        """The evidence as labels name it: in the order of the text, passages that follow one another joined."""
        ordered = self.desk.put_in_order([each for each in fitting if isinstance(each, Evidence)])
        return join(ordered, self.desk.layout.find_passages(ordered))

    def _fill(self, question: Question, findings: Findings, ranked: Sequence[Evidence]) -> list[Evidence]:
        """The best passages that have room beside what was written down; none whose words stand in that."""
        cited = {source for piece in findings.pieces for source in piece.sources}
        new = [piece for piece in ranked if cited.isdisjoint(piece.sources)]
        count = self.desk.count
        notes = measure_texts([note.text for note in findings.notes], count)
        used = sum((*measure_pieces(findings.pieces, count), *notes))
        room = min(self.context, self.desk.measure_answer_room(question))
        return self.desk.layout.pack(drop_near_repeats(new), max(0, room - used))


def _write_note(note: Note, pieces: Sequence[Evidence]) -> str:
    """The note with the labels of the pieces that it follows from."""
    labels = [f"E{n}" for n, piece in enumerate(pieces, 1) if not set(piece.sources).isdisjoint(note.grounds)]
    return f"{note.text} (follows from {', '.join(labels)})" if labels else note.text


@dataclass(frozen=True, eq=False)
class LedgerRelay(Relay):
    """A relay whose ledger outlives its question: each starts from the facts and inferences of earlier ones.

    The ledger can be drawn. Its questions begin anew. Calls are counted for a question without earlier facts.
    """

    reading: LedgerReading

    def open_memory(self, data: object = None) -> LedgerMemory:
        """A new memory, or the one of which `dump` made `data`."""
        return LedgerMemory() if data is None else LedgerMemory.load(data)

    async def run(self, question: Question, memory: LedgerMemory | None = None) -> AsyncIterator[Event | Answer]:
        """The events of the relay, then the answer. A `memory` that is given is used and changed."""
        reading = replace(self.reading, memory=memory)
        async for output in Relay(self.desk, self.chunking, reading, self.context).run(question):
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
