"""Answer one question with an assembled system."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import replace

from tomewise.errors import UsageError
from tomewise.events import make_event
from tomewise.run import Meter, change_run, meter
from tomewise.systems.kit import System
from tomewise.types import Answer, Event, Question
from tomewise.working.lasting_memory import MemoryLoop, WorkingMemory

OnEvent = Callable[[Event], None]


async def answer_question(system: System, question: Question, on_event: OnEvent | None = None) -> Answer:
    """Run an assembled system on a question, see `run_loop`. The answer says what it used.

    Stores no trace and does not check whether layers are up to date: for callers who ask many questions of one system.
    """
    with meter() as used:
        answer = await run_loop(system, question, used, on_event)
        return replace(answer, cost=used.measure_cost())


async def run_loop(
    system: System, question: Question, used: Meter, on_event: OnEvent | None, memory: WorkingMemory | None = None
) -> Answer:
    """Run the loop of a system on a question. The answer holds the events on the way.

    `on_event` also gets an `answer_part` for each new part of an answer that is streamed; the answer has none of these.

    `memory` is one that the system's loop opened; it is used and changed.

    If steps fell back, which `used` counts (see `run`), the last event counts them by kind. Raises ModelError.
    """
    before, events = used.fallbacks.copy(), list[Event]()

    def record(event: Event) -> None:
        events.append(event)
        if on_event:
            on_event(event)

    loop = system.loop
    # A loop from outside may yield anything.
    outputs: AsyncIterator[object] = (
        loop.run(question, memory) if memory is not None and isinstance(loop, MemoryLoop) else loop.run(question)
    )
    with change_run(on_part=on_event, on_wait=record):
        async for output in outputs:
            if isinstance(output, Event):
                record(output)
            elif isinstance(output, Answer):
                if counts := used.fallbacks - before:
                    record(make_event("fallbacks", counts=dict(sorted(counts.items()))))
                return replace(output, events=tuple(events))
            else:
                name = type(loop).__name__
                raise UsageError(f"{name} yielded {output!r}: a loop yields events, and an Answer at the end")
    raise RuntimeError(f"{type(loop).__name__} ended without an answer")
