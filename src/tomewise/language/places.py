"""How many calls a model takes at a time, and who goes next."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from tomewise.errors import UsageError

_queue: ContextVar[object] = ContextVar("tomewise_queue", default=None)


@contextmanager
def use_own_queue() -> Iterator[None]:
    """Calls made inside, also by tasks started inside, wait in a queue of their own."""
    token = _queue.set(object())
    try:
        yield
    finally:
        _queue.reset(token)


class Places:
    """At most `limit` calls at a time: `async with places`. The shortest queue goes first, in each who came first.

    So a layer whose calls wait for one another, and which asks for few at a time, is not held up by the thousand calls
    of another layer: that one ends no later for it. Raises UsageError for a limit below 1, under which every call would
    wait for ever.
    """

    def __init__(self, limit: int) -> None:
        if limit < 1:
            raise UsageError(f"a limit of {limit} calls at a time lets none through: give 1 or more")
        self._free = limit
        self._waiting: dict[object, deque[asyncio.Future[None]]] = {}

    async def __aenter__(self) -> None:
        if self._free:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(_queue.get(), deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # the place came at the very moment: somebody else may have it
                self._pass_on()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._pass_on()

    def _pass_on(self) -> None:
        while self._waiting:
            queue = min(self._waiting, key=lambda one: len(self._waiting[one]))
            turns = self._waiting[queue]
            turn = turns.popleft()
            if not turns:
                del self._waiting[queue]
            if not turn.done():  # else whoever waited gave up
                turn.set_result(None)
                return
        self._free += 1
