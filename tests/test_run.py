"""What a run measures and carries, and how calls run side by side in it."""

import asyncio
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.patience import SOON

from tomewise.concurrency import gather_calls, gather_pair, run_in_thread, run_side_by_side, take_turn
from tomewise.errors import BudgetExceeded
from tomewise.run import (
    ModelCall,
    Run,
    change_run,
    current_run,
    measure_depth,
    measure_union,
    meter,
    open_run,
    report_call,
)
from tomewise.types import Cost

intervals = st.lists(
    st.tuples(st.integers(0, 12), st.integers(0, 5)).map(lambda pair: (float(pair[0]), float(pair[0] + pair[1]))),
    max_size=9,
)


def measure_slowly(given_):
    """The longest of every chain, one interval after another."""

    def longest(time, left):
        return max((1 + longest(given_[i][1], left - {i}) for i in left if given_[i][0] >= time), default=0)

    return longest(float("-inf"), frozenset(range(len(given_))))


@given(intervals)
def test_depth_is_the_longest_chain_and_what_is_covered_the_measure_of_the_union(given_):
    assert measure_depth(given_) == measure_slowly(given_)
    assert measure_union(given_) == sum(any(start <= moment < end for start, end in given_) for moment in range(20))


def report(role, started=0.0, ended=1.0, cost=0.25):
    report_call(ModelCall(role, "m", started, ended, input_tokens=10, output_tokens=2, dollars=cost))


def test_usage_adds_up_by_role_and_overlap():
    with meter() as m:
        report("probe", 0.0, 2.0)
        report("encode", 2.0, 4.0)
        report("encode", 3.0, 5.0)
        report("answer", 6.0, 7.0)
    usage = m.measure_cost(wall_seconds=8.0)
    assert (usage.calls, usage.input_tokens, usage.output_tokens, usage.dollars) == (4, 40, 8, 1.0)
    assert usage.roles["encode"] == Cost(calls=2, input_tokens=20, output_tokens=4, dollars=0.5, model_seconds=4.0)
    assert (usage.model_seconds, usage.own_seconds, usage.depth) == (6.0, 2.0, 3)


def test_an_unknown_price_makes_the_sum_unknown():
    with meter() as m:
        report("answer")
        report("answer", cost=None)
    assert m.measure_cost().dollars is None


async def test_nested_meters_and_tasks_all_see_the_calls_and_meters_side_by_side_only_their_own():
    async def work(role):
        with meter() as own:
            await asyncio.sleep(0)
            report(role)
            await asyncio.sleep(0)
        assert [call.role for call in own.calls] == [role]

    with meter() as outer:
        report("before")
        with meter() as inner:
            await asyncio.gather(work("a"), asyncio.create_task(work("b")), asyncio.to_thread(report, "c"))
        report("after")
    report("unseen")
    assert sorted(call.role for call in inner.calls) == ["a", "b", "c"]
    assert sorted(call.role for call in outer.calls) == ["a", "after", "b", "before", "c"]


def test_threads_lose_no_call():
    with meter() as m:
        call = ModelCall("r", "m", 0.0, 1.0, 1, 1, 0.0)
        threads = [threading.Thread(target=lambda: [m.add(call) for _ in range(500)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert m.total.calls == 2000


async def test_a_change_holds_inside_alone_also_for_tasks_and_threads_and_tasks_side_by_side_do_not_meet():
    async def read_mark(**change):
        with change_run(**change):
            await asyncio.sleep(0)
            return current_run().fresh_mark

    with change_run(fresh_mark="a", queue="q"):
        with change_run(fresh_mark="b"):
            in_thread = asyncio.to_thread(lambda: current_run().fresh_mark)
            marks = await asyncio.gather(read_mark(), in_thread, read_mark(fresh_mark="c"), read_mark(fresh_mark="d"))
            assert marks == ["b", "b", "c", "d"]
            assert current_run().queue == "q"
        assert current_run().fresh_mark == "a"
    assert current_run() == Run()


def test_a_run_inside_another_goes_on_with_it_and_counts_its_own_failures():
    with change_run(fresh_mark="a"), open_run() as outer, open_run(queue="q") as inner:
        run = current_run()
        report("answer")
    assert (run.fresh_mark, run.queue) == ("a", "q")
    assert run.used is inner
    assert len(inner.calls) == len(outer.calls) == 1


# ---------------------------------------------------------------- calls side by side


async def end_after(seconds, what, done):
    await asyncio.sleep(seconds)
    if isinstance(what, Exception):
        raise what
    done.append(what)
    return what


@pytest.mark.parametrize("wait", [lambda *calls: gather_calls(calls), gather_pair])
async def test_the_first_error_is_raised_as_it_is_and_nothing_goes_on(wait):
    done = []
    with pytest.raises(LookupError, match="gone"):
        await wait(end_after(0, LookupError("gone"), done), end_after(0.1, "late", done))
    await asyncio.sleep(0.2)
    assert done == []


async def test_calls_under_way_end_where_a_budget_is_used_up():
    done = []
    calls = [(0, BudgetExceeded("first")), (0.02, "paid"), (0.01, BudgetExceeded("x"))]
    with pytest.raises(BudgetExceeded, match="first"):
        await gather_calls(end_after(*call, done) for call in calls)
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


async def test_turns_let_others_come_between():
    order = []

    async def work(number):
        await take_turn()
        order.append(number)

    async def come_between():
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        order.append("other")

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(work(number)) for number in range(5)]
        group.create_task(come_between())
        tasks[3].cancel()
    assert [each for each in order if each != "other"] == [0, 1, 2, 4]
    assert order.index("other") < 3
    await take_turn()  # nobody waits any more


async def test_a_failure_leaves_its_caller_as_one_that_nobody_cancels():
    async def fail_inside():
        async with run_side_by_side() as outer:
            outer.create_task(asyncio.sleep(SOON))
            async with run_side_by_side() as inner:
                inner.create_task(end_after(0, KeyError("one"), []))

    with pytest.raises(KeyError):
        await fail_inside()
    assert asyncio.current_task().cancelling() == 0
