"""What the loops share while they work on one question: how far it has come, what was skipped, and its steps."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from tomewise.errors import BudgetExceeded, ModelError, ModelUnavailable
from tomewise.events import ReplySkipped, Stopped
from tomewise.fallbacks import PART_SKIPPED, REPLY_SKIPPED, record_fallback
from tomewise.types import Event, Question

T = TypeVar("T")


class Skipped:
    """Collects errors of calls whose reply the loop can do without, and what is wrong with parts of replies."""

    def __init__(self) -> None:
        self.last: ModelError | None = None
        self._unreported: list[str] = []

    async def usable(self, asked: Awaitable[T], otherwise: T) -> T:
        """What a model says, else `otherwise`. Raises what every further call would meet as well."""
        try:
            return await asked
        except (ModelUnavailable, BudgetExceeded):
            raise
        except ModelError as error:
            self.last = error
            record_fallback(REPLY_SKIPPED)
            self._unreported.append(str(error))
            return otherwise

    def drop(self, reason: str) -> None:
        """Record that a part of a reply was not used."""
        record_fallback(PART_SKIPPED)
        self._unreported.append(reason)

    def events(self, step: int) -> Iterator[Event]:
        """One for each that was not reported yet."""
        while self._unreported:
            yield ReplySkipped(step=step, reason=self._unreported.pop(0))


@dataclass(slots=True, kw_only=True)
class Course:
    """How far a loop has come with one question. `end` says why it ends; it is empty while it goes on."""

    question: Question
    step: int = 0
    end: str = ""
    skipped: Skipped = field(default_factory=Skipped)

    def report_skipped(self) -> Iterator[Event]:
        """An event for each reply, or part of one, that was skipped and not reported yet."""
        return self.skipped.events(self.step)


async def take_steps(
    course: Course, take_step: Callable[[], AsyncIterator[Event]], *, most: int, name: str
) -> AsyncIterator[Event]:
    """The events of up to `most` steps, then `stopped` with the reason. `name` is what a step is called there."""
    while not course.end:
        if course.step == most:
            course.end = f"no {name} is left (allowed: {most})"
            break
        course.step += 1
        async for event in take_step():
            yield event
    yield Stopped(step=course.step, reason=course.end)
