"""Waiting for several things side by side, where none goes on in vain after one has failed."""

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
    """A group of tasks that raises the first error as it is, once the other tasks have been cancelled."""
    try:
        async with asyncio.TaskGroup() as group:
            yield group
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from failures


async def each(asked: Iterable[Coroutine[Any, Any, A]]) -> list[A]:
    """The results, in order, of calls of a model. Raises the first error, once the others have been cancelled.

    But where it is a budget that is used up, calls under way end by themselves: they are paid for.
    """
    refused: list[BudgetExceeded] = []
    async with side_by_side() as group:
        tasks = [group.create_task(_unless_refused(some, refused)) for some in asked]
    if refused:
        raise refused[0]
    return [result for task in tasks for result in task.result()]


async def together(first: Coroutine[Any, Any, A], second: Coroutine[Any, Any, B]) -> tuple[A, B]:
    """`each` for two of different kinds."""
    both: list[Coroutine[Any, Any, Any]] = [first, second]
    one, other = await each(both)
    return one, other


async def _unless_refused(some: Coroutine[Any, Any, A], refused: list[BudgetExceeded]) -> list[A]:
    try:
        return [await some]
    except BudgetExceeded as error:
        refused.append(error)
        return []
