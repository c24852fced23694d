"""`memory.steps`: how far a step is, for code without a `report`."""

from __future__ import annotations

import asyncio
import threading

from tomewise.concurrency import run_in_thread
from tomewise.memory.step_reports import report_step, sum_tokens, watch_steps
from tomewise.types import Progress


async def test_steps_of_threads_are_reported_by_the_event_loop() -> None:
    heard: list[tuple[Progress, int]] = []
    with watch_steps(lambda progress: heard.append((progress, threading.get_ident()))):
        await run_in_thread(report_step, "rows", 1, 2)
    report_step("rows", 2, 2)  # nobody watches any more
    await asyncio.sleep(0)
    assert heard == [(Progress(label="rows", done=1, total=2), threading.get_ident())]


async def test_tokens_are_counted_while_other_work_goes_on() -> None:
    heard: list[Progress] = []
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    neighbour = asyncio.create_task(count_turns())
    with watch_steps(heard.append):
        assert await sum_tokens(range(1000), lambda number: number) == sum(range(1000))
    neighbour.cancel()
    assert turns > 10
    assert [step.done for step in heard] == sorted(step.done for step in heard)
    assert len(heard) > 10
    assert await sum_tokens([], len) == 0
