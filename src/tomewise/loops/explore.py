"""Explore: a model looks into the documents with tools, keeps evidence, and goes on until it can answer. Ours.

Each reply notes what the last looks showed, names the evidence that is kept, and chooses up to three looks, which are
taken side by side (`looks`). A call is shown the evidence of the last looks alone, with all notes and a line for each
look before: so no call grows with the number of looks. A look that no tool takes, or that was taken before, is refused,
and the next call sees why; two replies in a row without a look that can be taken end the loop.

With a recall, the search with the question is the first look, before any call, and the last prompt has one ranking of
what is kept and what all searches and finds found (`loops.last_prompt`). Without one, as an agent has it who greps in
files, it has what is kept, then what was shown last. A part that was read last, which no reply has seen, counts as
kept; what finds counted is a note.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from tomewise.calls import CallCount, read_calls, sum_calls
from tomewise.concurrency import gather_calls
from tomewise.errors import UsageError, count_noun
from tomewise.events import make_event, report_retrieved
from tomewise.language.labels import find_labelled
from tomewise.language.roles import CHOOSE_LOOKS, AnswerIn, LookOut, LooksIn, LooksOut
from tomewise.loops.desk import FusingDesk, Prepared
from tomewise.loops.last_prompt import DEPTH, Note, Searched
from tomewise.loops.looks import TOOLS, Look, Result, Tools, refuse
from tomewise.loops.steps import LoopState, rank_found, take_steps
from tomewise.recall.ranking import drop_repeats
from tomewise.store.lookups import read_places
from tomewise.store.records import PASSAGES
from tomewise.types import Answer, Event, Evidence, NodeId, Question, Retriever

LOOKS = 6
_AT_ONCE = 3  # looks of a reply
_REFUSED = 2  # replies in a row without a look that can be taken


@dataclass(frozen=True, eq=False, kw_only=True)
class Explore:
    """At most `looks` replies choose looks. Those of one reply share `reading` tokens; the answer is shown `budget`.

    `tools` are the names of those that there are.
    """

    desk: FusingDesk
    recall: Retriever | None
    budget: int
    reading: int
    looks: int = LOOKS
    tools: Sequence[str] = TOOLS

    @property
    def calls(self) -> CallCount:
        """One for the looks of a reply, the searches, and the answer."""
        replies = CallCount(f"1 for up to {_AT_ONCE} looks, at most {self.looks}", self.looks)
        searches = 1 + (self.looks * _AT_ONCE if "search" in self.tools else 0)
        search = read_calls(self.recall).repeat(searches) if self.recall else CallCount("0", 0)
        return sum_calls([*([replies] if self.looks else []), search, CallCount("1", 1)])

    async def run(self, question: Question) -> AsyncIterator[Event | Answer]:
        """By reply `noted` and `looked` for each look; `stopped`, `retrieved`, then the answer."""
        state = await self._begin(question)
        for result in state.results:
            yield _report(result, state)
        async for event in take_steps(state, partial(self._take_step, state), most=self.looks, name="reply"):
            yield event
        prepared = await self._prepare(state)
        yield report_retrieved(prepared.evidence, prepared.found, state.step)
        answer = await self.desk.answer(question, prepared)
        state.shown.update(piece.id for piece in prepared.evidence if piece.layer == PASSAGES)
        yield replace(answer, coverage=replace(answer.coverage, read=len(state.shown)))

    async def _begin(self, question: Question) -> _ExploreState:
        """Search with the question; documents are listed in the order in which it finds them."""
        found = await self.recall.retrieve(question.text, DEPTH, within=question.within) if self.recall else []
        store = self.desk.store
        places = await asyncio.to_thread(read_places, store, [each for piece in found for each in piece.sources])
        ranks = {document: rank for rank, (document, _) in enumerate(places.values())}
        records = await asyncio.to_thread(store.documents, question.within)
        records.sort(key=lambda record: ranks.get(record.id, len(ranks)))
        tools = Tools(self.desk, self.recall, self.tools, question.within, records)
        documents, more = await asyncio.to_thread(tools.list_documents)
        state = _ExploreState(question=question, tools=tools, documents=documents, more_documents=more, found=found)
        if self.recall and "search" in self.tools and self.looks:
            asked = LookOut(tool="search", what="(the question)")
            state.add([await asyncio.to_thread(tools.show_found, asked, found, self.reading)])
        return state

    async def _take_step(self, state: _ExploreState) -> AsyncIterator[Event]:
        """Ask for notes and for looks, and take these."""
        prepared = await asyncio.to_thread(self._show, state)
        state.shown.update(piece.id for piece in prepared.evidence if piece.layer == PASSAGES)
        reply = await state.ask(self.desk, CHOOSE_LOOKS, prepared.input)
        if reply is None:
            state.end = "the reply was not usable"
            return
        kept = [node for piece in find_labelled(reply.keep, prepared.labelled) for node in piece.sources]
        state.keep(reply, kept)
        yield make_event(
            "noted", state.step, notes=[reply.note] if reply.note else [], kept=kept, finished=reply.finished
        )
        if reply.finished or not reply.looks:
            state.end = "the question can be answered" if reply.finished else "no look was chosen"
            return
        for look in reply.looks[_AT_ONCE:]:
            state.skipped.drop(f"no room for the look {look.tool} {look.what!r} (looks of a reply: {_AT_ONCE})")
        await self._take(state, reply.looks[:_AT_ONCE])
        for result in state.results:
            yield _report(result, state)
        if state.refused == _REFUSED:
            state.end = f"{_REFUSED} replies in a row chose no look that can be taken"

    async def _take(self, state: _ExploreState, written: Sequence[LookOut]) -> None:
        """Take the looks of a reply side by side, but for those that are refused."""
        looks: list[Look] = []
        refused: list[Result] = []
        for each in written:
            try:
                look = state.tools.read_look(each)
                if look.key in state.taken:
                    raise UsageError("it was taken before")
                state.taken.add(look.key)
                looks.append(look)
            except UsageError as error:
                refused.append(refuse(each, error))
        room = self.reading // max(1, len(looks))
        results = [*await gather_calls(state.tools.take(look, room, state.shown) for look in looks), *refused]
        for result in results:
            if result.refused:
                state.skipped.drop(f"the look {result.look.tool} {result.look.what!r} was {result.line}")
        state.refused = state.refused + 1 if all(result.refused for result in results) else 0
        state.add(results)

    def _show(self, state: _ExploreState) -> Prepared[LooksIn]:
        pieces = drop_repeats(piece for result in state.results for piece in result.shown)
        before = state.all_results[: len(state.all_results) - len(state.results)]

        given = LooksIn(
            question=state.question.text,
            documents=state.documents,
            more_documents=state.more_documents,
            tools=list(self.tools),
            tried=[result.describe(in_full=False) for result in before],
            results=[result.describe(in_full=True) for result in state.results],
            notes=[note.text for note in state.notes],
            left=self.looks - state.step,
            limit=_AT_ONCE,
        )
        prepared = self.desk.fit(CHOOSE_LOOKS, pieces, given)
        return replace(prepared, input=prepared.input.model_copy(update={"cut": prepared.dropped}))

    async def _prepare(self, state: _ExploreState) -> Prepared[AnswerIn]:
        """The last prompt: what is kept, what was read last, what was found; and notes, with what was counted."""
        unseen = [result for result in state.results if not result.ranking]
        more = reversed(state.all_results) if self.recall is None else unseen
        wanted = [*state.kept, *(node for result in more for piece in result.shown for node in piece.sources)]
        ranked = await asyncio.to_thread(self.desk.fetch, list(dict.fromkeys(wanted)), state.question.within)
        if self.recall:
            queries = [each.ranking for each in state.all_results if each.ranking and each.ranking is not state.found]
            fused = await rank_found(self.desk, state.question, state.found, queries, Searched(ranked))
            ranked = sorted(fused, key=lambda piece: piece.id not in wanted)
        counts = [Note(result.count) for result in reversed(state.all_results) if result.count]
        prepared = await self.desk.lay_out(state.question, ranked, self.budget, [*counts, *reversed(state.notes)])
        given = prepared.input
        if lost := len({count.text for count in counts}.difference(given.notes)):
            remark = f"{count_noun(lost, 'count')} of places that were found had no room here, whole or in part."
            prepared = replace(prepared, input=given.model_copy(update={"notes": [*given.notes, remark]}))
        return prepared


@dataclass(slots=True, kw_only=True)
class _ExploreState(LoopState):
    """The state of the loop for one question. `found` is what the search with the question found.

    `results` are those of the last looks, as long as no reply has seen them. `kept` are passages, those of the newest
    reply first, `shown` those that some call was shown whole. `refused` counts replies in a row without a look.
    """

    tools: Tools
    documents: list[str]
    more_documents: int
    found: list[Evidence]
    results: list[Result] = field(default_factory=list)
    all_results: list[Result] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    kept: list[NodeId] = field(default_factory=list)
    shown: set[NodeId] = field(default_factory=set)
    taken: set[tuple[str, ...]] = field(default_factory=set)
    refused: int = 0

    def add(self, results: list[Result]) -> None:
        """Remember the results of the last looks."""
        self.results = results
        self.all_results += results

    def keep(self, reply: LooksOut, kept: Sequence[NodeId]) -> None:
        """Keep what a reply notes, with the passages that it names; its results are seen then."""
        if reply.note:
            self.notes.append(Note(reply.note, kept))
        self.kept[:0] = kept
        self.results = []


def _report(result: Result, state: _ExploreState) -> Event:
    look = result.describe(in_full=True).model_dump()
    return make_event("looked", state.step, evidence=result.shown, **look)
