"""Interleaved reasoning and retrieval: a sentence of thought, a search with it, until the answer (IRCoT, section 3).

Trivedi, Balasubramanian, Khot and Sabharwal, "Interleaving Retrieval with Chain-of-Thought Reasoning for
Knowledge-Intensive Multi-Step Questions", ACL 2023. The constants of the paper: at most 8 sentences, at most 15
paragraphs collected; paragraphs a search are tuned for each data set (2, 4, 6 or 8). The reader answers from all
paragraphs that were collected, in the order of their searches, and not from the thoughts.

Where ours differs:

- The model says whether a thought concludes, as a field of its reply; the wording "the answer is:" counts as well.
- The loop also ends when a thought repeats an earlier one, and when the collection is full: then no search can add to
  it, so the reader would see the same.
- Of paragraphs that exceed the model's window, the worst of the earliest searches are left out.
- A reply that stays unusable after its repair is skipped and reported, and the loop answers from what it has.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from tomewise.calls import CallCount, read_calls, sum_calls
from tomewise.errors import UsageError
from tomewise.events import make_event, report_retrieved
from tomewise.language.roles import THINK, ThinkIn, ThinkOut
from tomewise.loops.desk import Desk
from tomewise.loops.evidence import fold
from tomewise.loops.steps import Collection, LoopState, take_steps
from tomewise.types import Answer, Event, Evidence, Question, Retriever

THOUGHTS = 8  # sentences of reasoning at most
COLLECTED = 15  # paragraphs at most
_ANSWERED = re.compile(r"\bthe answer is\s*:", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class Interleave:
    """Thinks one sentence at a time and searches with it. Each search adds up to `limit` pieces of evidence.

    `thoughts` and `collected` bound the sentences and the pieces of evidence.
    """

    recall: Retriever
    desk: Desk
    limit: int
    thoughts: int = THOUGHTS
    collected: int = COLLECTED

    def __post_init__(self) -> None:
        if not self.collected or not self.limit:
            raise UsageError(
                f"limit {self.limit}, collected {self.collected}: a loop that collects nothing cannot answer"
            )

    @property
    def calls(self) -> CallCount:
        """One a thought, the searches, and the answer."""
        thoughts = CallCount(f"1 a thought, at most {self.thoughts}", self.thoughts)
        searches = read_calls(self.recall).repeat(self.thoughts + 1)
        return sum_calls([*([thoughts] if self.thoughts else []), searches, CallCount("1", 1)])

    async def run(self, question: Question) -> AsyncIterator[Event | Answer]:
        """The first search; for each thought `thought` and `searched`; `stopped`, `retrieved`, then the answer."""
        collection = Collection(self.recall, self.limit, self.collected)
        state = _InterleaveState(question=question, collection=collection)
        yield await self._search(state, question.text)
        async for event in take_steps(state, partial(self._think, state), most=self.thoughts, name="thought"):
            yield event
        prepared = await self.desk.prepare(question, collection.pieces, budget=None, arrange=state.arrange)
        yield report_retrieved(prepared.evidence, prepared.found, state.step)
        yield await self.desk.answer(question, prepared)

    async def _search(self, state: _InterleaveState, query: str) -> Event:
        """Search with a query. The loop ends if no further search can add anything."""
        event = await state.collection.search(query, state)
        if state.collection.is_full:
            state.end = f"the collection is full (allowed: {self.collected})"
        return event

    async def _think(self, state: _InterleaveState) -> AsyncIterator[Event]:
        """The next thought, and a search with it unless it concludes."""
        given = ThinkIn(question=state.question.text, thoughts=state.thoughts)
        pieces = state.collection.pieces
        prepared = await asyncio.to_thread(self.desk.fit, THINK, pieces, given, arrange=state.arrange)
        reply = await state.ask(self.desk, THINK, prepared.input)
        if reply is None:
            state.end = "the reply was not usable"
            return
        yield make_event("thought", state.step, thought=reply.thought, concludes=reply.concludes)
        state.end = _find_end(reply, state.thoughts)
        state.thoughts.append(reply.thought)
        if not state.end:
            yield await self._search(state, reply.thought)


@dataclass(slots=True, kw_only=True)
class _InterleaveState(LoopState):
    """The state of the loop for one question."""

    collection: Collection
    thoughts: list[str] = field(default_factory=list)

    def arrange(self, evidence: Sequence[Evidence]) -> list[Evidence]:
        """Evidence in the order in which it was collected."""
        shown = {piece.id for piece in evidence}
        return [piece for found in self.collection.searches for piece in found if piece.id in shown]


def _find_end(reply: ThinkOut, thoughts: Sequence[str]) -> str:
    """Why this thought is the last one; empty if it is not."""
    if reply.concludes or _ANSWERED.search(reply.thought):
        return "the thought concludes"
    return "the thought repeats an earlier one" if fold(reply.thought) in map(fold, thoughts) else ""
