"""How many calls of a model may run at a time, and which call is next."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tomewise.errors import UsageError
from tomewise.run import current_run


class Places:
    """At most `limit` calls at a time: `async with places`. The shortest queue is served first, each in its order.

    A call waits in the `queue` of its run. A repair goes `ahead` there: otherwise all first calls of a layer would be
    paid before a failure ends.

    Some layers make few calls at a time, since each call waits for an earlier one. Such a layer need not wait behind
    the thousand calls of another layer, and the other layer ends no later. Raises UsageError for a limit below 1: every
    call would wait for ever.
    """

    def __init__(self, limit: int) -> None:
        if limit < 1:
            raise UsageError(f"a limit of {limit} calls at a time lets none through: give 1 or more")
        self._free = limit
        self._waiting: dict[object, deque[asyncio.Future[None]]] = {}

    async def __aenter__(self) -> None:
        await self._enter(ahead=False)

    async def __aexit__(self, *_: object) -> None:
        self._pass_on()

    @asynccontextmanager
    async def ahead(self) -> AsyncIterator[None]:
        """As `async with places`, before all who wait in the same queue."""
        await self._enter(ahead=True)
        try:
            yield
        finally:
            self._pass_on()

    async def _enter(self, *, ahead: bool) -> None:
        if self._free:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        turns = self._waiting.setdefault(current_run().queue, deque())
        if ahead:
            turns.appendleft(turn)
        else:
            turns.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # the place was given at the same moment: give it to the next call
                self._pass_on()
            raise

    def _pass_on(self) -> None:
        while self._waiting:
            queue = min(self._waiting, key=lambda candidate: len(self._waiting[candidate]))
            turns = self._waiting[queue]
            turn = turns.popleft()
            if not turns:
                del self._waiting[queue]
            if not turn.done():  # if it is done, the call was cancelled while it waited
                turn.set_result(None)
                return
        self._free += 1
