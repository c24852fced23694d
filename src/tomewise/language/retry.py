"""Trying again: which failures pass by themselves, and how long to wait for that."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from tomewise.errors import ModelError

T = TypeVar("T")


class Failure(Exception):
    """A request that failed: `error` is what the asker is told.

    `sent` is False where no connection could be opened. `answered` is True where the server said that it failed, so
    that nothing is charged for; otherwise it may have worked on the request.
    """

    def __init__(self, error: ModelError, *, sent: bool = True, answered: bool = False) -> None:
        super().__init__(str(error))
        self.error = error
        self.sent = sent
        self.answered = answered


class PassingFailure(Failure):
    """A failure that may pass by itself: `error` is what it becomes when it does not.

    `retry_after` is how many seconds the server asked for, if it did; `busy` says that it has too much to do.
    """

    def __init__(
        self,
        error: ModelError,
        retry_after: float | None = None,
        *,
        busy: bool = False,
        sent: bool = True,
        answered: bool = False,
    ) -> None:
        super().__init__(error, sent=sent, answered=answered)
        self.retry_after = retry_after
        self.busy = busy


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waits in seconds: `first`, doubled each time, half of it by chance; never longer than `longest`."""

    retries: int = 4
    first: float = 0.5
    longest: float = 60.0

    def delay(self, attempt: int, retry_after: float | None) -> float:
        """How long to wait after failure number `attempt` (from 0): at least what the server asked for, if bearable."""
        grown = min(self.longest, self.first * 2.0**attempt)
        # By chance, so that calls refused together do not come back together.
        return min(self.longest, max(grown * random.uniform(0.5, 1.0), retry_after or 0.0))


PATIENT = Backoff()


async def retry(
    attempt: Callable[[], Awaitable[T]],
    backoff: Backoff,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> T:
    """The first success of `attempt`. Raises a `PassingFailure` failure once the retries are used up, any other at once."""
    for number in range(backoff.retries + 1):
        try:
            return await attempt()
        except PassingFailure as failure:
            if number == backoff.retries:
                raise
            wait = backoff.delay(number, failure.retry_after)
        await sleep(wait)
    raise AssertionError("unreachable: the last failure is raised above")
