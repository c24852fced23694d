"""Reading with a ledger (COSMIR, section 4.2): plan, then for each chunk extract, infer and refine.

Beyond the paper, `wave` chunks are extracted side by side on the same questions, and one inference and one refinement
follow for all of them. After the last chunk, *recovery* searches for the questions that are still open, and only the
passages found are read again.

Where the paper leaves something open: the ledger forgets its oldest facts after the inference, so every fact is seen by
one inference at least. Inferences have a budget of the same size. A call whose reply stays unusable is skipped and
reported; a chunk whose extraction fails counts as unread. Where earlier questions left facts, an inference and a
refinement over these come before the first chunk, as text that was read before brings no new fact.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from tomewise.calls import NO_CALLS, CallCount, read_calls
from tomewise.concurrency import gather_calls
from tomewise.errors import UsageError
from tomewise.events import ChunkUnread, Extracted, LedgerRow, LedgerUpdated, ReadingPlanned, Recovered
from tomewise.language.roles import (
    EXTRACT_NOTES,
    INFER_NOTES,
    PLAN_READING,
    REFINE_QUESTIONS,
    Entry,
    InferIn,
    InferOut,
    NotedFact,
    NotesIn,
    PlanReadingIn,
    PlanReadingOut,
    RefineIn,
    RefineOut,
)
from tomewise.loops.chunking import Chunking
from tomewise.loops.citing import locate
from tomewise.loops.desk import Desk
from tomewise.loops.evidence import find_labelled
from tomewise.loops.notes import BETWEEN_QUOTES, EXTRACTS, Findings, describe_chunk, list_passages
from tomewise.loops.origins import PASSAGE
from tomewise.loops.repeats import fold
from tomewise.loops.steps import Skipped
from tomewise.reading.chunks import Chunk
from tomewise.recall.ranking import take_turns
from tomewise.types import Event, Evidence, Passage, PassageId, Question, Retriever, content_id
from tomewise.working.ledger import (
    Fact,
    Inference,
    Ledger,
    add_facts,
    add_inferences,
    dump,
    infer_from,
    limit_facts,
)
from tomewise.working.ledger_memory import LedgerMemory


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycle:
    """How a ledger is kept. `memory` is the fraction of a chunk that the ledger holds, 0: no limit.

    `wave` chunks are read side by side. At most `questions` are open at a time. `recovery` is the share of the text
    that may be read again for open questions, up to `limit` passages a question; 0: none.
    """

    memory: float = 0.125
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


@dataclass(frozen=True, slots=True)
class LedgerParts:
    """What a ledger is kept with. `recall` searches for what was missed."""

    recall: Retriever
    desk: Desk
    chunking: Chunking
    cycle: Cycle


class LedgerReading:
    """Opens a ledger for each question: an empty one, or that of `memory`."""

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
        once = f"1 + {1 if waves else 1 + steps} a chunk{waves}"
        search = read_calls(self._parts.recall)
        again = f", at most {cycle.recovery:.0%} of the text read twice" if cycle.recovery else ""
        searches = f", searches of {search.formula}" if again and search != NO_CALLS else ""
        return CallCount(once + again + searches)

    def start_from(self, memory: LedgerMemory) -> LedgerReading:
        """The same reading from this memory, into which a question leaves what outlives it."""
        return LedgerReading(self._parts, memory)

    def open(self, question: Question) -> LedgerNotes:
        """The ledger to start from."""
        return LedgerNotes(question, self._parts, self._memory or LedgerMemory())


class LedgerNotes:
    """The ledger of one question while its text is read."""

    def __init__(self, question: Question, parts: LedgerParts, memory: LedgerMemory) -> None:
        self._question = question
        self._parts = parts
        self._desk = parts.desk
        self._cycle = parts.cycle
        self._memory = memory
        self._budget = max(1, int(parts.cycle.memory * parts.chunking.size)) if parts.cycle.memory else None
        self.ledger = memory.ledger
        self.unread: list[Chunk] = []
        self.skipped = Skipped()
        self._step = 0

    async def read(self, chunks: Sequence[Chunk]) -> AsyncIterator[Event]:
        """Plan, infer from what earlier questions left, read all chunks wave by wave, then recover what was missed."""
        async for event in self._plan():
            yield event
        await self._forget_oldest()
        if self.ledger.facts or self.ledger.inferences:
            await self._infer_and_refine()
            async for event in self._conclude_step():
                yield event
        async for event in self._read_waves(chunks):
            yield event
        if self.ledger.questions and self._cycle.recovery:
            found = await self._find_missed(chunks)
            tokens = sum(chunk.tokens for chunk in found)
            yield Recovered(step=self._step, open=len(self.ledger.questions), tokens=tokens)
            async for event in self._read_waves(found, again=True):
                yield event

    def collect(self) -> Findings:
        """Quotes of facts, also of those behind inferences, by passage; inferences and other facts as notes."""
        inferences = self.ledger.inferences
        grounds = chain.from_iterable(inference.grounds for inference in inferences)
        quoted: dict[PassageId, dict[str, None]] = {}
        for fact in (*reversed(self.ledger.facts), *grounds):
            if fact.in_text and fact.quote:
                quoted.setdefault(fact.passage, {})[fact.quote] = None
        notes = [inference.text for inference in reversed(inferences)]
        notes += [fact.note for fact in reversed(self.ledger.facts) if not (fact.in_text and fact.is_quote)]
        extracts = _make_extracts(quoted, self._parts.chunking.find_passages(quoted))
        return Findings(tuple(extracts), tuple(dict.fromkeys(notes)))

    def conclude(self, answer: str) -> dict[str, Any]:
        """The whole ledger with its answer, for `working.ledger.load`."""
        self.ledger = replace(self.ledger, answer=answer)
        self._memory.keep(self.ledger)
        return dump(self.ledger)

    async def _plan(self) -> AsyncIterator[Event]:
        role_input = PlanReadingIn(question=self._question.text, limit=self._cycle.questions)
        plan = await self.skipped.try_call(self._desk.model.ask(PLAN_READING, role_input), PlanReadingOut())
        self._open_questions([*plan.questions, *plan.nets])
        yield ReadingPlanned(questions=plan.questions, nets=plan.nets)
        for event in self.skipped.events(0):
            yield event

    async def _read_waves(self, chunks: Sequence[Chunk], *, again: bool = False) -> AsyncIterator[Event]:
        """Read in waves, for the first time; or `again`, and then only until no question is open."""
        for start in range(0, len(chunks), self._cycle.wave):
            if again and not self.ledger.questions:
                return
            self._step += 1
            async for event in self._read_wave(chunks[start : start + self._cycle.wave], again=again):
                yield event

    async def _read_wave(self, wave: Sequence[Chunk], *, again: bool) -> AsyncIterator[Event]:
        """Extract the chunks side by side; if they bring new facts, infer and refine; forget what has no room."""
        made = self.ledger.made
        inputs = await asyncio.to_thread(lambda: [self._make_input(chunk) for chunk in wave])
        extracted = await gather_calls(self._extract(chunk, each) for chunk, each in zip(wave, inputs, strict=True))
        for chunk, facts in zip(wave, extracted, strict=True):
            if facts is None and not again:  # a chunk that is read again was read before, or is listed already
                self.unread.append(chunk)
            yield self._report_chunk(chunk, facts)
            self.ledger = add_facts(replace(self.ledger, budget=None), facts or (), self._desk.count)
        if self.ledger.made > made:
            await self._infer_and_refine()
        async for event in self._conclude_step():
            yield event

    async def _infer_and_refine(self) -> None:
        if self._cycle.infers:
            await self._infer()
        if self._cycle.refines:
            await self._refine()

    async def _conclude_step(self) -> AsyncIterator[Event]:
        """Forget what has no room, and report."""
        await self._forget_oldest()
        for event in self.skipped.events(self._step):
            yield event
        yield self._report_ledger()

    async def _forget_oldest(self) -> None:
        self.ledger = await asyncio.to_thread(limit_facts, self.ledger, self._budget, self._desk.count)

    def _make_input(self, chunk: Chunk) -> NotesIn:
        shown = self._desk.show(list_passages(chunk))
        return NotesIn(question=self._question.text, questions=list(self.ledger.questions), evidence=shown)

    async def _extract(self, chunk: Chunk, notes_input: NotesIn) -> list[Fact] | None:
        """The facts of a chunk; None without a usable reply."""
        reply = await self.skipped.try_call(self._desk.model.ask(EXTRACT_NOTES, notes_input), None)
        if reply is None:
            return None
        return await asyncio.to_thread(lambda: [_check_quote(noted, chunk) for noted in reply.facts])

    async def _infer(self) -> None:
        role_input = InferIn(
            question=self._question.text, questions=list(self.ledger.questions), **self._list_entries()
        )
        reply = await self.skipped.try_call(self._desk.model.ask(INFER_NOTES, role_input), InferOut())
        drawn = [infer_from(self.ledger, each.inference, _read_labels(each.rests_on)) for each in reply.inferences]
        grounded = [inference for inference in drawn if inference.grounds]
        self.ledger = await asyncio.to_thread(add_inferences, self.ledger, grounded, self._desk.count)

    async def _refine(self) -> None:
        questions, limit = self.ledger.questions, self._cycle.questions
        role_input = RefineIn(
            question=self._question.text, questions=list(questions), limit=limit, **self._list_entries()
        )
        reply = await self.skipped.try_call(self._desk.model.ask(REFINE_QUESTIONS, role_input), RefineOut())
        still_open = [asked for number, asked in enumerate(questions, start=1) if number not in reply.answered]
        self._open_questions([*still_open, *reply.new])

    def _list_entries(self) -> dict[str, list[Entry]]:
        facts = [Entry(label=fact.label, text=fact.note) for fact in self.ledger.facts]
        inferences = [Entry(label=each.label, text=each.text) for each in self.ledger.inferences]
        return {"facts": facts, "inferences": inferences}

    def _open_questions(self, questions: Sequence[str]) -> None:
        distinct: dict[str, str] = {}
        for text in filter(str.strip, questions):
            distinct.setdefault(fold(text), text)
        self.ledger = replace(self.ledger, questions=tuple(distinct.values())[: self._cycle.questions])

    async def _find_missed(self, chunks: Sequence[Chunk]) -> list[Chunk]:
        """Chunks of the passages that searches for the open questions find, and that no fact cites yet."""
        searches = [
            self._parts.recall.retrieve(text, self._cycle.limit, within=self._question.within)
            for text in self.ledger.questions
        ]
        ranked = take_turns(await gather_calls(searches))
        cited = {fact.passage for fact in self.ledger.facts if fact.in_text}
        wanted = dict.fromkeys(source for piece in ranked for source in piece.sources if source not in cited)
        room = int(self._cycle.recovery * sum(chunk.tokens for chunk in chunks))
        return await self._parts.chunking.cut_chunks(list(wanted), room)

    def _report_chunk(self, chunk: Chunk, facts: list[Fact] | None) -> Event:
        name = describe_chunk(chunk, self._desk)
        if facts is None:
            return ChunkUnread(step=self._step, chunk=name)
        notes = [fact.text for fact in facts]
        return Extracted(step=self._step, chunk=name, notes=notes, not_found=sum(not fact.in_text for fact in facts))

    def _report_ledger(self) -> Event:
        return LedgerUpdated(step=self._step, pool=list(_list_rows(self.ledger)))


def _check_quote(noted: NotedFact, chunk: Chunk) -> Fact:
    """The fact with the passage that has its quote: the one that it names first, else another one of the chunk."""
    named = [piece.node for piece in find_labelled(noted.label, list_passages(chunk))]
    passages = sorted(chunk.passages, key=lambda passage: passage.id not in named)
    text = noted.fact or noted.quote
    for passage in passages:
        if found := locate(noted.quote, passage):
            text = found.quote if text == noted.quote else text
            return Fact(label="", text=text, passage=passage.id, quote=found.quote, in_text=True)
    return Fact(label="", text=text, passage=named[0] if named else "", quote=noted.quote)


def _read_labels(labels: Iterable[str]) -> list[str]:
    return [label.strip("[]() .").upper() for label in labels]


def _make_extracts(quoted: dict[PassageId, dict[str, None]], passages: dict[PassageId, Passage]) -> Iterator[Evidence]:
    """The quotes of each passage as one piece of evidence, in the order in which they stand there."""
    for rank, (passage_id, quotes) in enumerate(quoted.items(), start=1):
        if passage := passages.get(passage_id):
            text = BETWEEN_QUOTES.join(sorted(quotes, key=passage.text.find))
            yield Evidence(
                node=content_id("extract", passage_id, text),
                layer=EXTRACTS,
                kind=PASSAGE,
                text=text,
                score=1 / rank,
                sources=(passage_id,),
                title=passage.title,
                place=passage.place,
            )


def _list_rows(ledger: Ledger) -> Iterator[LedgerRow]:
    for question in ledger.questions:
        yield LedgerRow(kind="question", text=question)
    entries: Iterable[Fact | Inference] = chain(ledger.facts, ledger.inferences)
    for entry in entries:
        yield LedgerRow(kind="fact" if isinstance(entry, Fact) else "inference", label=entry.label, text=entry.text)
