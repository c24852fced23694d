"""The event loop in a thread of its own."""

from __future__ import annotations

import asyncio

import pytest

from tomewise.tome.sync import LoopThread


async def end_in_a_task() -> None:
    async def end() -> None:
        raise SystemExit(1)

    await asyncio.create_task(end())


async def give_seven() -> int:
    await asyncio.sleep(0)
    return 7


def test_an_exit_in_the_work_reaches_the_caller_and_the_thread_goes_on():
    thread = LoopThread()
    try:
        with pytest.raises(SystemExit):
            thread.run(end_in_a_task())
        assert thread.run(give_seven()) == 7
    finally:
        thread.stop()
    assert not thread.runs
