"""Spend what the question needs: one shot first, a longer loop where that does not suffice.

Ours. No call decides which loop is run: what decides is the question (`whole_form`), what the answer says of itself
(declined, or supported only partly), the memory that is built, and the limit on reading a whole text.

- A question that needs the whole text goes to the way that reads it, if its estimate for this question is within the
  limit; else to the thorough way.
- Any other is asked once, of the first quick way whose memory is built (up to date, if the question says so), and may
  be declined. A full answer is the answer, and so are quotations without a model, since what goes on would only quote
  as well. Otherwise the thorough way goes on; if that one declines, a first answer that was supported only partly is
  the answer.

Each choice is an event `chosen`: what, why, what was passed over and why, and which systems a build would make ready.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from tomewise.calls import CallCount, read_calls, write_number
from tomewise.errors import BudgetExceeded, ModelError, ModelUnavailable, UsageError
from tomewise.events import make_event
from tomewise.loops.answer_parts import show_only_full
from tomewise.loops.desk import decline
from tomewise.types import Answer, Event, Lagging, Loop, Question


@runtime_checkable
class Estimates(Protocol):
    """A loop that can say how many calls a question takes at most. Optional."""

    async def estimate_calls(self, question: Question) -> int:
        """The most calls. Calls no model. Raises UsageError for a question that it could not be asked."""


class Lag(Protocol):
    """Knows how far the memory layers of a way lag behind the documents."""

    def find_lag(self, *, current: bool) -> Mapping[str, int]:
        """The layers without which it cannot answer, with how much each has yet to take in."""

    async def describe(self, question: Question) -> Lagging | None:
        """How far those that it has lag for this question; None if they do not."""


@dataclass(frozen=True, slots=True)
class Way:
    """A way of answering. Without a `lag` it needs no memory layers."""

    name: str
    loop: Loop
    lag: Lag | None = None

    @property
    def most(self) -> float | None:
        """The most calls that it states, None if it states no upper limit."""
        return read_calls(self.loop).most


def report_choice(
    chosen: str, reason: str, passed_over: Mapping[str, str] | None = None, builds: Sequence[str] = ()
) -> Event:
    """What was chosen, and why; what was passed over, and why; and which systems a build would make ready."""
    return make_event(
        "chosen", chosen=chosen, because=reason, passed_over=passed_over or {}, build_would_help=list(builds)
    )


@dataclass(frozen=True, eq=False)
class Escalate:
    """Answers with the first of `quick` that is built, and with `thorough` or `whole` where the question needs it.

    The last quick way and the other two need no memory layers. `find_whole` says why a question needs the whole text,
    empty if it does not; to read it may take `reading` calls, by the estimate of the way, 0 for no limit.
    """

    quick: Sequence[Way]
    thorough: Way
    whole: Way
    find_whole: Callable[[str], str]
    reading: int = 0

    @property
    def calls(self) -> CallCount:
        """Those of a quick way and of the thorough one, or those of reading the whole text."""
        first = read_calls(self.quick[-1].loop)
        limits = [way.most for way in (*self.quick, self.thorough)]
        stated = [most for most in limits if most is not None]
        most = None
        if len(stated) == len(limits) and self.reading:
            most = max(max(stated[:-1]) + stated[-1], self.reading)
        limit = "" if most is None else f", at most {write_number(most)}"
        return CallCount(f"{first.formula}, then those of the system that is chosen{limit}", most)

    async def run(self, question: Question) -> AsyncIterator[Event | Answer]:
        """`chosen` for each way, with the events of that way; `stopped` after a quick one; then the answer."""
        reason = await asyncio.to_thread(self.find_whole, question.text)
        if not reason:
            async for item in self._try_quick(question):
                yield item
            return
        excess = await self._find_excess(question)
        passed_over = {self.whole.name: excess} if excess else {}
        reason = f"the question needs the whole text ({reason})"
        yield report_choice("none" if excess else self.whole.name, reason, passed_over)
        if excess:
            yield report_choice(self.thorough.name, "the whole text is not read, so what is found in it answers")
        async for item in _run_way(self.thorough if excess else self.whole, question):
            yield item

    async def _try_quick(self, question: Question) -> AsyncIterator[Event | Answer]:
        """Answer with a quick way, and go on with the thorough one if that answer does not suffice.

        A question that asks for a guess gets it from the thorough way alone.
        """
        way, lags = await asyncio.to_thread(self._find_quick, current=question.current)
        yield report_choice(way.name, "one shot comes first", lags, list(lags))
        first_answer = decline()
        try:
            async for item in _run_first(way, replace(question, force=False)):
                if isinstance(item, Answer):
                    first_answer = item
                else:
                    yield item
        except (ModelUnavailable, BudgetExceeded):
            raise
        except ModelError as error:
            first_answer = decline(str(error))
        reason = _describe_support(first_answer)
        yield make_event("stopped", reason=f"{way.name}: {reason}")
        if _suffices(first_answer, question):
            yield first_answer
            return
        yield report_choice(self.thorough.name, reason)
        async for item in _run_way(self.thorough, question):
            is_worse = isinstance(item, Answer) and first_answer.resolved and not item.resolved
            yield first_answer if is_worse else item

    def _find_quick(self, *, current: bool) -> tuple[Way, dict[str, str]]:
        """The first quick way that is ready, and what those before it need."""
        lags: dict[str, str] = {}
        for way in self.quick:
            if not (lag := way.lag.find_lag(current=current) if way.lag else {}):
                break
            lags[way.name] = f"needs {', '.join(lag)}"
        return way, lags

    async def _find_excess(self, question: Question) -> str:
        """Why the whole text cannot be read for this question; empty if it can."""
        calls, loop = self.whole.most, self.whole.loop
        try:
            if isinstance(loop, Estimates):
                calls = await loop.estimate_calls(question)
        except UsageError as error:
            return str(error)
        if not self.reading or (calls is not None and calls <= self.reading):
            return ""
        needed = "does not say how many calls it takes" if calls is None else f"would take {write_number(calls)} calls"
        return f"{needed}, {self.reading} are allowed for reading the whole text"


async def _run_way(way: Way, question: Question) -> AsyncIterator[Event | Answer]:
    lagging = await way.lag.describe(question) if way.lag else None
    async for item in way.loop.run(question):
        yield replace(item, lagging=item.lagging or lagging) if isinstance(item, Answer) else item


async def _run_first(way: Way, question: Question) -> AsyncIterator[Event | Answer]:
    """As `_run_way`, but no part is shown of an answer after which another way goes on."""
    items = _run_way(way, question)
    while True:
        # Only around one step: a generator shares its context variables with whoever reads it.
        with show_only_full():
            try:
                item = await anext(items)
            except StopAsyncIteration:
                return
        yield item


def _suffices(answer: Answer, question: Question) -> bool:
    """Whether a first answer is the answer: settled, or quoted by one that only quotes, unless a guess is wanted."""
    if answer.only_quotes and answer.statements:
        return answer.resolved or not question.force
    return answer.is_settled


def _describe_support(answer: Answer) -> str:
    """How far the evidence supports a first answer."""
    if answer.only_quotes and answer.statements:
        return "no model is set, and sentences are quoted"
    if not answer.resolved:
        return f"declined; missing: {answer.missing}" if answer.missing else "declined"
    lack = f"; missing: {answer.missing}" if answer.missing else ""
    if answer.claimed == "partly":
        return f"the evidence holds the answer partly{lack}"
    degree = "not supported" if answer.support == "none" else answer.support
    return f"answered, and its weakest statement is {degree}"
