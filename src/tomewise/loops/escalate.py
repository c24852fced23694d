"""Spend what the question needs: one shot first, a longer loop where that does not suffice.

Ours. No call decides which loop is run: what decides is the question (`whole_form`), what the answer says of itself
(declined, or supported only partly), the memory that is built, and the limits on calls.

- A question that needs the whole text goes to the first way of `whole` that is ready and whose estimate for this
  question is within the limit on reading; else to the first way of `deeper` that is ready.
- Any other is asked once, and may be declined. A full answer is the answer, and so are quotations without a model,
  since what goes on would only quote as well. Otherwise the first way of `deeper` that is
  ready goes on; if that one declines, a first answer that was supported only partly is the answer.
- A way is ready if it is known, its memory layers are built (up to date, if the question says so), and it states that
  its calls fit into the budget.

Each choice is an event `chosen`: what, why, what was passed over and why, and which systems a build would make ready.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

from tomewise.calls import CallCount, read_calls, write_number
from tomewise.errors import UsageError
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
    """A way of answering. Without a `loop` its name is not known, without a `lag` it needs no memory layers."""

    name: str
    loop: Loop | None
    lag: Lag | None = None

    @property
    def most(self) -> float | None:
        """The most calls that it states, None if it states no upper limit."""
        return read_calls(self.loop).most


@dataclass(slots=True)
class _Choice:
    """The way that is chosen, if one is ready. `passed_over` are names with reasons, `builds` names."""

    way: Way | None = None
    passed_over: dict[str, str] = field(default_factory=dict)
    builds: list[str] = field(default_factory=list)

    def report(self, reason: str) -> Event:
        """What was chosen, and why."""
        return make_event(
            "chosen",
            chosen=self.way.name if self.way else "none",
            because=reason,
            passed_over=self.passed_over,
            build_would_help=self.builds,
        )


@dataclass(frozen=True, eq=False)
class Escalate:
    """Answers with `first`, and with one of `deeper` or `whole` where the question needs it.

    `find_whole` says why a question needs the whole text, empty if it does not. At most `reading` calls to read a whole
    text, by the estimate of a way, and `budget` calls in all, by the upper limits that ways state; 0 for no limit.
    """

    first: Way
    deeper: Sequence[Way]
    whole: Sequence[Way]
    find_whole: Callable[[str], str]
    reading: int = 0
    budget: int = 0

    def __post_init__(self) -> None:
        most = self.first.most
        if most is not None and 0 < self.budget < most:
            raise UsageError(f"budget {self.budget}: {self.first.name} alone may take {write_number(most)} calls")

    @property
    def _most_read(self) -> int:
        """The calls that reading a whole text may take; 0 for no limit."""
        return min(filter(None, (self.reading, self.budget)), default=0)

    @property
    def calls(self) -> CallCount:
        """Those of the first way and of a deeper one, or those of reading the whole text."""
        first = read_calls(self.first.loop)
        limits = [way.most for way in self.deeper if way.loop is not None]
        reads = any(way.loop is not None for way in self.whole)
        stated = [most for most in limits if most is not None]
        most = None
        if first.most is not None and len(stated) == len(limits) and (self._most_read or not reads):
            most = max(first.most + max(stated, default=0), self._most_read if reads else 0)
        if self.budget:
            most = min(most or self.budget, self.budget)
        limit = "" if most is None else f", at most {write_number(most)}"
        return CallCount(f"{first.formula}, then those of the system that is chosen{limit}", most)

    async def run(self, question: Question) -> AsyncIterator[Event | Answer]:
        """`chosen` for each way, with the events of that way; `stopped` after the first one; then the answer."""
        reason = await asyncio.to_thread(self.find_whole, question.text)
        if reason:
            choice = await self._choose_whole(question)
            yield choice.report(f"the question needs the whole text ({reason})")
            if choice.way is None:
                choice = await self._choose(self.deeper, 0, question)
                yield choice.report("the whole text is not read, so the best memory that is built answers")
            if choice.way is not None:
                async for item in _run_way(choice.way, question):
                    yield item
                return
        async for item in self._try_first(question):
            yield item

    async def _try_first(self, question: Question) -> AsyncIterator[Event | Answer]:
        """Answer with the first way, and go on with a deeper one if that answer does not suffice."""
        # A question that asks for a guess gets it from the last way alone, so that must be known now.
        choice = await self._choose(self.deeper, self.first.most, question) if question.force else None
        is_last = choice is not None and choice.way is None
        yield _Choice(self.first).report("one shot comes first")
        first_answer = decline()
        items = _run_way(self.first, question) if is_last else _run_first(self.first, replace(question, force=False))
        async for item in items:
            if isinstance(item, Answer):
                first_answer = item
            else:
                yield item
        reason = _describe_support(first_answer)
        yield make_event("stopped", reason=f"{self.first.name}: {reason}")
        if not _suffices(first_answer, question):
            choice = choice or await self._choose(self.deeper, self.first.most, question)
            yield choice.report(reason)
            if choice.way is not None:
                async for item in _run_way(choice.way, question):
                    is_worse = isinstance(item, Answer) and first_answer.resolved and not item.resolved
                    yield first_answer if is_worse else item
                return
        yield first_answer

    async def _choose(self, ways: Sequence[Way], spent: float | None, question: Question) -> _Choice:
        """The first way that is ready after so many calls."""
        choice = _Choice()
        for way in ways:
            lag = await asyncio.to_thread(way.lag.find_lag, current=question.current) if way.lag else {}
            reason = self._find_obstacle(way, spent)
            if reason:
                choice.passed_over[way.name] = reason
            elif lag:
                choice.passed_over[way.name] = f"needs {', '.join(lag)}"
                choice.builds.append(way.name)
            else:
                choice.way = way
                break
        return choice

    async def _choose_whole(self, question: Question) -> _Choice:
        """The first way that is ready, and that reads the whole text within the limit."""
        choice = _Choice()
        for way in self.whole:
            ready = await self._choose([way], None, question)
            choice.passed_over |= ready.passed_over
            choice.builds += ready.builds
            if ready.way is not None:
                if not (reason := await self._find_excess(way, question)):
                    choice.way = way
                    break
                choice.passed_over[way.name] = reason
        return choice

    async def _find_excess(self, way: Way, question: Question) -> str:
        """Why a way cannot read the whole text for this question; empty if it can."""
        calls = way.most
        loop: object = way.loop
        try:
            if isinstance(loop, Estimates):
                calls = await loop.estimate_calls(question)
        except UsageError as error:
            return str(error)
        if not self._most_read or (calls is not None and calls <= self._most_read):
            return ""
        needed = "does not say how many calls it takes" if calls is None else f"would take {write_number(calls)} calls"
        return f"{needed}, {self._most_read} are allowed for reading the whole text"

    def _find_obstacle(self, way: Way, spent: float | None) -> str:
        """Why a way cannot be taken whatever is built; empty if it can."""
        if way.loop is None:
            return "not a system here"
        if not self.budget or spent is None:
            return ""
        if way.most is None:
            return "states no upper limit of its calls"
        left = self.budget - spent
        return f"may take {write_number(way.most)} calls, {write_number(left)} are left" if way.most > left else ""


async def _run_way(way: Way, question: Question) -> AsyncIterator[Event | Answer]:
    if way.loop is None:
        raise UsageError(f"{way.name!r} is not a system here: name one that is")
    lagging = await way.lag.describe(question) if way.lag else None
    async for item in way.loop.run(question):
        yield replace(item, lagging=lagging) if isinstance(item, Answer) else item


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
    """Whether a first answer is the answer: it is supported in full, or quoted, unless a guess is still asked for."""
    if answer.only_quotes and answer.statements:
        return answer.resolved or not question.force
    return answer.resolved and answer.claimed == "full"


def _describe_support(answer: Answer) -> str:
    """How far the evidence supports a first answer."""
    if answer.only_quotes and answer.statements:
        return "no model is set, and sentences are quoted"
    if not answer.resolved:
        return f"declined; missing: {answer.missing}" if answer.missing else "declined"
    if answer.claimed == "full":
        return "answered, and the evidence holds all of it"
    degree = "partly" if answer.claimed == "partly" else "not at all"
    lack = f"; missing: {answer.missing}" if answer.missing else ""
    return f"the evidence holds the answer {degree}{lack}"
