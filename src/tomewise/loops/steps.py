"""What loops share while they work on one question.

Their state, replies that they skipped, steps, evidence that they collect, and the ranking of what they found.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from tomewise.errors import BudgetExceeded, ModelError, ModelUnavailable
from tomewise.events import make_event
from tomewise.loops.desk import Attempt, Desk
from tomewise.loops.last_prompt import Context, Searched, weigh_queries
from tomewise.recall.ranking import drop_repeats, take_turns
from tomewise.run import PART_SKIPPED, REPLY_SKIPPED, record_fallback
from tomewise.types import Event, Evidence, In, Out, Question, Retriever, Role

T = TypeVar("T")
_NOTHING = Searched(())


class Skipped:
    """Collects the errors of calls whose reply a loop can do without, and the parts of replies that it cannot use."""

    def __init__(self) -> None:
        self.last: ModelError | None = None
        self._unreported: list[str] = []

    async def try_call(self, call: Awaitable[T], default: T) -> T:
        """The result of a call of a model; if its reply cannot be used, the error is recorded, and `default` returned.

        Raises ModelUnavailable and BudgetExceeded, since the next call would fail in the same way.
        """
        try:
            return await call
        except (ModelUnavailable, BudgetExceeded):
            raise
        except ModelError as error:
            self.last = error
            record_fallback(REPLY_SKIPPED)
            self._unreported.append(str(error))
            return default

    def drop(self, reason: str) -> None:
        """Record that a part of a reply was not used."""
        record_fallback(PART_SKIPPED)
        self._unreported.append(reason)

    def events(self, step: int) -> Iterator[Event]:
        """An event for each that was not reported yet. They count as reported then."""
        while self._unreported:
            yield make_event("skipped", step, reason=self._unreported.pop(0))


@dataclass(slots=True, kw_only=True)
class LoopState:
    """The state of a loop for one question. `end` says why the loop ends, and is empty while it goes on."""

    question: Question
    """What is asked."""
    step: int = 0
    """The number of the step that runs, from 1; 0 before the first."""
    end: str = ""
    skipped: Skipped = field(default_factory=Skipped)
    """Replies that could not be used."""

    async def ask(self, desk: Desk, role: Role[In, Out], given: In) -> Out | None:
        """The reply of a role; None if it cannot be used."""
        return await self.skipped.try_call(desk.model.ask(role, given), None)

    def report_skipped(self) -> Iterator[Event]:
        """An event for each reply, or part of one, that was skipped and not reported yet."""
        return self.skipped.events(self.step)


async def take_steps(
    state: LoopState, take_step: Callable[[], AsyncIterator[Event]], *, most: int, name: str
) -> AsyncIterator[Event]:
    """The events of up to `most` steps, then `stopped` with the reason. `name` is what the reason calls a step.

    What a step skipped is reported before its next event.
    """
    while not state.end:
        if state.step == most:
            state.end = f"no {name} is left (allowed: {most})"
            break
        state.step += 1
        async for event in take_step():
            for skipped in state.report_skipped():
                yield skipped
            yield event
        for skipped in state.report_skipped():
            yield skipped
    yield make_event("stopped", state.step, reason=state.end)


@dataclass(slots=True, eq=False)
class Collection:
    """What searches found: pieces of evidence, each once. Each search adds `limit`; `most` bounds them, None does not.

    `lists` is all that each search found, best first: `depth` pieces where it is more than the limit.
    """

    recall: Retriever
    limit: int
    most: int | None = None
    depth: int = 0
    lists: list[list[Evidence]] = field(default_factory=list)
    searches: list[list[Evidence]] = field(default_factory=list)  # what each search found first

    @property
    def pieces(self) -> list[Evidence]:
        """The best of each search, the latest search first; then the second best of each, and so on.

        So what the last search found is shown even where few pieces fit.
        """
        return list(take_turns(self.searches[::-1]))

    @property
    def is_full(self) -> bool:
        return len(self.pieces) == self.most

    async def search(self, query: str, state: LoopState) -> Event:
        """Add what a search finds until the collection is full. Returns the event, which holds what is new."""
        found = await self.recall.retrieve(query, max(self.limit, self.depth), within=state.question.within)
        self.lists.append(found)
        known = {piece.id for piece in self.pieces}
        new = [piece for piece in drop_repeats(found[: self.limit]) if piece.id not in known]
        self.searches.append(new if self.most is None else new[: self.most - len(known)])
        return make_event("searched", state.step, query=query, evidence=self.searches[-1], collected=len(self.pieces))


async def rank_found(
    desk: Desk,
    question: Question,
    found: Sequence[Evidence],
    queries: Sequence[Sequence[Evidence]] = (),
    grounds: Searched = _NOTHING,
) -> list[Evidence]:
    """One ranking of all that a loop found, which the desk may join with what it finds for the question itself.

    `found` is what a search with the question found, `queries` what one with each query of the loop found, and
    `grounds` what the notes of the loop rest on, the best first: so these can be cited.
    """
    own = [replace(grounds, found=drop_repeats(grounds.found)), Searched(found)]
    searches = [*own, *await desk.search_beside(question), *weigh_queries(queries)]
    return await desk.rank(searches, question.within)


def make_attempt_event(name: str, step: int, context: Context, attempt: Attempt, **more: Any) -> Event:
    """What an attempt to answer was shown, and what came of it; `more` are further fields of the event of this name."""
    return make_event(
        name,
        step,
        answer=attempt.reply.answer,
        choice=attempt.reply.choice,
        failed=not attempt.answer.resolved,
        missing=attempt.reply.missing,
        shown=[piece.id for piece in context.evidence],
        cut=context.cut,
        notes=context.notes,
        **{"kept": "", **more},
    )
