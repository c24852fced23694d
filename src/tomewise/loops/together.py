"""Waiting for several calls of a model side by side, where none goes on in vain after one has failed."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

from tomewise.errors import BudgetExceeded

A = TypeVar("A")
B = TypeVar("B")


async def each(asked: Iterable[Coroutine[Any, Any, A]]) -> list[A]:
    """The results, in order. Raises the first error, once the others have been cancelled.

    But where it is a budget that is used up, calls under way end by themselves: they are paid for.
    """
    refused: list[BudgetExceeded] = []
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_unless_refused(some, refused)) for some in asked]
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from failures
    if refused:
        raise refused[0]
    return [result for task in tasks for result in task.result()]


async def together(first: Coroutine[Any, Any, A], second: Coroutine[Any, Any, B]) -> tuple[A, B]:
    """`each` for two of different kinds."""
    one: list[A] = []
    other: list[B] = []

    async def put(some: Coroutine[Any, Any, Any], into: list[Any]) -> None:
        into.append(await some)

    await each([put(first, one), put(second, other)])
    return one[0], other[0]


async def _unless_refused(some: Coroutine[Any, Any, A], refused: list[BudgetExceeded]) -> list[A]:
    try:
        return [await some]
    except BudgetExceeded as error:
        refused.append(error)
        return []
