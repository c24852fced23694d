"""Reading with a ledger (COSMIR, section 4.2): plan, then for each chunk extract, infer and refine.

As published, the ledger forgets its oldest facts as soon as a chunk was extracted, so before the inference; every chunk
has its inference and its refinement; and the answering role is shown the ledger as it stands: what is open, the facts,
the inferences.

`read_through` reads with the same ledger in a way of ours. `wave` chunks are extracted side by side on the same
questions, and one inference and one refinement follow for all of them, if there is a new fact. The ledger forgets after
the inference, and first what nothing needs (`working.ledger.forget_unused`). A question has a place, of a number of
places, and so has a wide one; one without a place is reported. After the last of several chunks, *recovery* searches
for the focused questions that are still open, and only the passages found are read again. The last wave is refined only
if a recovery may follow, since otherwise nobody reads on. The answering role is shown the words of the text for facts.

In both ways, a call whose reply stays unusable is skipped and reported; a chunk whose extraction fails counts as
unread. An inference that cites no fact is not kept. Where earlier questions of a session left facts, an inference and a
refinement over these come before the first chunk, as text that was read before brings no new fact.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import ceil
from typing import Any

from tomewise.calls import NO_CALLS, CallCount, read_calls
from tomewise.concurrency import gather_calls
from tomewise.events import Row, make_event
from tomewise.language.roles import (
    ANSWER,
    EXTRACT_NOTES,
    INFER_NOTES,
    PLAN_READING,
    REFINE_QUESTIONS,
    Entry,
    InferIn,
    InferOut,
    NotesIn,
    NotesOut,
    PlanReadingIn,
    PlanReadingOut,
    RefineIn,
    RefineOut,
)
from tomewise.loops.chunking import LEAST_TOKENS, Chunk, Chunking, FreeTokens, check_windows
from tomewise.loops.desk import Desk, make_answer_input
from tomewise.loops.evidence import fit_to_window, fold, load_passages
from tomewise.loops.last_prompt import Note
from tomewise.loops.notes import Findings, check_fact, describe_chunk, list_passages, make_pieces
from tomewise.loops.steps import Skipped
from tomewise.recall.ranking import take_turns
from tomewise.types import Event, In, Out, PassageId, Question, Retriever, Role
from tomewise.working.ledger import (
    Inference,
    Ledger,
    LedgerFact,
    LedgerMemory,
    add_facts,
    add_inferences,
    dump,
    forget_oldest,
    forget_unused,
    infer_from,
    read_number,
)

NETS = 4  # places of wide questions
_AGAIN = 40  # passages that are read again for an open question at most
_PLACES = 10  # open questions for which room is kept where their number has no limit
_OF_QUESTION = 30  # tokens of an open question
_OF_FACT = 60  # tokens of the ledger's budget for each fact that is asked for
_FEWEST, _MOST = 8, 60  # facts that are asked for of one chunk
_PER_FACT = 200  # tokens of a chunk for each of them
_REPLY, _OF_REPLY = 256, 80  # tokens of a reply, and of a fact in it
_STILL_OPEN = "Still open after the reading:"
_SHOWN = 2.1  # times its budget is a ledger when it is shown: half as many inferences, and labels and places


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycle:
    """How a ledger is kept: as `published`, or in our own way (see above).

    As published its facts have at most the `share` of a chunk's tokens, in our own way `memory` tokens, 0: no limit.
    `wave` chunks are read side by side. `questions` places are for open questions, None: no limit. `recovery` is the
    share of the text that may be read again for open questions; 0: none.
    """

    published: bool = True
    share: float = 0.125
    memory: int = 0
    wave: int = 1
    questions: int | None = None
    recovery: float = 0.0


@dataclass(frozen=True, slots=True)
class LedgerReading:
    """Opens a ledger for each question: an empty one, or that of `memory`."""

    desk: Desk
    chunking: Chunking
    cycle: Cycle
    memory: LedgerMemory | None = None

    @property
    def calls(self) -> CallCount:
        """The plan, one call a chunk, up to two a wave; the same again for the part that is read again.

        That is for a question without earlier facts; these take up to two calls more. In our own way, a text of one
        chunk takes no refinement and is not read again.
        """
        cycle = self.cycle
        once = f"1 + 1 a chunk + 2 a wave of {cycle.wave}" if cycle.wave > 1 else "1 + 3 a chunk"
        if not cycle.recovery:
            return CallCount(once)
        search = read_calls(self.chunking.recall)
        searches = f", searches of {search.formula}" if search != NO_CALLS else ""
        return CallCount(f"{once}, at most {cycle.recovery:.0%} of the text read twice{searches}")

    def count_calls(self, chunks: Sequence[Chunk]) -> int:
        """The plan; all extractions; an inference and a refinement a wave, in our own way none of the last wave.

        The same for recovery, and the refinement of the last wave before it.
        """
        calls = 1 + self._count_cycle(len(chunks))
        if len(chunks) > 1 and self.cycle.recovery:
            again = self.cycle.recovery * sum(chunk.tokens for chunk in chunks)
            calls += 1 + self._count_cycle(ceil(again / min(c.tokens for c in chunks[:-1])))
        return calls

    def _count_cycle(self, chunks: int) -> int:
        cycle = self.cycle
        waves = ceil(chunks / cycle.wave)
        refined = waves if cycle.published else max(0, waves - 1)
        return chunks + waves + refined

    def open(self, question: Question) -> LedgerNotes:
        """The ledger to start from."""
        return LedgerNotes(question, self, self.memory or LedgerMemory())

    def measure_room(self, question: Question) -> int:
        """The most tokens of a chunk: what the prompt, the open questions and a reply leave.

        Raises UsageError if the window has no room for a chunk and a ledger.
        """
        empty, cycle = NotesIn(question=question.text, evidence=[]), self.cycle
        spare = FreeTokens.measure(self.desk, make_extract_role(0), empty, beside=self._of_questions).tokens
        facts = cycle.share / _OF_FACT if cycle.published else 1 / _PER_FACT  # for each token of the chunk
        tokens = int(spare / (1 + _OF_REPLY * facts))
        room = FreeTokens(EXTRACT_NOTES, tokens if cycle.published else max(tokens, spare - _MOST * _OF_REPLY))
        check_windows(self.desk, [room, *self._measure_ledger_tokens(question)])
        return room.tokens

    def measure_ledger(self, question: Question, room: int) -> int | None:
        """The tokens of facts that a ledger holds where a chunk has at most so many; None: no limit."""
        cycle = self.cycle
        budget = max(1, int(cycle.share * min(self.chunking.size, room))) if cycle.published else cycle.memory
        rooms = (int(room.tokens / _SHOWN) for room in self._measure_ledger_tokens(question))
        return max(1, min(budget, *rooms)) if budget else None

    def count_wanted(self, chunk: int, room: int | None) -> int:
        """How many facts a chunk of so many tokens is asked for, where so many tokens of the ledger are for it."""
        if self.cycle.published and room is not None:
            return max(_FEWEST, room // _OF_FACT)
        wanted = chunk // _PER_FACT
        return min(max(wanted if room is None else min(wanted, room // _OF_FACT), _FEWEST), _MOST)

    @property
    def _of_questions(self) -> int:
        """The tokens of the questions that may be open, or of as many as are likely."""
        return _OF_QUESTION * ((_PLACES if self.cycle.questions is None else self.cycle.questions) + NETS)

    def _measure_ledger_tokens(self, question: Question) -> list[FreeTokens]:
        """What the calls that show a ledger leave for it."""
        asked = question.text
        empty: list[tuple[Role[Any, Any], Any]] = [
            (INFER_NOTES, InferIn(question=asked)),
            (REFINE_QUESTIONS, RefineIn(question=asked)),
            (ANSWER, make_answer_input(question, [])),
        ]
        least = int(_SHOWN * min(LEAST_TOKENS, self.cycle.memory or LEAST_TOKENS))
        return [FreeTokens.measure(self.desk, *each, beside=self._of_questions, least=least) for each in empty]


def make_extract_role(facts: int) -> Role[NotesIn, NotesOut]:
    """The role of extracting with room in its reply for so many facts."""
    return replace(EXTRACT_NOTES, output_tokens=_REPLY + _OF_REPLY * facts)


class LedgerNotes:
    """The ledger of one question while its text is read."""

    def __init__(self, question: Question, reading: LedgerReading, memory: LedgerMemory) -> None:
        self._question = question
        self._reading = reading
        self._desk = reading.desk
        self._cycle = reading.cycle
        self._memory = memory
        self._budget: int | None = None
        self._room = 0  # tokens of a chunk at most
        self.ledger = memory.ledger
        self.unread: list[Chunk] = []
        self.skipped = Skipped()
        self._step = 0

    async def read(self, chunks: Sequence[Chunk]) -> AsyncIterator[Event]:
        """Plan, infer from what earlier questions left, read all chunks wave by wave, then recover what was missed."""
        self._room = await asyncio.to_thread(self._reading.measure_room, self._question)
        self._budget = await asyncio.to_thread(self._reading.measure_ledger, self._question, self._room)
        async for event in self._plan():
            yield event
        await self._forget()
        if self.ledger.facts or self.ledger.inferences:
            await self._infer_and_refine(self.ledger.made, refines=True)
            async for event in self._conclude_step():
                yield event
        recall = self._reading.chunking.recall if self._cycle.recovery and len(chunks) > 1 else None
        async for event in self._read_waves(chunks, refines_last=self._cycle.published or recall is not None):
            yield event
        if recall and self.ledger.questions:
            found = await self._find_missed(recall, chunks)
            tokens = sum(chunk.tokens for chunk in found)
            yield make_event("recovered", self._step, open=len(self.ledger.questions), tokens=tokens)
            async for event in self._read_waves(found, again=True):
                yield event

    def collect(self) -> Findings:
        """The ledger as it stands; in our own way the words behind facts, also behind those that inferences rest on."""
        ledger, published = self.ledger, self._cycle.published
        behind = {} if published else {fact.label: fact for each in ledger.inferences for fact in each.grounds}
        facts = behind | {fact.label: fact for fact in reversed(ledger.facts)}
        by_passage: dict[PassageId, list[LedgerFact]] = {}
        notes: list[Note] = []
        for fact in facts.values():
            if fact.passage and (published or (fact.in_text and fact.quote)):
                by_passage.setdefault(fact.passage, []).append(fact)
            else:
                notes.insert(0, Note(fact.note))
        notes += [Note(each.text, () if published else (*filter(None, each.passages),)) for each in ledger.inferences]
        if published and (asked := (*ledger.questions, *ledger.nets)):
            notes.insert(0, Note(f"{_STILL_OPEN} {' '.join(asked)}"))
        pieces = make_pieces(by_passage, load_passages(self._desk.store, by_passage), quotes=not published)
        return Findings(tuple(pieces), tuple(dict.fromkeys(notes)), (*ledger.settled, *ledger.questions))

    def conclude(self, answer: str) -> dict[str, Any]:
        """The whole ledger with its answer, for `working.ledger.load`."""
        self.ledger = replace(self.ledger, answer=answer)
        self._memory.keep(self.ledger)
        return dump(self.ledger)

    async def _plan(self) -> AsyncIterator[Event]:
        """Ask for questions; where places are limited, half of them stay free for those that the reading raises."""
        places = self._cycle.questions
        limit, most = (None, None) if places is None else (ceil(places / 2), NETS)
        role_input = PlanReadingIn(question=self._question.text, limit=limit, nets=most)
        plan = await self.skipped.try_call(self._desk.model.ask(PLAN_READING, role_input), PlanReadingOut())
        questions, nets = self._choose(plan.questions, limit), self._choose(plan.nets, most)
        self.ledger = replace(self.ledger, questions=questions, nets=nets)
        yield make_event("reading planned", questions=plan.questions, nets=plan.nets)
        for event in self.skipped.events(0):
            yield event

    async def _read_waves(
        self, chunks: Sequence[Chunk], *, again: bool = False, refines_last: bool = False
    ) -> AsyncIterator[Event]:
        """Read in waves, for the first time; or `again`, and then only until no question is open.

        What is open after the last wave matters only to a recovery that follows.
        """
        for start in range(0, len(chunks), self._cycle.wave):
            if again and not self.ledger.questions:
                return
            self._step += 1
            wave, left = chunks[start : start + self._cycle.wave], len(chunks) - start
            refines = refines_last or left > len(wave)
            async for event in self._read_wave(wave, left, again=again, refines=refines):
                yield event

    async def _read_wave(self, wave: Sequence[Chunk], left: int, *, again: bool, refines: bool) -> AsyncIterator[Event]:
        """Extract the chunks side by side, infer and refine, and forget what has no room.

        In our own way only new facts lead to an inference. `left` chunks are to be read, those of this wave included.
        """
        made, published = self.ledger.made, self._cycle.published
        inputs = await asyncio.to_thread(lambda: [self._make_input(chunk, left) for chunk in wave])
        extracted = await gather_calls(self._extract(chunk, each) for chunk, each in zip(wave, inputs, strict=True))
        for chunk, facts in zip(wave, extracted, strict=True):
            if facts is None and not again:  # a chunk that is read again was read before, or is listed already
                self.unread.append(chunk)
            yield self._report_chunk(chunk, facts)
            self.ledger = add_facts(self.ledger, facts or (), self._desk.count)
        if published:
            await self._forget()
        if published or self.ledger.made > made:
            await self._infer_and_refine(made, refines=refines)
        async for event in self._conclude_step():
            yield event

    async def _infer_and_refine(self, made: int, *, refines: bool) -> None:
        """Infer; refine as well where somebody reads on. Facts after the first `made` entries are new."""
        await self._infer(made)
        if refines:
            await self._refine()

    async def _conclude_step(self) -> AsyncIterator[Event]:
        """Forget what has no room, and report."""
        await self._forget()
        for event in self.skipped.events(self._step):
            yield event
        yield make_event("ledger updated", self._step, pool=list(_list_rows(self.ledger)))

    async def _forget(self) -> None:
        ledger, budget, count = self.ledger, self._budget, self._desk.count
        if self._cycle.published and budget is not None:
            self.ledger = await asyncio.to_thread(forget_oldest, ledger, budget, count)
        else:
            asked = self._question.text
            self.ledger = await asyncio.to_thread(forget_unused, ledger, budget, count, asked=asked)

    def _make_input(self, chunk: Chunk, chunks: int) -> NotesIn:
        """The input for a chunk. As published the whole ledger is for it, in our own way what is left by so many."""
        shown, room = self._desk.show(list_passages(chunk)), self._budget
        if room is not None and not self._cycle.published:
            room = max(0, room - sum(fact.tokens for fact in self.ledger.facts)) // chunks
        limit = self._reading.count_wanted(chunk.tokens, room)
        return NotesIn(**self._list_asked(), evidence=shown, limit=limit)

    async def _extract(self, chunk: Chunk, notes_input: NotesIn) -> list[LedgerFact] | None:
        """The facts of a chunk; None without a usable reply."""
        role = make_extract_role(notes_input.limit)
        reply = await self.skipped.try_call(self._desk.model.ask(role, notes_input), None)
        if reply is None:
            return None
        return await asyncio.to_thread(
            lambda: [check_fact(noted, chunk.passages, notes_input.evidence) for noted in reply.facts]
        )

    async def _infer(self, made: int) -> None:
        role_input = await asyncio.to_thread(
            self._fit, INFER_NOTES, lambda entries: InferIn(**self._list_asked(), **entries), made
        )
        reply = await self.skipped.try_call(self._desk.model.ask(INFER_NOTES, role_input), InferOut())
        drawn = [infer_from(self.ledger, each.inference, each.rests_on) for each in reply.inferences]
        grounded = [inference for inference in drawn if inference.grounds]
        self.ledger = await asyncio.to_thread(add_inferences, self.ledger, grounded, self._desk.count)

    async def _refine(self) -> None:
        limit = self._cycle.questions
        role_input = await asyncio.to_thread(
            self._fit,
            REFINE_QUESTIONS,
            lambda entries: RefineIn(**self._list_asked(), limit=limit, **entries),
            self.ledger.made,
        )
        reply = await self.skipped.try_call(self._desk.model.ask(REFINE_QUESTIONS, role_input), RefineOut())
        ledger = self.ledger
        asked = enumerate((*ledger.questions, *ledger.nets), start=1)
        settled = dict.fromkeys((*ledger.settled, *(text for number, text in asked if number in reply.answered)))
        nets = tuple(text for text in ledger.nets if text not in settled)
        self.ledger = replace(ledger, settled=tuple(settled), nets=nets)
        self.ledger = replace(self.ledger, questions=self._choose([*ledger.questions, *reply.new], limit))

    def _list_asked(self) -> dict[str, Any]:
        ledger = self.ledger
        return {"question": self._question.text, "questions": list(ledger.questions), "nets": list(ledger.nets)}

    def _fit(self, role: Role[In, Out], make_input: Callable[[dict[str, list[Entry]]], In], made: int) -> In:
        """The input with all facts and inferences; if these exceed the window, with the new ones and the latest."""

        def is_new(entry: LedgerFact | Inference) -> bool:
            return isinstance(entry, LedgerFact) and read_number(entry) > made

        def list_entries(fitting: Sequence[LedgerFact | Inference]) -> dict[str, list[Entry]]:
            entries: dict[str, list[Entry]] = {"facts": [], "inferences": []}
            for each in sorted(fitting, key=read_number):
                kind = "facts" if isinstance(each, LedgerFact) else "inferences"
                entries[kind].append(Entry(label=each.label, text=each.note, place=each.place, is_new=is_new(each)))
            return entries

        both: list[LedgerFact | Inference] = [*self.ledger.facts, *self.ledger.inferences]
        material = sorted(both, key=lambda each: (is_new(each), read_number(each)), reverse=True)
        fitting = fit_to_window(material, self._desk.model, role, lambda part: make_input(list_entries(part)))
        return make_input(list_entries(fitting))

    def _choose(self, texts: Iterable[str], places: int | None) -> tuple[str, ...]:
        """The first texts that have a place, each once, and none that was settled before. What has none is reported."""
        past = {fold(text) for text in self.ledger.settled}
        distinct: dict[str, str] = {}
        for text in filter(str.strip, texts):
            if fold(text) not in past:
                distinct.setdefault(fold(text), text)
        for text in [*distinct.values()][len(distinct) if places is None else places :]:
            self.skipped.drop(f"no place is left for the question {text!r} (places: {places})")
        return tuple(distinct.values())[:places]

    async def _find_missed(self, recall: Retriever, chunks: Sequence[Chunk]) -> list[Chunk]:
        """Chunks of the passages that searches for the open questions find, and that no fact cites yet."""
        limit, within = _AGAIN, self._question.within
        ranked = take_turns(
            await gather_calls(recall.retrieve(text, limit, within=within) for text in self.ledger.questions)
        )
        cited = {fact.passage for fact in self.ledger.facts if fact.in_text}
        cited.update(passage for each in self.ledger.inferences for passage in each.passages)
        wanted = dict.fromkeys(source for piece in ranked for source in piece.sources if source not in cited)
        most = int(self._cycle.recovery * sum(chunk.tokens for chunk in chunks))
        return await asyncio.to_thread(self._reading.chunking.cut_chunks, list(wanted), self._room, most)

    def _report_chunk(self, chunk: Chunk, facts: list[LedgerFact] | None) -> Event:
        name = describe_chunk(chunk, self._desk)
        if facts is None:
            return make_event("unread", self._step, chunk=name)
        not_found = sum(not fact.in_text for fact in facts)
        return make_event("extracted", self._step, chunk=name, notes=[fact.text for fact in facts], not_found=not_found)


def _list_rows(ledger: Ledger) -> Iterator[Row]:
    for question in (*ledger.questions, *ledger.nets):
        yield {"kind": "question", "text": question}
    entries: Iterable[LedgerFact | Inference] = chain(ledger.facts, ledger.inferences)
    for entry in entries:
        kind = "fact" if isinstance(entry, LedgerFact) else "inference"
        yield {"kind": kind, "label": entry.label, "text": entry.text}
