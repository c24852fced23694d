"""Answer one question with an assembled system, and say what would show its model more."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import replace

from tomewise.errors import UsageError
from tomewise.events import is_event, make_event
from tomewise.language.roles import ANSWER
from tomewise.language.wrapped import find_name, find_room
from tomewise.run import Meter, change_run, meter
from tomewise.systems.kit import System
from tomewise.systems.recipe_settings import list_settings
from tomewise.systems.registry import SYSTEMS, Variant, choose_variant
from tomewise.types import Answer, Event, LanguageModel, Question
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


def advise_on_room(variant: Variant, model: LanguageModel, answer: Answer) -> str:
    """What gives room to what was found for an answer and had none: more `context`, or a larger window."""
    chosen = [event.detail["chosen"] for event in answer.events if is_event(event, "chosen")]
    if variant.system == "auto" and chosen and SYSTEMS.find(chosen[-1]):
        variant = choose_variant(chosen[-1])
    setting = list_settings(variant.declaration.recipe).get("context")
    context = variant.settings.get("context", setting.default if setting else None)
    if not isinstance(context, int) or context >= (room := find_room(model, ANSWER) * 2 // 3):
        return f"the window of {find_name(model, ANSWER)} is full, and a model with a larger one is shown more"
    wider = choose_variant(variant, {"context": min(2 * context, room)})
    return f"it holds {context:,} tokens of evidence, and `{wider.label}` shows more"
