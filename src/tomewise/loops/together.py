"""Waiting for several things side by side, where none goes on after one has failed."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

A = TypeVar("A")
B = TypeVar("B")


async def each(asked: Iterable[Coroutine[Any, Any, A]]) -> list[A]:
    """The results, in order. Raises the first error, once the others have been cancelled."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(some) for some in asked]
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from failures
    return [task.result() for task in tasks]


async def together(first: Coroutine[Any, Any, A], second: Coroutine[Any, Any, B]) -> tuple[A, B]:
    """`each` for two of different kinds."""
    try:
        async with asyncio.TaskGroup() as group:
            one, other = group.create_task(first), group.create_task(second)
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from failures
    return one.result(), other.result()
