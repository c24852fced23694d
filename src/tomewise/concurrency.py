"""Waiting for several coroutines at once, for threads, and for a turn of the event loop.

What is cancelled has ended before the caller goes on.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from contextvars import copy_context
from functools import partial
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from tomewise.errors import BudgetExceeded

A = TypeVar("A")
B = TypeVar("B")


_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, deque[asyncio.Future[None]]] = WeakKeyDictionary()


async def take_turn() -> None:
    """Go on when all who came before have gone on: one in each round of the event loop.

    Replies to many calls often arrive at the same moment. If all were worked on in one round, everything else in the
    loop would wait for the sum of them.
    """
    loop = asyncio.get_running_loop()
    waiting = _turns.setdefault(loop, deque())
    turn = loop.create_future()
    waiting.append(turn)
    if len(waiting) == 1:
        loop.call_soon(_give_turn, loop, waiting)
    await turn


def _give_turn(loop: asyncio.AbstractEventLoop, waiting: deque[asyncio.Future[None]]) -> None:
    turn = waiting.popleft()
    if not turn.done():  # it was not cancelled
        turn.set_result(None)
    if waiting:
        loop.call_soon(_give_turn, loop, waiting)


async def run_in_thread(function: Callable[..., A], *arguments: Any) -> A:
    """The result of a function that runs in a thread.

    If the caller is cancelled, CancelledError is raised only when the thread has ended. So a lock that the caller holds
    is held until nothing writes any more. A function that has not begun by then does not run.
    """
    cancelled = threading.Event()

    def work() -> A | None:
        return None if cancelled.is_set() else function(*arguments)

    # Not `asyncio.to_thread`: its future forgets the thread when it is cancelled.
    future = asyncio.get_running_loop().run_in_executor(None, partial(copy_context().run, work))
    try:
        result: Any = await asyncio.shield(future)
    except asyncio.CancelledError:
        cancelled.set()
        await wait_through(future)
        raise
    return result  # type: ignore[no-any-return]


async def wait_through(future: asyncio.Future[Any]) -> None:
    """Wait until the future is done, also if the caller is cancelled again meanwhile."""
    while not future.done():
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError:
            continue
    if not future.cancelled():
        future.exception()  # asyncio warns about an error that nobody reads; this line reads it


@asynccontextmanager
async def run_side_by_side() -> AsyncIterator[asyncio.TaskGroup]:
    """A group of tasks. When one fails, the others are cancelled, and its error is raised as it is, not in a group."""
    caller = asyncio.current_task()
    requests = caller.cancelling() if caller else 0
    try:
        async with asyncio.TaskGroup() as group:
            yield group
    except BaseExceptionGroup as failures:
        # Up to Python 3.12 a group whose task fails leaves its caller as one that is being cancelled.
        if caller and caller.cancelling() > requests:
            caller.uncancel()
        first = failures.exceptions[0]
        raise first from first.__cause__ or failures


async def gather_calls(calls: Iterable[Coroutine[Any, Any, A]]) -> list[A]:
    """The results of several model calls, in order. When one fails, cancels the others and raises its error.

    A used-up budget cancels nothing: calls under way are already paid for, so they finish before the error is raised.
    """
    refusals: list[BudgetExceeded] = []
    async with run_side_by_side() as group:
        tasks = [group.create_task(_collect_refusal(call, refusals)) for call in calls]
    if refusals:
        raise refusals[0]
    return [result for task in tasks for result in task.result()]


async def gather_pair(first: Coroutine[Any, Any, A], second: Coroutine[Any, Any, B]) -> tuple[A, B]:
    """`gather_calls` for two calls whose results have different types."""
    calls: list[Coroutine[Any, Any, Any]] = [first, second]
    first_result, second_result = await gather_calls(calls)
    return first_result, second_result


async def _collect_refusal(call: Coroutine[Any, Any, A], refusals: list[BudgetExceeded]) -> list[A]:
    """The result of the call in a list; an empty list if the budget refused it."""
    try:
        return [await call]
    except BudgetExceeded as error:
        refusals.append(error)
        return []
