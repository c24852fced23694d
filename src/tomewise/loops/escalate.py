"""Spend what the question needs: one shot first, a longer loop where that does not suffice.

Ours. No call decides which loop is run: what decides is the form of the question (`find_whole_form`), what the
answer says of itself (declined, or supported only partly), the memory that is built, and the limit on calls.

- A question that asks for the whole text goes to the first way of `whole` that is ready.
- Any other is asked once, and may be declined. A full answer is the answer. Otherwise the first way of `deeper` that is
  ready goes on; if that one declines, a first answer that was supported only partly is the answer.
- A way is ready if it is known, its memory layers are up to date, and it states that its calls fit into the limit.

Each choice is an event `chosen`: what, why, what was passed over and why, and which systems a build would make ready.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace

from tomewise.calls import CallCount, read_calls, write_number
from tomewise.errors import UsageError
from tomewise.events import Chosen, Stopped
from tomewise.loops.answer_parts import show_only_full
from tomewise.types import Answer, Event, Loop, Question

_READ = 4_000  # characters of a question that are read
_WORK = (
    r"(?:book|novel|story|tale|text|document|report|meeting|transcript|conversation|discussion|play|film|case|plot"
    r"|article|paper)s?"
)
_FORMS = tuple(
    re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for pattern in (
        r"\A\W*(?:please\s+|(?:can|could|would)\s+you\s+(?:please\s+)?)?(?:summari[sz]e|recap|outline|retell)\b",
        r"\b(?:give|write|provide|make|prepare)\b[^.?!]{0,40}\b(?:summary|overview|outline|synopsis|recap)\b",
        r"\A\W*(?:a\s+|the\s+)?(?:summary|overview|synopsis)\s+of\b",
        r"\bhow\s+(?:often|frequently|many\s+times)\b",
        r"\b(?:list|name|enumerate|find|count|collect|mention)\s+(?:me\s+)?(?:all|every|each)\b",
        r"\b(?:what|which|who)\s+(?:are|were)\s+all\b",
        rf"\b(?:throughout|over\s+the\s+state\s+of|across|in\s+the\s+(?:whole|entire))\s+(?:of\s+)?(?:the\s+|this\s+)?"
        rf"(?:whole\s+|entire\s+)?{_WORK}\b",
        rf"\b(?:whole|entire)\s+{_WORK}\b",
        r"\b(?:main|central|overall|recurring)\s+(?:themes?|plot|topics?|motifs?)\b",
        rf"\bwhat\s+(?:is|was|are|were)\s+(?:the|this|these)\s+{_WORK}\s+about\b",
    )
)


@dataclass(frozen=True, slots=True)
class Way:
    """A way of answering. Without a `loop` its name is not known.

    `find_lag` names the memory layers that it needs and that are not up to date.
    """

    name: str
    loop: Loop | None
    find_lag: Callable[[], Sequence[str]] = tuple

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

    def make_event(self, reason: str) -> Chosen:
        """What was chosen, and why."""
        return Chosen(
            chosen=self.way.name if self.way else "none",
            because=reason,
            passed_over=self.passed_over,
            build_would_help=self.builds,
        )


class Escalate:
    """Answers with `first`, and with one of `deeper` or `whole` where the question needs it.

    At most `budget` calls by the upper limits that the ways state; 0 for no limit.
    """

    def __init__(self, first: Way, deeper: Sequence[Way], whole: Sequence[Way], *, budget: int = 0) -> None:
        if budget and first.most is not None and budget < first.most:
            raise UsageError(f"budget {budget}: {first.name} alone may take {write_number(first.most)} calls")
        self._first = first
        self._deeper = tuple(deeper)
        self._whole = tuple(whole)
        self._budget = budget

    @property
    def calls(self) -> CallCount:
        """Those of the first way, then those of one other."""
        first = read_calls(self._first.loop)
        limits = [way.most for way in (*self._deeper, *self._whole) if way.loop is not None]
        stated = [most for most in limits if most is not None]
        most = None
        if first.most is not None and len(stated) == len(limits):
            most = first.most + max(stated, default=0)
        if self._budget:
            most = min(most or self._budget, self._budget)
        limit = "" if most is None else f", at most {write_number(most)}"
        return CallCount(f"{first.formula}, then those of the system that is chosen{limit}", most)

    async def run(self, question: Question) -> AsyncIterator[Event | Answer]:
        """`chosen` for each way, with the events of that way; `stopped` after the first one; then the answer."""
        form = find_whole_form(question.text)
        if form:
            choice = await self._choose(self._whole, 0)
            yield choice.make_event(f"the question asks for the whole text ({form!r})")
            if choice.way is not None:
                async for item in _run_way(choice.way, question):
                    yield item
                return
        async for item in self._try_first(question):
            yield item

    async def _try_first(self, question: Question) -> AsyncIterator[Event | Answer]:
        """Answer with the first way, and go on with a deeper one if that answer does not suffice."""
        # A question that asks for a guess gets it from the last way alone, so that must be known now.
        choice = await self._choose(self._deeper, self._first.most) if question.force else None
        is_last = choice is not None and choice.way is None
        yield _Choice(self._first).make_event("one shot comes first")
        first_answer = Answer(text="", resolved=False, supported="none")
        items = _run_way(self._first, question) if is_last else _run_first(self._first, replace(question, force=False))
        async for item in items:
            if isinstance(item, Answer):
                first_answer = item
            else:
                yield item
        reason = _describe_support(first_answer)
        yield Stopped(reason=f"{self._first.name}: {reason}")
        if not first_answer.resolved or first_answer.supported != "full":
            choice = choice or await self._choose(self._deeper, self._first.most)
            yield choice.make_event(reason)
            if choice.way is not None:
                async for item in _run_way(choice.way, question):
                    is_worse = isinstance(item, Answer) and first_answer.resolved and not item.resolved
                    yield first_answer if is_worse else item
                return
        yield first_answer

    async def _choose(self, ways: Sequence[Way], spent: float | None) -> _Choice:
        """The first way that is ready after so many calls."""
        choice = _Choice()
        for way in ways:
            lag = await asyncio.to_thread(way.find_lag)
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

    def _find_obstacle(self, way: Way, spent: float | None) -> str:
        """Why a way cannot be taken whatever is built; empty if it can."""
        if way.loop is None:
            return "not a system here"
        if not self._budget:
            return ""
        if way.most is None or spent is None:
            return "states no upper limit of its calls"
        left = self._budget - spent
        return f"may take {write_number(way.most)} calls, {write_number(left)} are left" if way.most > left else ""


def find_whole_form(question: str) -> str:
    """The words by which a question asks for the whole text ("how often", "list all"); empty if it does not.

    Only English forms are known. No model is asked.
    """
    found = [match[0] for form in _FORMS if (match := form.search(question[:_READ]))]
    return " ".join(found[0].split()) if found else ""


def _run_way(way: Way, question: Question) -> AsyncIterator[Event | Answer]:
    if way.loop is None:
        raise UsageError(f"{way.name!r} is not a system here: name one that is")
    return way.loop.run(question)


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


def _describe_support(answer: Answer) -> str:
    """How far the evidence supports a first answer."""
    if not answer.resolved:
        return f"declined; missing: {answer.missing}" if answer.missing else "declined"
    if answer.supported == "full":
        return "answered, and the evidence holds all of it"
    degree = "partly" if answer.supported == "partly" else "not at all"
    lack = f"; missing: {answer.missing}" if answer.missing else ""
    return f"the evidence holds the answer {degree}{lack}"
