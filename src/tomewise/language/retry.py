"""Try a request again: which failures may pass by themselves, and how long to wait."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import KW_ONLY, dataclass
from typing import TypeVar

from tomewise.credentials import hide_credentials
from tomewise.errors import ModelError
from tomewise.events import make_event
from tomewise.run import current_run

T = TypeVar("T")
_log = logging.getLogger(__name__)


@dataclass(eq=False)
class AttemptFailed(Exception):
    """A request that failed. `error` is the error that the caller gets.

    `sent` is False if no connection could be opened. `answered` is True if the server reported the failure, so that it
    charges nothing; otherwise it may have worked on the request. `may_be_stream` is True if the request may have failed
    because it was streamed: then a plain one may do better.

    `passes` says that the failure may pass by itself. `retry_after` is how many seconds the server asks to wait, if it
    asks. `busy` says that the server is overloaded.
    """

    error: ModelError
    _: KW_ONLY
    sent: bool = True
    answered: bool = False
    may_be_stream: bool = False
    passes: bool = False
    retry_after: float | None = None
    busy: bool = False

    def __str__(self) -> str:
        return str(self.error)


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waits in seconds: `first`, doubled each time, of which a random half may be left out; at most `longest`."""

    retries: int = 4
    first: float = 0.5
    longest: float = 60.0

    def delay(self, attempt: int, retry_after: float | None) -> float:
        """Seconds to wait after failure number `attempt` (from 0).

        At least the seconds that the server asks for, but never more than `longest`.
        """
        wait = min(self.longest, self.first * 2.0**attempt)
        # Random, so that calls that were refused together do not all come back at the same moment.
        return min(self.longest, max(wait * random.uniform(0.5, 1.0), retry_after or 0.0))


PATIENT = Backoff()


async def retry(
    attempt: Callable[[], Awaitable[T]],
    backoff: Backoff,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> T:
    """The first success of `attempt`. Raises AttemptFailed: one that `passes` after the last retry, others at once.

    Each retry is logged, with its reason. A wait that the server asks for is also reported to `Run.on_wait`.
    """
    for number in range(backoff.retries + 1):
        try:
            return await attempt()
        except AttemptFailed as failure:
            if number == backoff.retries or not failure.passes:
                raise
            wait = backoff.delay(number, failure.retry_after)
            reason = hide_credentials(str(failure))
            cause = ""
            if failure.retry_after:
                cause = f", since the server asks for {failure.retry_after:.0f} s"
                waiting = make_event("waiting", seconds=wait, asked=failure.retry_after, reason=reason)
                current_run().on_wait(waiting)
            words = (number + 1, backoff.retries, wait, cause, reason)
            _log.info("retrying %d of %d in %.0f s%s: %s", *words, extra={"seconds": wait})
        await sleep(wait)
    raise AssertionError("unreachable: the last failure is raised above")
