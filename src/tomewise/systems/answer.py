"""Answer one question with an assembled system."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import replace

from tomewise.errors import UsageError
from tomewise.events import make_event
from tomewise.fallbacks import count_fallbacks
from tomewise.run import change_run, continue_run
from tomewise.systems.kit import System
from tomewise.types import Answer, Event, Loop, Question
from tomewise.working.lasting_memory import MemoryLoop, WorkingMemory

OnEvent = Callable[[Event], None]


async def answer_question(
    system: System, question: Question, on_event: OnEvent | None = None, memory: WorkingMemory | None = None
) -> Answer:
    """Run an assembled system on a question. The answer holds the events on the way, and the cost of the run so far.

    `on_event` also gets an `answer_part` for each new part of an answer that is streamed; the answer has none of these.

    `memory` is one that the system's loop opened; it is used and changed.

    If steps fell back (see `fallbacks`), the last event counts them by kind. Stores no trace and does not check whether
    layers are up to date: for callers who ask many questions of one system. Raises ModelError.
    """
    events: list[Event] = []

    def record(event: Event) -> None:
        events.append(event)
        if on_event:
            on_event(event)

    with continue_run() as used, count_fallbacks() as fallbacks, change_run(on_part=on_event, on_wait=record):
        async for output in _run(system.loop, question, memory):
            _check_output(output, system.loop)
            if isinstance(output, Event):
                record(output)
                continue
            if fallbacks:
                record(make_event("fallbacks", counts=dict(sorted(fallbacks.items()))))
            return replace(output, events=tuple(events), cost=used.measure_cost())
    raise RuntimeError(f"{type(system.loop).__name__} ended without an answer")


def _check_output(output: object, loop: Loop) -> None:
    if not isinstance(output, Event | Answer):  # a loop from outside may yield anything
        name = type(loop).__name__
        raise UsageError(f"{name} yielded {output!r}: a loop yields events, and an Answer at the end")


def _run(loop: Loop, question: Question, memory: WorkingMemory | None) -> AsyncIterator[Event | Answer]:
    return loop.run(question, memory) if memory is not None and isinstance(loop, MemoryLoop) else loop.run(question)
