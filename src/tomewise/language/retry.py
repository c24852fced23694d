"""Try a request again: which failures may pass by themselves, and how long to wait."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import KW_ONLY, dataclass
from time import monotonic
from typing import Any, TypeVar

from tomewise.credentials import hide_credentials
from tomewise.errors import ModelError
from tomewise.events import make_event
from tomewise.language.adapting import Refusal
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
    asks. `busy` says that the server is overloaded, `loads` that it still loads the model. `refusal` is what it says
    against the request.
    """

    error: ModelError
    _: KW_ONLY
    sent: bool = True
    answered: bool = False
    may_be_stream: bool = False
    passes: bool = False
    retry_after: float | None = None
    busy: bool = False
    loads: bool = False
    refusal: Refusal | None = None


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waits in seconds: `first`, doubled each time up to `longest`, of which a random half may be left out."""

    retries: int = 4
    first: float = 0.5
    longest: float = 60.0

    def delay(self, attempt: int, retry_after: float | None) -> float:
        """Seconds to wait after failure number `attempt` (from 0), at least those that the server asks for."""
        wait = min(self.longest, self.first * 2.0**attempt)
        # Random, so that calls that were refused together do not all come back at the same moment.
        return max(wait * random.uniform(0.5, 1.0), retry_after or 0.0)


PATIENT = Backoff()
_LOADING = 10.0  # seconds after which a server that loads a model is asked again at the latest


async def retry(
    attempt: Callable[[], Awaitable[T]],
    backoff: Backoff,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    *,
    patience: float = 0.0,
) -> T:
    """The first success of `attempt`. Raises AttemptFailed: one that `passes` after the last retry, others at once.

    A server that loads the model is asked again for `patience` seconds, however often. Each wait is reported.
    """
    number, begun = 0, monotonic()
    while True:
        try:
            return await attempt()
        except AttemptFailed as failure:
            loads = failure.loads and monotonic() - begun < patience
            if not failure.passes or (number >= backoff.retries and not loads):
                raise
            wait = backoff.delay(number, failure.retry_after)
            wait = min(wait, _LOADING) if loads else wait
            number += 1
            tries = {} if loads else {"next": number + 1, "tries": backoff.retries + 1}
            report("waiting", failure, seconds=wait, asked=failure.retry_after or None, **tries)
        await sleep(wait)


def report(name: str, reason: object, *, level: int = logging.INFO, **fields: Any) -> None:
    """Tell whoever listens to the run why a reply is late, as the event of this name, and log it."""
    event = make_event(name, reason=hide_credentials(str(reason)), **fields)
    current_run().on_wait(event)
    _log.log(level, "%s", event.summary, extra={"seconds": fields.get("seconds", 0.0)})
