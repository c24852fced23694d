"""Reading with a ledger (COSMIR, section 4.2): plan, then for each chunk extract, infer and refine; answer from it.

The ledger forgets its oldest facts as soon as a chunk was extracted, so before the inference; every chunk has its
inference and its refinement; and the answering role is shown the ledger as it stands: what is open, the facts, the
inferences.

A reply that is full is continued behind its last fact. A call whose reply stays unusable is skipped and reported; a
chunk whose extraction fails counts as unread, from where it failed. Where earlier questions of a session left facts, an
inference and a refinement over these come before the first chunk.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tomewise.calls import CallCount
from tomewise.events import Row, make_event
from tomewise.language.labels import find_labelled
from tomewise.language.roles import (
    ANSWER,
    EXTRACT_NOTES,
    INFER_NOTES,
    PLAN_READING,
    REFINE_QUESTIONS,
    AnswerIn,
    Entry,
    MarkedFact,
    MarkOut,
    NotedFact,
    NotesIn,
    NotesOut,
    PlanReadingIn,
    PlanReadingOut,
    Shown,
)
from tomewise.loops.chunking import Chunk
from tomewise.loops.citing import locate
from tomewise.loops.desk import Desk, Prepared
from tomewise.loops.evidence import fit_to_window, load_passages
from tomewise.loops.last_prompt import Context
from tomewise.loops.relay import EmptyCall, InOrder, Written, describe_passages, describe_shown, list_passages
from tomewise.recall.ranking import as_evidence
from tomewise.text.quotable import find_sentences
from tomewise.types import Event, Evidence, In, Out, Passage, PassageId, Question, Role, content_id
from tomewise.working.ledger import (
    Ledger,
    LedgerEntry,
    LedgerMemory,
    add_facts,
    forget_oldest,
    infer,
    settle,
)

FACTS = 40  # that one reply may have
OF_QUESTIONS = 420  # tokens of the questions that are likely to be open
_REPLIES = 12  # for the facts of one chunk
_WORDS = 12  # of a known fact, by which a prompt names it
_STILL_OPEN = "Still open after the reading:"


@dataclass(slots=True, kw_only=True)
class OpenLedger(Written):
    """The ledger of one question while its text is read. `forgotten` counts the facts that it had no room for.

    `settled` says whether nothing more needs to be read.
    """

    desk: Desk
    memory: LedgerMemory
    ledger: Ledger
    forgotten: int = 0
    settled: bool = False

    def list_asked(self) -> dict[str, Any]:
        """The question and what is open, for every role."""
        ledger = self.ledger
        return {"question": self.question.text, "questions": list(ledger.questions), "nets": list(ledger.nets)}

    async def plan(self, limit: int | None = None, nets: int | None = None) -> tuple[PlanReadingOut, Event]:
        """Fill Q."""
        given = PlanReadingIn(question=self.question.text, limit=limit, nets=nets)
        plan = await self.ask(self.desk, PLAN_READING, given) or PlanReadingOut()
        self.ledger = settle(replace(self.ledger, nets=tuple(filter(None, plan.nets))), (), plan.questions)
        return plan, make_event("reading planned", questions=plan.questions, nets=plan.nets)

    async def extract(
        self, role: Role[Any, Any], chunk: Chunk, **more: Any
    ) -> tuple[list[LedgerEntry], tuple[Passage, ...]]:
        """The facts of a chunk, and the passages of it that were not read.

        While a reply is full, the passages from that of its last fact on are asked for again.
        """
        facts: list[LedgerEntry] = []
        passages, after = chunk.passages, ""
        for _ in range(_REPLIES):
            shown = await asyncio.to_thread(self.desk.show, list_passages(passages))
            given = role.input(**self.list_asked(), evidence=shown, limit=FACTS, after=after, **more)
            reply: MarkOut | NotesOut | None = await self.ask(self.desk, role, given)
            if reply is None:
                break
            found = await asyncio.to_thread(_check, reply.facts, passages, chunk.passages, shown)
            facts += found
            if len(found) < FACTS and not reply.unfinished:
                return facts, ()
            starts = {passage.id: start for start, passage in enumerate(passages)}
            last = next((fact for fact in reversed(found) if fact.end and fact.passages[0] in starts), None)
            if last is None:
                break
            passages = passages[starts[last.passages[0]] :]
            words = passages[0].text[last.start : last.end]
            if words == after:
                break
            after = words
        return facts, passages

    def add(self, chunk: Chunk, facts: Sequence[LedgerEntry], unread: tuple[Passage, ...]) -> Iterator[Event]:
        """Add what was extracted of a chunk, and report it."""
        self.ledger = add_facts(self.ledger, facts)
        if facts or not unread:
            not_found = sum(not fact.end for fact in facts)
            texts = [fact.text for fact in facts]
            name = describe_passages(chunk.passages, self.desk)
            yield make_event("extracted", self.step, chunk=name, notes=texts, not_found=not_found)
        if unread:
            self.unread.append(unread)
            yield make_event("unread", self.step, chunk=describe_passages(unread, self.desk))

    async def think(self, role: Role[In, Out], made: int, *, in_full: bool = True, **more: Any) -> Out | None:
        """The reply of a role that is shown the ledger: all entries; where these exceed the window, the newest.

        Facts after the first `made` entries are new; the others are shown `in_full`, or by their first words.
        """
        given = await asyncio.to_thread(self._fit, role, made, in_full, more)
        return await self.ask(self.desk, role, given)

    def _fit(self, role: Role[In, Any], made: int, in_full: bool, more: dict[str, Any]) -> In:
        def show(entry: LedgerEntry) -> Entry:
            is_new = entry.number > made
            text = entry.note if in_full or is_new or not entry.is_fact else begin(entry)
            return Entry(label=entry.label, text=text, place=entry.place, is_new=is_new)

        def make_input(fitting: Sequence[LedgerEntry]) -> In:
            facts = [show(each) for each in reversed(fitting) if each.is_fact]
            inferences = [show(each) for each in reversed(fitting) if not each.is_fact]
            return role.input(**self.list_asked(), facts=facts, inferences=inferences, **more)

        material = [entry for entry in reversed(self.ledger.entries) if not entry.replaced_by]
        fitting = fit_to_window(material, self.desk.model, role, make_input)
        if len(fitting) < len(material):
            self.skipped.drop(f"{len(material) - len(fitting)} entries of the ledger had no room in a call")
        return make_input(fitting)

    def conclude_step(self) -> Iterator[Event]:
        """What was skipped, and what the ledger holds."""
        yield from self.report_skipped()
        yield make_event("ledger updated", self.step, pool=list(_list_rows(self.ledger)))


def begin(fact: LedgerEntry) -> str:
    """The first words of a fact."""
    words = fact.note.split()
    return " ".join(words[:_WORDS]) + (" …" if len(words) > _WORDS else "")


def _list_rows(ledger: Ledger) -> Iterator[Row]:
    for question in (*ledger.questions, *ledger.nets):
        yield {"kind": "question", "text": question}
    for entry in ledger.entries:
        kind = "fact" if entry.is_fact else "inference"
        yield {"kind": kind, "label": entry.label, "text": entry.text, "replaced_by": entry.replaced_by}


def _check(
    noted: Sequence[MarkedFact], passages: Sequence[Passage], chunk: Sequence[Passage], shown: Sequence[Shown]
) -> list[LedgerEntry]:
    """The facts with the sentences that their quotations are from: in the passage that each names, else in another."""
    facts = []
    places = {passage.id: describe_shown(piece) for passage, piece in zip(passages, shown, strict=True)}
    for each in noted:
        named = find_labelled(each.label, passages)
        sentence = each.fact if isinstance(each, NotedFact) else ""
        fact = LedgerEntry(text=sentence or each.quote, passages=(named[0].id if named else "",))
        for passage in (*named, *chunk):
            if found := locate(each.quote, passage):
                start, end = found.start - passage.start, found.end - passage.start
                touched = [span for span in find_sentences(passage.text) if span[0] < end and start < span[1]]
                start, end = min([start, *(span[0] for span in touched)]), max([end, *(span[1] for span in touched)])
                text = sentence or passage.text[start:end]
                fact = LedgerEntry(text=text, passages=(passage.id,), start=start, end=end)
                break
        facts.append(replace(fact, place=places.get(fact.passages[0], "")))
    return facts


@dataclass(frozen=True, eq=False)
class WithLedger(InOrder):
    """A loop that reads in order with a ledger, which goes on in a session while its questions begin anew."""

    def open_memory(self, data: object = None) -> LedgerMemory:
        """A new memory, or the one of which `dump` made `data`."""
        return LedgerMemory() if data is None else LedgerMemory.load(data)

    def begin(self, question: Question, memory: LedgerMemory | None) -> OpenLedger:
        memory = memory or self.open_memory()
        return OpenLedger(question=question, desk=self.desk, memory=memory, ledger=memory.ledger)


@dataclass(frozen=True, eq=False)
class Cosmir(WithLedger):
    """The cycle as published, with chunks of `size` tokens. Facts have at most the `share` of that.

    Calls are counted for a question without a session.
    """

    calls = CallCount("1 + 3 a chunk + 1")

    share: float

    def make_empty_call(self, question: Question) -> EmptyCall:
        return EXTRACT_NOTES, NotesIn(question=question.text, evidence=[]), OF_QUESTIONS

    def count_calls(self, chunks: Sequence[Chunk]) -> int:
        return 2 + 3 * len(chunks)

    async def read(self, written: OpenLedger, chunks: Sequence[Chunk]) -> AsyncIterator[Event]:
        """Plan, infer from what earlier questions left, then read chunk by chunk."""
        size = await asyncio.to_thread(self.measure_size, written.question)
        budget = max(1, int(self.share * size))
        _, planned = await written.plan()
        yield planned
        for chunk in (None, *chunks):
            made = written.ledger.made
            if chunk:
                written.step += 1
                facts, unread = await written.extract(EXTRACT_NOTES, chunk)
                for event in await asyncio.to_thread(list, written.add(chunk, facts, unread)):
                    yield event
            if chunk or written.ledger.entries:
                await self._think(written, made, budget)
            for event in written.conclude_step():
                yield event

    async def _think(self, written: OpenLedger, made: int, budget: int) -> None:
        """Forget, infer, and refine. Facts after the first `made` entries are new."""
        before = len(written.ledger.facts)
        written.ledger = await asyncio.to_thread(forget_oldest, written.ledger, budget, self.desk.count)
        written.forgotten += before - len(written.ledger.facts)
        if inferred := await written.think(INFER_NOTES, made):
            for each in inferred.inferences:
                written.ledger = infer(written.ledger, each.inference, each.rests_on)
        if refined := await written.think(REFINE_QUESTIONS, written.ledger.made):
            written.ledger = settle(written.ledger, refined.answered, refined.new)

    async def prepare(self, written: OpenLedger, remarks: Sequence[str]) -> Prepared[AnswerIn]:
        """The ledger as it stands; where it exceeds the window, first all but facts, then the newest facts."""
        written.memory.keep(written.ledger)
        return await asyncio.to_thread(self._fit, written, remarks)

    def _fit(self, written: OpenLedger, remarks: Sequence[str]) -> Prepared[AnswerIn]:
        question, ledger = written.question, written.ledger
        asked = " ".join([*ledger.questions, *ledger.nets])
        notes = [f"{_STILL_OPEN} {asked}"] if asked else []
        notes += [fact.note for fact in ledger.facts if not fact.passages[0]]
        notes = list(dict.fromkeys([*notes, *(each.note for each in ledger.inferences)]))
        pieces = list(self._show_facts(ledger))
        material: list[str | Evidence] = [*reversed(notes), *pieces]

        def prepare(fitting: Sequence[str | Evidence]) -> Prepared[AnswerIn]:
            lost = len(material) - len(fitting)
            evidence = tuple(self.desk.put_in_order([each for each in fitting if isinstance(each, Evidence)]))
            texts = (*remarks, *tell_lost(lost), *(note for note in notes if note in fitting))
            context = Context(evidence, {}, texts, lost + written.forgotten)
            return replace(self.desk.label(question, context, not question.force), found=pieces)

        return prepare(fit_to_window(material, self.desk.model, ANSWER, lambda part: prepare(part).input))

    def _show_facts(self, ledger: Ledger) -> Iterator[Evidence]:
        """The facts of each passage as one piece of evidence, the latest passage first."""
        by_passage: dict[PassageId, list[str]] = {}
        for fact in reversed(ledger.facts):
            by_passage.setdefault(fact.passages[0], []).insert(0, fact.note)
        for rank, (id, passage) in enumerate(load_passages(self.desk.store, by_passage).items(), start=1):
            text = "\n".join(by_passage[id])
            whole = as_evidence(passage, 1 / rank)
            yield replace(whole, id=content_id("extract", id, text), layer="ledger", kind="fact", text=text)


def tell_lost(lost: int) -> list[str]:
    """The remark for the answering role where so many entries of a ledger have no room."""
    return [f"{lost} of what was noted had no room here."] if lost else []
