"""How many calls of a model may run at a time, and which call is next."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tomewise.errors import UsageError
from tomewise.run import current_run


class CallSlots:
    """A semaphore with several queues: at most `limit` calls at a time, each inside `slots.take()`.

    A call waits in the `queue` of its run. The shortest queue is served first, each queue in its order. So a layer that
    makes few calls at a time, since each needs the reply to an earlier one, does not wait behind the thousand calls of
    another layer; the other layer ends no later. A repair goes `ahead` in its queue: otherwise all first calls of a
    layer would be paid before one of them fails for good.

    Raises UsageError for a limit below 1: every call would wait for ever.
    """

    def __init__(self, limit: int) -> None:
        if limit < 1:
            raise UsageError(f"a limit of {limit} calls at a time lets none through: give 1 or more")
        self._free = limit
        self._queues: dict[object, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def take(self, *, ahead: bool = False) -> AsyncIterator[None]:
        """Wait for a slot, with `ahead` before all calls that wait in the same queue."""
        await self._acquire(ahead)
        try:
            yield
        finally:
            self._release()

    async def _acquire(self, ahead: bool) -> None:
        if self._free:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        queue = self._queues.setdefault(current_run().queue, deque())
        if ahead:
            queue.appendleft(turn)
        else:
            queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # the slot was given to this call at the same moment: the next call gets it
                self._release()
            raise

    def _release(self) -> None:
        """Give the slot to the first call of the shortest queue; without one, it is free."""
        while self._queues:
            key = min(self._queues, key=lambda candidate: len(self._queues[candidate]))
            queue = self._queues[key]
            turn = queue.popleft()
            if not queue:
                del self._queues[key]
            if not turn.done():  # if it is done, the call was cancelled while it waited
                turn.set_result(None)
                return
        self._free += 1
