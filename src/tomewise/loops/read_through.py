"""Reading with a ledger in a way of ours. It plans as COSMIR does (`ledger_relay`); what differs is this.

A fact is the span of its passage that states it. `wave` chunks are marked side by side on the same questions. One reply
then says what follows, what that overtakes, and what is open; it is asked for where there is a new fact. The reading
ends once the question is settled, unless it needs every part. After the last of several chunks, *recovery* searches for
the questions that are still open, and only the passages found are read again.

The answering role is shown passages: those of facts whole, the best first, by what rests on them and by what searches
find; the words of facts whose passage has no room
whole; then the passages before and after them; then what searches find. Inferences are notes, with what they overtook.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from math import ceil

from tomewise.calls import CallCount
from tomewise.concurrency import gather_calls
from tomewise.events import make_event
from tomewise.language.roles import MARK_FACTS, UPDATE_LEDGER, AnswerIn, Entry, LedgerOut, MarkIn
from tomewise.loops.chunking import Chunk, cut_chunks
from tomewise.loops.desk import Prepared
from tomewise.loops.evidence import EXTRACTS, PASSAGE, drop_near_repeats, load_passages, measure_pieces, measure_texts
from tomewise.loops.last_prompt import DEPTH, Context, Searched
from tomewise.loops.ledger_relay import OF_QUESTIONS, OpenLedger, WithLedger, begin, tell_lost
from tomewise.loops.relay import EmptyCall
from tomewise.loops.steps import rank_found
from tomewise.recall.ranking import as_evidence, take_turns
from tomewise.types import Event, Evidence, Passage, PassageId, Question, Retriever, content_id
from tomewise.working.ledger import (
    Ledger,
    LedgerEntry,
    infer,
    list_overtaken,
    settle,
)

BETWEEN_QUOTES = " … "
_PLACES, _NETS = 10, 4  # questions that are open at a time at most, and wide ones beside them
_KNOWN = 40  # facts that a reader is shown: the latest
_OF_KNOWN = 30  # tokens of each
_OWN = 0.5  # the weight of the ledger's own order of passages beside what searches find for the question
_AGAIN = 40  # passages that are read again for an open question at most
_NOTES = 3  # notes have at most one part in so many of what the answering role sees


@dataclass(frozen=True, eq=False, kw_only=True)
class ReadThrough(WithLedger):
    """Reads chunks of `size` tokens, in document order or `by_relevance`. The answering role sees `context` tokens.

    With `to_end` all is read, also where the question is settled before. Calls are counted for a question without a
    session, where no reply is full.
    """

    recall: Retriever
    context: int
    wave: int = 1
    by_relevance: bool = False
    to_end: bool = False

    @property
    def calls(self) -> CallCount:
        """The plan, one a chunk, one a wave, the answer; and those of what is read again. Searches ask no model."""
        again = f", at most {self.recovery:.0%} of the text read twice" if self.recovery else ""
        return CallCount(f"1 + 1 a chunk + 1 a wave of {self.wave} + 1{again}")

    def make_empty_call(self, question: Question) -> EmptyCall:
        return MARK_FACTS, MarkIn(question=question.text, evidence=[]), OF_QUESTIONS + _KNOWN * _OF_KNOWN

    def count_calls(self, chunks: Sequence[Chunk]) -> int:
        most = self.recovery * sum(chunk.tokens for chunk in chunks) if len(chunks) > 1 else 0
        again = ceil(most / min(chunk.tokens for chunk in chunks[:-1])) if most else 0
        return 2 + sum(number + ceil(number / self.wave) for number in (len(chunks), again))

    async def find_chunks(self, question: Question) -> list[Chunk]:
        """See `InOrder`. By relevance those come first whose best passage ranks highest in the search."""
        chunks = await super().find_chunks(question)
        if not self.by_relevance or len(chunks) < 2:
            return chunks
        count = sum(len(chunk.passages) for chunk in chunks)
        ranked = await self.recall.retrieve(question.text, count, within=question.within)
        sources = dict.fromkeys(source for piece in ranked for source in piece.sources)
        ranks = {source: rank for rank, source in enumerate(sources)}
        return sorted(chunks, key=lambda chunk: min(ranks.get(each.id, len(ranks)) for each in chunk.passages))

    async def read(self, written: OpenLedger, chunks: Sequence[Chunk]) -> AsyncIterator[Event]:
        """Plan, infer from what earlier questions left, read wave by wave, then recover what was missed."""
        plan, planned = await written.plan(_PLACES // 2, _NETS)
        yield planned
        reads_all = self.to_end or plan.needs_all or written.question.form not in (None, "short")
        await self._update(written, 0)
        for event in written.conclude_step():
            yield event
        start = 0
        while start < len(chunks) and (reads_all or not written.settled):
            async for event in self._read_wave(written, chunks[start : start + self.wave]):
                yield event
            start += self.wave
        written.left = [passage for chunk in chunks[start:] for passage in chunk.passages]
        if written.left:
            yield make_event("stopped", written.step, reason=f"settled: chunks left: {len(chunks) - start}")
        elif self.recovery and len(chunks) > 1 and written.ledger.questions:
            async for event in self._recover(written, sum(chunk.tokens for chunk in chunks)):
                yield event

    async def _read_wave(self, written: OpenLedger, wave: Sequence[Chunk]) -> AsyncIterator[Event]:
        """Mark the facts of chunks side by side, and bring the ledger up to date."""
        written.step += 1
        made = written.ledger.made
        latest = [fact for fact in written.ledger.facts if not fact.replaced_by][-_KNOWN:]
        known = [Entry(label=fact.label, text=begin(fact)) for fact in latest]
        marked = await gather_calls(written.extract(MARK_FACTS, chunk, known=known) for chunk in wave)
        for chunk, (facts, unread) in zip(wave, marked, strict=True):
            for event in await asyncio.to_thread(list, written.add(chunk, facts, unread)):
                yield event
        await self._update(written, made)
        for event in written.conclude_step():
            yield event

    async def _update(self, written: OpenLedger, made: int) -> None:
        """Infer and refine, if an entry after the first `made` ones is new."""
        if written.ledger.made == made:
            return
        reply = await written.think(UPDATE_LEDGER, made, in_full=False, limit=_PLACES) or LedgerOut()
        ledger = written.ledger
        for each in reply.inferences:
            before, ledger = ledger, infer(ledger, each.inference, each.rests_on, each.replaces)
            if ledger is before:
                written.skipped.drop(f"no entry is behind the inference {each.inference!r}")
        ledger = settle(ledger, reply.answered, reply.new)
        for text in ledger.questions[_PLACES:]:
            written.skipped.drop(f"no place is left for the question {text!r} (places: {_PLACES})")
        written.ledger = replace(ledger, questions=ledger.questions[:_PLACES])
        written.settled = reply.settled and not ledger.questions

    async def _recover(self, written: OpenLedger, tokens: int) -> AsyncIterator[Event]:
        """Read again what searches for the open questions find and nothing rests on yet, until no question is open."""
        asked, entries, within = written.ledger.questions, written.ledger.entries, written.question.within
        found = await gather_calls(self.recall.retrieve(text, _AGAIN, within=within) for text in asked)
        cited = {id for each in entries for id in each.passages if each.end or not each.is_fact}
        wanted = dict.fromkeys(id for piece in take_turns(found) for id in piece.sources if id not in cited)
        size = await asyncio.to_thread(self.measure_size, written.question)
        chunks = await asyncio.to_thread(cut_chunks, self.desk, wanted, size, int(self.recovery * tokens))
        yield make_event("recovered", written.step, open=len(asked), tokens=sum(chunk.tokens for chunk in chunks))
        unread, written.unread, again = written.unread, [], set[PassageId]()
        for start in range(0, len(chunks), self.wave):
            wave = chunks[start : start + self.wave]
            async for event in self._read_wave(written, wave):
                yield event
            again |= {passage.id for chunk in wave for passage in chunk.passages}
            if not written.ledger.questions:
                break
        # What was read before is not unread where it fails now.
        again -= {passage.id for passages in written.unread for passage in passages}
        left = ([passage for passage in passages if passage.id not in again] for passages in unread)
        written.unread = list(filter(None, left))

    async def prepare(self, written: OpenLedger, remarks: Sequence[str]) -> Prepared[AnswerIn]:
        question, ledger = written.question, written.ledger
        written.memory.keep(ledger)
        texts = dict.fromkeys((question.text, *ledger.settled, *ledger.questions))
        found, *others = await gather_calls(self.recall.retrieve(text, DEPTH, within=question.within) for text in texts)
        holders = await asyncio.to_thread(self._rank_holders, ledger)
        own = [as_evidence(each, 0.0) for each in holders]
        searched = await rank_found(self.desk, question, found, others, Searched(own, _OWN, 0))
        places = {piece.id: place for place, piece in enumerate(searched)}
        holders.sort(key=lambda passage: places[passage.id])
        near = await self.desk.rank([Searched(own)], question.within)
        context, found = await asyncio.to_thread(self._lay_out, written, remarks, holders, [*near, *searched])
        prepared = await self.desk.prepare_context(question, context, may_decline=not question.force)
        return replace(prepared, found=found)

    def _rank_holders(self, ledger: Ledger) -> list[Passage]:
        """The passages of facts, best first: on which inferences rest, that hold most facts, that hold the latest."""
        current = [each for each in ledger.inferences if not each.replaced_by]
        grounds = {passage for each in current for passage in each.passages if passage}
        numbers: dict[PassageId, list[int]] = {id: [] for id in grounds}
        for fact in ledger.facts:
            if fact.end:
                numbers.setdefault(fact.passages[0], []).extend([] if fact.replaced_by else [fact.number])
        keys = {id: (id in grounds, len(own), max(own, default=0), id) for id, own in numbers.items()}
        return list(load_passages(self.desk.store, sorted(keys, key=keys.__getitem__, reverse=True)).values())

    def _lay_out(
        self, written: OpenLedger, remarks: Sequence[str], holders: Sequence[Passage], ranked: Sequence[Evidence]
    ) -> tuple[Context, list[Evidence]]:
        """Notes first: inferences, those of the best passages first, and unchecked facts; then evidence.

        With all evidence that was found.
        """
        question, ledger, layout = written.question, written.ledger, self.desk.layout
        room = min(self.context, self.desk.measure_answer_room(question)) - sum(measure_texts(remarks, self.desk.count))
        places = {passage.id: place for place, passage in enumerate(holders)}

        def find_place(entry: LedgerEntry) -> tuple[bool, int]:
            return entry.is_fact, min(places.get(id, len(places)) for id in entry.passages)

        loose = [each for each in reversed(ledger.entries) if not (each.end or each.replaced_by)]
        best_first = sorted(loose, key=find_place)
        texts = layout.fit_texts([_write(ledger, each) for each in best_first], room // _NOTES)
        noted = sorted(zip(best_first, texts, strict=False), key=lambda pair: pair[0].number)
        left = room - sum(measure_texts(texts, self.desk.count))
        chosen = self._choose_forms(ledger, holders, left)
        shown = {source for piece in chosen for source in piece.sources}
        beside = drop_near_repeats([piece for piece in ranked if shown.isdisjoint(piece.sources)])
        evidence = layout.pack([*chosen, *beside], left)
        seen = {source for piece in evidence for source in piece.sources}
        unseen = [fact for fact in ledger.facts if fact.end and not fact.replaced_by and fact.passages[0] not in seen]
        lost = len(best_first) - len(noted) + len(unseen)
        notes = (*remarks, *tell_lost(lost), *(text for _, text in noted))
        return Context(tuple(evidence), layout.find_passages(evidence), notes, lost), [*chosen, *ranked]

    def _choose_forms(self, ledger: Ledger, holders: Sequence[Passage], room: int) -> list[Evidence]:
        """Each passage whole, or the words of its facts, as far as they fit; the best first.

        The words of all facts come first, if they fit together; else half of the room is kept for them.
        """
        wholes = [as_evidence(passage, 1 / rank) for rank, passage in enumerate(holders, start=1)]
        extracts = [_quote_facts(ledger, passage, whole) for passage, whole in zip(holders, wholes, strict=True)]
        sizes, shorts = measure_pieces(wholes, self.desk.count), measure_pieces(extracts, self.desk.count)
        needed = sum(shorts)
        most = needed if needed <= room else room // 2
        chosen: list[Evidence] = []
        for whole, extract, size, short in zip(wholes, extracts, sizes, shorts, strict=True):
            needed -= short
            if size <= room - min(needed, most):
                chosen.append(whole)
                room -= size
            elif extract.text and short <= room:
                chosen.append(extract)
                room -= short
        return chosen


def _quote_facts(ledger: Ledger, passage: Passage, whole: Evidence) -> Evidence:
    """The words of the facts of a passage in their order."""
    spans = sorted({(fact.start, fact.end) for fact in ledger.facts if fact.end and fact.passages == (passage.id,)})
    text = BETWEEN_QUOTES.join(passage.text[start:end] for start, end in spans)
    return replace(whole, id=content_id("extract", passage.id, text), layer=EXTRACTS, kind=PASSAGE, text=text)


def _write(ledger: Ledger, entry: LedgerEntry) -> str:
    """An entry as a note, with what it overtook."""
    old = list(list_overtaken(ledger, entry))
    return f"{entry.note} (in place of: {'; '.join(old)})" if old else entry.note
