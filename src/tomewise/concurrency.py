"""Waiting for several coroutines at once; when one fails, the others are cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from tomewise.errors import BudgetExceeded

A = TypeVar("A")
B = TypeVar("B")


@asynccontextmanager
async def side_by_side() -> AsyncIterator[asyncio.TaskGroup]:
    """A group of tasks. When one fails, the others are cancelled, and its error is raised as it is, not in a group."""
    try:
        async with asyncio.TaskGroup() as group:
            yield group
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from failures


async def gather_calls(calls: Iterable[Coroutine[Any, Any, A]]) -> list[A]:
    """The results of several model calls, in order. When one fails, cancels the others and raises its error.

    A used-up budget cancels nothing: calls under way are already paid for, so they finish before the error is raised.
    """
    refusals: list[BudgetExceeded] = []
    async with side_by_side() as group:
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
