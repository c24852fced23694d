"""Read the whole text in order, chunk by chunk, then answer from what was written down (COSMIR; Chain of Agents).

What is written down is a `Reading`: a ledger, or a note in free text. The answering role sees that alone, never the
text. A chunk whose call failed is named to it and in the answer.
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
from tomewise.loops.notes import Findings, Notebook, Reading, describe_chunk
from tomewise.loops.repeats import fold
from tomewise.loops.steps import Skipped
from tomewise.reading.chunks import Chunk
from tomewise.types import Answer, Event, Evidence, Question

_NO_TEXT = "no text to read was found"
_UNREAD = "This part of the text could not be read: {}."


class Relay:
    """Reads all chunks of a question's scope, then answers from the notebook.

    With `both_ways` the text is also read backwards, at the same time, and the answering role sees both notebooks. With
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
        runs = [skipped.usable(_collect(self._run_once(question, chunks)), []) for _ in range(self._runs)]
        collected = await gather_calls(runs)
        if not any(collected) and skipped.last:
            raise skipped.last
        for output in (*skipped.events(0), *chain.from_iterable(collected)):
            yield output

    async def _run_once(self, question: Question, chunks: Sequence[Chunk]) -> AsyncIterator[Event | Answer]:
        orders = [list(chunks), list(reversed(chunks))] if self._both_ways else [list(chunks)]
        notebooks = [self._reading.open(question) for _ in orders]
        async for event in _merge([each.read(order) for each, order in zip(notebooks, orders, strict=True)]):
            yield event
        unread = {id(chunk): chunk for notebook in notebooks for chunk in notebook.unread}
        for notebook in notebooks:
            if len(notebook.unread) >= len(chunks) and notebook.skipped.last:
                raise notebook.skipped.last  # nothing was read, and nobody is asked about nothing
        places = await asyncio.to_thread(lambda: [describe_chunk(chunk, self._desk) for chunk in unread.values()])
        async for output in self._answer(question, notebooks, places):
            yield output

    async def _answer(
        self, question: Question, notebooks: Sequence[Notebook], unread: Sequence[str]
    ) -> AsyncIterator[Event | Answer]:
        """Ask the answering role, which sees the notebooks only."""
        findings = await asyncio.to_thread(lambda: [notebook.collect() for notebook in notebooks])
        prepared, cut = await asyncio.to_thread(self._fit, question, findings, unread)
        evidence, notes = prepared.evidence, prepared.input.notes
        attempt = await self._desk.attempt(question, prepared, final=self._runs == 1)
        reply, answer = attempt.reply, attempt.answer
        not_read = f"not read: {'; '.join(unread)}" if unread else ""
        answer = replace(answer, missing="; ".join(filter(None, (answer.missing, not_read))))
        shown = list(dict.fromkeys(source for piece in evidence for source in piece.sources))
        *_, ledger = [notebook.conclude(answer.text) for notebook in notebooks]
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
        about_unread = [_UNREAD.format(place) for place in unread]
        notes = [note for found in findings for note in found.notes]
        extracts = list({piece.node: piece for found in findings for piece in found.extracts}.values())
        shown = {piece.node: shown for piece, shown in zip(extracts, self._desk.show(extracts), strict=True)}

        def make_input(kept: Sequence[Evidence | str]) -> AnswerIn:
            pieces = self._order(kept)
            texts = [shown[piece.node].model_copy(update={"label": f"E{n}"}) for n, piece in enumerate(pieces, 1)]
            kept_notes = [*about_unread, *(note for note in kept if isinstance(note, str))]
            return make_answer_input(question, texts, notes=kept_notes, may_decline=not question.force)

        material: list[Evidence | str] = [*notes, *extracts]
        kept = fit_to_window(material, self._desk.model, ANSWER, make_input)
        return Prepared(make_input(kept), self._order(kept), extracts), len(material) - len(kept)

    def _order(self, kept: Sequence[Evidence | str]) -> list[Evidence]:
        return self._desk.put_in_order([piece for piece in kept if not isinstance(piece, str)])


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
