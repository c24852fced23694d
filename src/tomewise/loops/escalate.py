"""Spend what the question needs: the text at once where it is short, else one search, then what that leaves open.

Ours. No call decides which loop is run. The reply to the first answering call does: how far the evidence supports its
answer, and what the question asks about (`Answer.reach`), in whatever language. So do the length of the text and the
memory that is built.

- A short text is read at once: that costs no more than a loop would.
- Any other is searched once, by the first quick way whose memory is built (up to date, if the question says so).
- How often a word or a name stands is counted by code, in all of the text. A list, or the number of some things, is
  collected from every passage, and counted by code. Neither is done for a question with options or instructions, nor
  is anything collected for another form than a list.
- What else asks for the whole text has it read, if that is within the budget and not very long; else the first answer
  stands if the evidence supports it, and says how little was read.
- Where a question for all names what few documents hold, such as "Project Heron", these alone are read, and the answer
  says so.
- A first answer that is supported in full is the answer, and so are quotations without a model, since what goes on
  would only quote as well. Otherwise the text is read at once where it fits and is no longer than what a loop sends, or
  the thorough way goes on. If that declines, or has no usable reply, a first answer that was supported only partly is
  the answer. So it is where the budget ends on the way.

Each choice is an event `chosen`: what, why, what was passed over and why, and which systems a build would make ready.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

from tomewise.calls import CallCount, read_calls
from tomewise.errors import BudgetExceeded, ModelError, ModelUnavailable, UsageError, count_noun
from tomewise.events import make_event
from tomewise.language.budget import list_budgets
from tomewise.loops.answer_parts import hold_back
from tomewise.loops.desk import decline
from tomewise.run import REPLY_SKIPPED, change_run, current_run, record_fallback
from tomewise.types import Answer, Cost, Event, Lagging, LanguageModel, Loop, Question, Scope, Unread

# The answer that code computes to a question, by what it counts or lists; None where it cannot.
Compute: TypeAlias = Callable[[Question, str], Awaitable[Answer | None]]
# The documents that alone hold what a question names, and these names; None where it names nothing so.
Narrow: TypeAlias = Callable[[Question], Awaitable[tuple[Scope, tuple[str, ...]] | None]]
_TOKENS, _MINUTES = 1_000_000, 10.0  # that reading all may take where nobody asked for it, and no budget says more
_READS_ALL = "`--effort whole` does"
_UNSURE = ("none", "partly")  # claims after which another way goes on
_FOR_ALL = ("whole", "list", "count")  # and so it does after these


class Lag(Protocol):
    """Knows how far the memory layers of a way lag behind the documents."""

    def find_lag(self, *, current: bool) -> Mapping[str, int]:
        """The layers without which it cannot answer, with how much each has yet to take in."""

    async def describe(self, question: Question) -> Lagging | None:
        """How far those that it has lag for this question; None if they do not."""


class ReadsAll(Loop, Protocol):
    """A loop that reads all of a text."""

    async def measure(self, question: Question, most: float) -> Cost | None:
        """What that takes; None if it is more than `most` tokens. Raises UsageError if the text cannot be read."""


@dataclass(frozen=True, slots=True)
class Way:
    """A way of answering. Without a `lag` it needs no memory layers."""

    name: str
    loop: Loop
    lag: Lag | None = None


def report_choice(
    chosen: str, reason: str, passed_over: Mapping[str, str] | None = None, builds: Sequence[str] = ()
) -> Event:
    """What was chosen, and why; what was passed over, and why; and which systems a build would make ready."""
    return make_event(
        "chosen", chosen=chosen, because=reason, passed_over=passed_over or {}, build_would_help=list(builds)
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class Escalate:
    """Answers with the first of `quick` that is built, and with `thorough` or `whole` where the question needs it.

    The last quick way and the thorough one need no memory layers. A text whose prompt has at most `short` tokens is
    read at once first, and one of `fair` tokens where the first answer does not suffice. `price` completes what a
    reading takes with its seconds and dollars; the budgets of the `model` must leave that. `count` and `collect`
    compute answers, if they can, and `narrow` finds what a question names.
    """

    quick: Sequence[Way]
    thorough: Way
    whole: ReadsAll
    short: int
    fair: int
    model: LanguageModel
    price: Callable[[Cost], Cost]
    count: Compute | None = None
    collect: Compute | None = None
    narrow: Narrow | None = None

    @property
    def calls(self) -> CallCount:
        """The first call, and those of what goes on."""
        return CallCount(f"{read_calls(self.quick[-1].loop).formula}, then those of the system that is chosen")

    async def run(self, question: Question) -> AsyncIterator[Event | Answer]:
        """`chosen` for each way, with the events of that way; `stopped` after the first one; then the answer."""
        hidden: tuple[str, ...] = (*_UNSURE, *_FOR_ALL)
        if size := await self.find_size(question, self.short):
            way, asked, hidden = Way("whole", self.whole), question, _FOR_ALL[-1:]
            yield report_choice(way.name, f"the text is short, and is read at once ({size.input_tokens:,} tokens)")
        else:
            way, lags = await asyncio.to_thread(self._find_quick, current=question.current)
            asked = replace(question, force=False)  # a guess comes last
            yield report_choice(way.name, "one shot comes first", lags, list(lags))
        first, failed, shown = decline(), False, list[Event]()
        try:
            async for item in _run_hiding(way, asked, hidden, shown):
                if isinstance(item, Answer):
                    first = item
                else:
                    yield item
        except (ModelUnavailable, BudgetExceeded):
            raise
        except ModelError as error:
            first, failed = decline(str(error)), True
        reason = _describe(first)
        yield make_event("stopped", reason=f"{way.name}: {reason}")
        is_read = size is not None and not failed and not first.coverage.dropped
        try:
            async for item in self._go_on(question, first, reason, is_read=is_read, fair=0 if size else self.fair):
                if shown and item is not first and (show := current_run().on_part):
                    show(make_event("answer_part", text="", replace=True))  # what follows begins anew
                    shown.clear()
                yield item
        except ModelUnavailable:
            raise
        except ModelError as error:
            if not first.resolved:
                raise
            if show := current_run().on_part:
                show(make_event("answer_part", text="", replace=True))  # the final answer is the first one
            yield make_event("stopped", reason=str(error))
            if isinstance(error, BudgetExceeded):
                rest = Unread(what="what would be read next", count=0, mend=str(error))
                first = replace(first, coverage=replace(first.coverage, unread=(*first.coverage.unread, rest)))
            else:
                record_fallback(REPLY_SKIPPED)
            yield first

    async def _go_on(
        self, question: Question, first: Answer, reason: str, *, is_read: bool, fair: int
    ) -> AsyncIterator[Event | Answer]:
        """The first answer, or what follows it. After one for which all `is_read` only a count does."""
        may_compute = bool(first.item) and not (question.options or question.instructions)
        if may_compute and first.reach == "count" and self.count:
            yield report_choice("find", f"the question counts a word: {first.item}")
            if answer := await self.count(question, first.item):
                yield answer
                return
        passed_over, asked, names, price = {}, question, tuple[str, ...](), ""
        if first.asks_for_all and not is_read:
            if self.narrow and first.reach != "count" and (named := await self.narrow(question)):
                asked, names = replace(question, within=named[0]), named[1]
            excess, price = await self._price_reading(asked)
            if excess:
                passed_over["whole"] = excess
            elif may_compute and first.reach == "list" and question.form in (None, "list") and self.collect:
                yield report_choice("collect", f"the question lists or counts things: {first.item}; {price}")
                if answer := await self.collect(asked, first.item):
                    yield replace(answer, within=asked.within, named=names)
                    return
        reads_all = first.asks_for_all and not passed_over
        if is_read or (_suffices(first, question) and not reads_all):
            if passed_over:
                yield report_choice("none", "the first answer stands", passed_over)
            yield first
            return
        if reads_all:
            reason = f"{reason}; {price}"
        elif size := await self.find_size(question, fair):
            reads_all, reason = True, f"{reason}; the text is read at once ({size.input_tokens:,} tokens)"
        way = Way("whole", self.whole) if reads_all else self.thorough
        yield report_choice(way.name, reason, passed_over)
        async for item in _run_way(way, asked if reads_all else question):
            if isinstance(item, Answer):
                if first.resolved and not item.resolved:
                    item = first
                elif first.asks_for_all:
                    item = replace(item, reach=first.reach, item=first.item)
                    item = replace(item, within=asked.within, named=names) if reads_all else item
            yield item

    def _find_quick(self, *, current: bool) -> tuple[Way, dict[str, str]]:
        """The first quick way that is ready, and what those before it need."""
        lags: dict[str, str] = {}
        for way in self.quick:
            if not (lag := way.lag.find_lag(current=current) if way.lag else {}):
                break
            lags[way.name] = f"needs {', '.join(lag)}"
        return way, lags

    async def find_size(self, question: Question, most: int) -> Cost | None:
        """What it takes to read the text at once; None if that is not possible with so many tokens, or in a budget."""
        try:
            size = await self.whole.measure(question, most)
        except UsageError:
            return None
        if not size or size.calls > 1:
            return None
        priced = self.price(size)
        return size if all(each.leaves(priced) for each in list_budgets(self.model)) else None

    async def _price_reading(self, question: Question) -> tuple[str, str]:
        """Why the whole text is not read for this question, empty if it may be; and what that takes, in words."""
        budgets = list(list_budgets(self.model))
        tokens = min((each.limit.tokens for each in budgets if each.limit.tokens is not None), default=_TOKENS)
        minutes = min((each.limit.minutes for each in budgets if each.limit.minutes is not None), default=_MINUTES)
        try:
            cost = await self.whole.measure(question, tokens)
        except UsageError as error:
            return str(error), ""
        if not cost:
            return f"more than {count_noun(tokens, 'token')} would be read ({_READS_ALL})", ""
        cost = self.price(cost)
        takes = f"{count_noun(cost.calls, 'call')} and {count_noun(cost.tokens, 'token')}"
        if cost.model_seconds:
            takes += f", about {cost.model_seconds / 60:,.1f} minutes"
        if cost.model_seconds > minutes * 60:
            return f"to read it would take {takes} ({_READS_ALL})", ""
        for each in budgets:
            if not each.leaves(cost):
                return f"to read it would take {takes}, more than the limit of {each.limit} leaves", ""
        return "", f"all is read ({'' if cost.calls == 1 else 'at most '}{takes})"


async def _run_way(way: Way, question: Question) -> AsyncIterator[Event | Answer]:
    lagging = await way.lag.describe(question) if way.lag else None
    async for item in way.loop.run(question):
        yield replace(item, lagging=item.lagging or lagging) if isinstance(item, Answer) else item


async def _run_hiding(
    way: Way, question: Question, words: Sequence[str], shown: list[Event]
) -> AsyncIterator[Event | Answer]:
    """As `_run_way`, but no part is shown of an answer whose reply says one of these words of itself.

    What is `shown` all the same is noted.
    """
    items, show = _run_way(way, question), current_run().on_part

    def note(part: Event) -> None:
        shown.append(part)
        if show:
            show(part)

    while True:
        # Only around one step: a generator shares its context variables with whoever reads it.
        with hold_back(*words), change_run(on_part=show and note):
            try:
                item = await anext(items)
            except StopAsyncIteration:
                return
        yield item


def _suffices(answer: Answer, question: Question) -> bool:
    """Whether a first answer is the answer: settled, or quoted by one that only quotes, unless a guess is wanted."""
    if answer.only_quotes:
        return answer.resolved or not question.force
    return answer.is_settled


def _describe(answer: Answer) -> str:
    """What a first answer says of the question, and how far the evidence supports it."""
    if answer.only_quotes:
        return "no model is set, and sentences are quoted"
    lead = f"the question asks for all ({answer.reach}); " if answer.asks_for_all else ""
    if not answer.resolved:
        return lead + (f"declined; missing: {answer.missing}" if answer.missing else "declined")
    lack = f"; missing: {answer.missing}" if answer.missing else ""
    if answer.claimed == "partly":
        return f"{lead}the evidence holds the answer partly{lack}"
    degree = "not supported" if answer.support == "none" else answer.support
    return f"{lead}answered, and its weakest statement is {degree}"
