"""What a relay writes down while it reads for one question, and what the answering role sees of that.

Here is a note in free text that each reader hands on to the next (Chain of Agents, Zhang et al. 2024). `ledger_notes`
has facts with their quotations, which a ledger holds.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tomewise.calls import CallCount
from tomewise.events import make_event
from tomewise.language.labels import find_labelled
from tomewise.language.roles import CARRY_NOTE, CarryIn, NotedFact, Shown
from tomewise.loops.chunking import Chunk, FreeTokens, check_windows
from tomewise.loops.citing import locate
from tomewise.loops.desk import Desk
from tomewise.loops.evidence import EXTRACTS, PASSAGE
from tomewise.loops.last_prompt import Note
from tomewise.loops.steps import Skipped
from tomewise.recall.ranking import as_evidence
from tomewise.types import DocumentId, Event, Evidence, Passage, PassageId, Question, content_id
from tomewise.working.ledger import LedgerFact, read_number

_TOKENS_PER_WORD = 1.5
BETWEEN_QUOTES = " … "
LEDGER, FACT = "ledger", "fact"  # layer and kind of facts that are shown as a ledger has them
NOTED = " (a reader's note, not to be quoted: "  # after a quotation; what follows is not in the passage


@dataclass(frozen=True, slots=True)
class Findings:
    """What the answering role sees: `pieces` that hold facts, the most important first; and notes, the latest last.

    `questions` are those that the reading asked, by which passages are found to show beside.
    """

    pieces: tuple[Evidence, ...] = ()
    notes: tuple[Note, ...] = ()
    questions: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class NoteReading:
    """Opens an empty note for each question. `words` is how long a note may be."""

    calls = CallCount("1 a chunk")

    desk: Desk
    words: int

    def measure_room(self, question: Question) -> int:
        """What the prompt and a note of the greatest length leave."""
        empty = CarryIn(question=question.text, evidence=[], words=self.words)
        room = FreeTokens.measure(self.desk, CARRY_NOTE, empty, beside=round(_TOKENS_PER_WORD * self.words))
        check_windows(self.desk, [room])
        return room.tokens

    def count_calls(self, chunks: Sequence[Chunk]) -> int:
        """One a chunk."""
        return len(chunks)

    def open(self, question: Question) -> SingleNote:
        """An empty note."""
        return SingleNote(question, self.desk, self.words)


@dataclass(eq=False)
class SingleNote:
    """The note of one question while its text is read. A chunk without a usable reply leaves the note as it is.

    `unread` are the chunks without one.
    """

    question: Question
    desk: Desk
    words: int
    note: str = ""
    unread: list[Chunk] = field(default_factory=list)
    skipped: Skipped = field(default_factory=Skipped)

    async def read(self, chunks: Sequence[Chunk]) -> AsyncIterator[Event]:
        """Read the chunks one after the other."""
        for step, chunk in enumerate(chunks, start=1):
            shown = await asyncio.to_thread(self.desk.show, list_passages(chunk))
            carry_input = CarryIn(question=self.question.text, note=self.note, evidence=shown, words=self.words)
            reply = await self.skipped.try_call(self.desk.model.ask(CARRY_NOTE, carry_input), None)
            if reply is None:
                self.unread.append(chunk)
            else:
                self.note = reply.note
            name = await asyncio.to_thread(describe_chunk, chunk, self.desk)
            yield make_event("unread" if reply is None else "read", step, chunk=name, notes=[self.note])
            for event in self.skipped.events(step):
                yield event

    def collect(self) -> Findings:
        """The note."""
        return Findings(notes=(Note(self.note),) if self.note else ())

    def conclude(self, answer: str) -> dict[str, Any] | None:
        """Nothing: the note is among what the answering role saw."""
        return None


def list_passages(chunk: Chunk) -> list[Evidence]:
    """The passages of a chunk as evidence, in document order: E1, E2, ..."""
    return [as_evidence(passage, 1.0) for passage in chunk.passages]


def describe_chunk(chunk: Chunk, desk: Desk) -> str:
    """Where a chunk stands: "story.md, parts 12 to 30 of 59"; of several documents the first and the last part."""
    documents: dict[DocumentId, list[Passage]] = {}
    for passage in chunk.passages:
        documents.setdefault(passage.document, []).append(passage)
    runs = [*documents.values()]
    ends = [_describe_run(run, desk) for run in (runs[:1] if len(runs) == 1 else (runs[0], runs[-1]))]
    return " to ".join(ends) + (f" ({len(runs)} documents)" if len(runs) > 2 else "")


def _describe_run(passages: Sequence[Passage], desk: Desk) -> str:
    sources = tuple(passage.id for passage in passages)
    (shown,) = desk.show([Evidence(id=sources[0], layer="chunk", text="", score=1.0, sources=sources)])
    return ", ".join(filter(None, (passages[0].title or shown.document, shown.place)))


def check_fact(noted: NotedFact, passages: Sequence[Passage], shown: Sequence[Shown]) -> LedgerFact:
    """The fact with the passage that has its quote: the one that it names first, else another one of these.

    `shown` are the passages as the reader saw them.
    """
    named = [passage.id for passage in find_labelled(noted.label, passages)]
    places = {
        passage.id: ", ".join(filter(None, (piece.title or piece.document, piece.place)))
        for passage, piece in zip(passages, shown, strict=True)
    }
    text = noted.fact or noted.quote
    for passage in sorted(passages, key=lambda passage: passage.id not in named):
        if found := locate(noted.quote, passage):
            text = found.text if text == noted.quote else text
            place = places[passage.id]
            return LedgerFact(label="", text=text, passage=passage.id, quote=found.text, place=place, in_text=True)
    where = named[0] if named else ""
    return LedgerFact(label="", text=text, passage=where, quote=noted.quote, place=places.get(where, ""))


def make_pieces(
    by_passage: Mapping[PassageId, Sequence[LedgerFact]], passages: Mapping[PassageId, Passage], *, quotes: bool
) -> Iterator[Evidence]:
    """The facts of each passage as one piece of evidence: as the ledger has them, or with `quotes` as their words."""
    for rank, (passage_id, facts) in enumerate(by_passage.items(), start=1):
        if passage := passages.get(passage_id):
            in_order = sorted(facts, key=read_number)
            text = _write_extract(passage, facts) if quotes else "\n".join(fact.note for fact in in_order)
            yield Evidence(
                id=content_id("extract", passage_id, text),
                layer=EXTRACTS if quotes else LEDGER,
                kind=PASSAGE if quotes else FACT,
                text=text,
                score=1 / rank,
                sources=(passage_id,),
                title=passage.title,
                place=passage.place,
            )


def _write_extract(passage: Passage, facts: Sequence[LedgerFact]) -> str:
    """The quotations in the order of the passage, overlapping ones made one; after each what was noted of it."""
    starts = {fact.label: passage.text.find(fact.quote) for fact in facts}
    spans: list[tuple[int, int, list[str]]] = []
    for fact in sorted(facts, key=lambda fact: (starts[fact.label], read_number(fact))):
        start, notes = starts[fact.label], [] if fact.is_quote else [f"{NOTED}{fact.text})"]
        end = start + len(fact.quote)
        if spans and start < spans[-1][1]:
            start, last, earlier = spans.pop()
            end, notes = max(end, last), earlier + notes
        spans.append((start, end, notes))
    return BETWEEN_QUOTES.join(passage.text[start:end] + "".join(notes) for start, end, notes in spans)
