"""The steps that loops go through until one of them ends the course, or none is left."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Protocol

from tomewise.events import Stopped
from tomewise.types import Event


class Course(Protocol):
    """How far a loop has come with one question. `end` says why it ends; it is empty while it goes on."""

    step: int
    end: str


async def take_steps(
    course: Course, take_step: Callable[[], AsyncIterator[Event]], *, most: int, name: str
) -> AsyncIterator[Event]:
    """The events of up to `most` steps, then `stopped` with the reason. `name` is what a step is called there."""
    while not course.end:
        if course.step == most:
            course.end = f"no {name} is left (allowed: {most})"
            break
        course.step += 1
        async for event in take_step():
            yield event
    yield Stopped(step=course.step, reason=course.end)
