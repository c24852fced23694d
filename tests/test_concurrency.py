import asyncio
import threading
import time

import pytest
from tests.patience import SOON

from tomewise.concurrency import gather_calls, gather_pair, run_in_thread, run_side_by_side, take_turn
from tomewise.errors import BudgetExceeded


async def after(seconds: float, what: object, done: list[object]) -> object:
    await asyncio.sleep(seconds)
    if isinstance(what, Exception):
        raise what
    done.append(what)
    return what


async def test_results_come_in_order():
    done: list[object] = []
    assert await gather_calls(after(0.01 * (3 - n), n, done) for n in range(3)) == [0, 1, 2]
    assert await gather_pair(after(0, "a", done), after(0, 2, done)) == ("a", 2)


@pytest.mark.parametrize("wait", [lambda *calls: gather_calls(calls), gather_pair])
async def test_the_first_error_is_raised_as_it_is_and_nothing_goes_on(wait):
    done: list[object] = []
    with pytest.raises(LookupError, match="gone"):
        await wait(after(0, LookupError("gone"), done), after(0.5, "late", done))
    await asyncio.sleep(0.7)
    assert done == []


async def test_calls_under_way_end_where_a_budget_is_used_up():
    done: list[object] = []
    with pytest.raises(BudgetExceeded, match="first"):
        await gather_calls(
            after(*call, done) for call in [(0, BudgetExceeded("first")), (0.02, "paid"), (0.01, BudgetExceeded("x"))]
        )
    assert done == ["paid"]


async def test_a_cancelled_caller_goes_on_only_when_its_thread_has_ended():
    begun, done = threading.Event(), []

    def work():
        begun.set()
        time.sleep(0.2)
        done.append(True)

    task = asyncio.create_task(run_in_thread(work))
    await asyncio.to_thread(begun.wait)
    task.cancel()
    await asyncio.sleep(0.05)
    task.cancel()  # impatience does not help
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done


async def test_a_function_in_a_thread_returns_and_raises():
    assert await run_in_thread(divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        await run_in_thread(divmod, 7, 0)


async def test_turns_let_others_come_between() -> None:
    order: list[str] = []

    async def work(number: int) -> None:
        await take_turn()
        order.append(str(number))

    async def come_between() -> None:
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        order.append("other")

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(work(number)) for number in range(5)]
        group.create_task(come_between())
        tasks[3].cancel()
    assert [each for each in order if each != "other"] == ["0", "1", "2", "4"]
    assert order.index("other") < 3
    await take_turn()  # nobody waits any more


async def test_a_failure_leaves_its_caller_as_one_that_nobody_cancels() -> None:
    async def fail() -> None:
        await asyncio.sleep(0)
        raise KeyError("one")

    async def fail_inside() -> None:
        async with run_side_by_side() as outer:
            outer.create_task(asyncio.sleep(SOON))
            async with run_side_by_side() as inner:
                inner.create_task(fail())

    with pytest.raises(KeyError):
        await fail_inside()
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
