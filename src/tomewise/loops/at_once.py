"""Read a text at once: all of it, in order, in one call; or part by part where it does not fit.

The text stands first in the prompt, behind constant rules, in the same bytes for every question. So the cache of a
provider or of llama.cpp holds it, and a second question costs little more than its own words.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from itertools import chain
from math import inf

from tomewise.calls import CallCount
from tomewise.errors import UsageError
from tomewise.events import report_retrieved
from tomewise.language.roles import ANSWER, AnswerIn
from tomewise.language.wrapped import find_name, find_room, find_window
from tomewise.loops.chunking import Chunk
from tomewise.loops.citing import only_quotes
from tomewise.loops.desk import Desk, Prepared, make_answer_input
from tomewise.loops.evidence import fit_to_window
from tomewise.loops.last_prompt import join
from tomewise.loops.read_through import ReadThrough
from tomewise.loops.relay import find_chunks, list_passages
from tomewise.types import Answer, Cost, Event, Evidence, Question
from tomewise.working.ledger import LedgerMemory

_PIECE = 1_000  # tokens of a piece: the fewer labels, the shorter the prompt; the more, the nearer what they name


@dataclass(frozen=True, eq=False)
class AtOnce:
    """Shows all passages in scope, those that follow one another as one piece of about 1,000 tokens.

    A text that does not fit into the window is refused, or, with `cut`, shown from its beginning.
    """

    desk: Desk
    cut: bool = False
    calls = CallCount("1", 1)

    async def run(self, question: Question) -> AsyncIterator[Event | Answer]:
        """`retrieved`, then the answer. Raises UsageError if the text does not fit."""
        async for output in self.show(question, await self.prepare(question)):
            yield output

    async def show(self, question: Question, prepared: Prepared[AnswerIn]) -> AsyncIterator[Event | Answer]:
        """The same, of what is prepared."""
        yield report_retrieved(prepared.evidence, prepared.found)
        yield await self.desk.answer(question, prepared)

    async def prepare(self, question: Question) -> Prepared[AnswerIn]:
        """The input of the answering role. Raises UsageError if it does not fit."""
        chunks = await find_chunks(self.desk, question, _PIECE)
        return await asyncio.to_thread(self._lay_out, question, chunks)

    def measure(self, prepared: Prepared[AnswerIn]) -> int:
        """The tokens of the prompt."""
        return self.desk.model.count_input_tokens(ANSWER, prepared.input)

    def _lay_out(self, question: Question, chunks: Sequence[Chunk]) -> Prepared[AnswerIn]:
        passages = {passage.id: passage for chunk in chunks for passage in chunk.passages}
        pieces = [join(list_passages(chunk.passages), passages) for chunk in chunks]
        labelled, model = list(chain.from_iterable(pieces)), self.desk.model

        def make_input(pieces: Sequence[Evidence]) -> AnswerIn:
            given = make_answer_input(question, self.desk.show(pieces), may_decline=not question.force)
            return given.model_copy(update={"text_first": True})

        if self.cut:
            labelled = fit_to_window(labelled, model, ANSWER, make_input)
        elif (needed := model.count_input_tokens(ANSWER, make_input(labelled))) > find_room(model, ANSWER):
            raise UsageError(
                f"full_context shows a text at once, and this does not fit: with the question it has about {needed:,} "
                f"tokens, and {find_name(model, ANSWER)} takes {find_window(model, ANSWER):,}, its reply included; "
                "name fewer documents, or read it part by part (effort=whole)"
            )
        found = list_passages(list(passages.values()))
        shown = {source for piece in labelled for source in piece.sources}
        evidence = [piece for piece in found if piece.id in shown]
        return Prepared(make_input(labelled), evidence, found, labelled, len(found) - len(evidence))


@dataclass(frozen=True, eq=False)
class Whole:
    """Reads at once what fits half of the window, and all else `by_parts`, as does a model that only quotes."""

    at_once: AtOnce
    by_parts: ReadThrough

    @property
    def calls(self) -> CallCount:
        """One, or those of reading part by part."""
        return CallCount(f"1 where half of the window holds the text, else {self.by_parts.calls.formula}")

    def open_memory(self, data: object = None) -> LedgerMemory:
        """That of reading part by part."""
        return self.by_parts.open_memory(data)

    async def run(self, question: Question, memory: LedgerMemory | None = None) -> AsyncIterator[Event | Answer]:
        """The events of one of both, then its answer. A `memory` that is given is of what is read part by part."""
        prepared = await self._prepare(question)
        parts = self.at_once.show(question, prepared) if prepared else self.by_parts.run(question, memory)
        async for output in parts:
            yield output

    async def measure(self, question: Question, most: float = inf) -> Cost | None:
        """What it takes to read all in scope: one call, or at most those part by part. Calls no model.

        None if the prompts have more than `most` tokens. Raises UsageError if a window is too small to read by parts.
        """
        if prepared := await self._prepare(question, most):
            return Cost(calls=1, input_tokens=await asyncio.to_thread(self.at_once.measure, prepared))
        if most <= self._room or await asyncio.to_thread(self._is_longer, question, most):
            return None
        cost = await self.by_parts.measure(question)
        return cost if cost.input_tokens <= most else None

    @property
    def _room(self) -> int:
        model = self.at_once.desk.model
        return min(find_window(model, ANSWER) // 2, find_room(model, ANSWER))

    def _is_longer(self, question: Question, most: float) -> bool:
        """Whether the text plainly has more tokens: more passages, or more characters than four a token."""
        store, within = self.at_once.desk.store, question.within
        keys = store.keys_within(within)
        if (store.count_passages() if keys is None else len(keys)) > most:
            return True
        of_entities = within is not None and (within.entities is not None or within.without_entities)
        return not of_entities and sum(each.characters for each in store.documents(within)) > 4 * most

    async def _prepare(self, question: Question, most: float = inf) -> Prepared[AnswerIn] | None:
        """What is shown at once; None if that has more tokens than it may have."""
        most = min(most, self._room)
        if only_quotes(self.at_once.desk.model) or await asyncio.to_thread(self._is_longer, question, most):
            return None
        try:
            prepared = await self.at_once.prepare(question)
        except UsageError:
            return None
        return prepared if await asyncio.to_thread(self.at_once.measure, prepared) <= most else None
