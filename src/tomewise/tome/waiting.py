"""Ways to wait for answers: several questions at the same time, or the events of one as they happen."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable
from typing import Any

from tomewise.concurrency import run_side_by_side
from tomewise.errors import UsageError
from tomewise.loops.answer_parts import answer_whole
from tomewise.systems.answer import OnEvent
from tomewise.types import Answer, Event, Question

Ask = Callable[[str | Question, OnEvent], Coroutine[Any, Any, Answer]]

# How many questions may wait for their first event at once. So the first model calls begin early, and do not wait until
# all questions have retrieved.
_MOST_STARTING = 4


async def answer_many(
    ask: Ask, questions: Iterable[str | Question], *, return_exceptions: bool
) -> list[Answer | Exception]:
    """Answers in the order of the questions. With `return_exceptions`, an error takes the place of its answer.

    Without it, the first error cancels the other questions and is raised. Raises UsageError for a single question.
    """
    if isinstance(questions, str | Question):
        raise UsageError("several questions are asked as a list: put this one into a list, or call `ask`")
    starting = asyncio.Semaphore(_MOST_STARTING)

    async def ask_in_turn(question: str | Question) -> Answer | Exception:
        await starting.acquire()
        acquired = [starting]

        def release(_: Event | None = None) -> None:
            if acquired:
                acquired.pop().release()

        try:
            with answer_whole():
                return await ask(question, release)
        except Exception as error:
            if return_exceptions:
                return error
            raise
        finally:
            release()

    async with run_side_by_side() as group:
        tasks = [group.create_task(ask_in_turn(question)) for question in questions]
    return [task.result() for task in tasks]


async def stream_answer(ask: Ask, question: str | Question) -> AsyncGenerator[Event | Answer, None]:
    """The events of one question as they happen, then its answer. Closing the generator cancels the question.

    The question runs in its own task: meters and counters belong to the context of one task, and whoever reads a
    generator may go on in another one.
    """
    events: asyncio.Queue[Event | None] = asyncio.Queue()
    asking = asyncio.create_task(ask(question, events.put_nowait))
    asking.add_done_callback(lambda _: events.put_nowait(None))
    try:
        while (event := await events.get()) is not None:
            yield event
        yield asking.result()
    finally:
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
