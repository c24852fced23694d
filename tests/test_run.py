import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tomewise.fallbacks import count_fallbacks, record_fallback
from tomewise.language.usage import report_call
from tomewise.meter import ModelCall, measure_depth, measure_union
from tomewise.run import Run, change_run, current_run, meter, open_run
from tomewise.types import Spent

intervals = st.lists(
    st.tuples(st.integers(0, 12), st.integers(0, 5)).map(lambda pair: (float(pair[0]), float(pair[0] + pair[1]))),
    max_size=9,
)


def slow_depth(given_: list[tuple[float, float]]) -> int:
    """Every chain, one interval after another."""

    def longest(time: float, left: frozenset[int]) -> int:
        return max((1 + longest(given_[i][1], left - {i}) for i in left if given_[i][0] >= time), default=0)

    return longest(float("-inf"), frozenset(range(len(given_))))


@given(intervals)
def test_depth_is_the_longest_chain(given_: list[tuple[float, float]]) -> None:
    assert measure_depth(given_) == slow_depth(given_)


@given(intervals)
def test_covered_is_the_measure_of_the_union(given_: list[tuple[float, float]]) -> None:
    moments = sum(any(start <= moment < end for start, end in given_) for moment in range(20))
    assert measure_union(given_) == moments


def report(role: str, started: float, ended: float, cost: float | None = 0.25) -> None:
    report_call(ModelCall(role, "m", started, ended, input_tokens=10, output_tokens=2, cost=cost))


def clock_of(*times: float) -> Callable[[], float]:
    return iter(times).__next__


def test_usage_adds_up_by_role_and_overlap() -> None:
    with meter() as m:
        report("probe", 0.0, 2.0)
        report("encode", 2.0, 4.0)
        report("encode", 3.0, 5.0)
        report("answer", 6.0, 7.0)
    usage = m.usage(wall_seconds=8.0)
    assert usage.total == Spent(calls=4, input_tokens=40, output_tokens=8, cost=1.0, seconds=7.0)
    assert usage.roles["encode"] == Spent(calls=2, input_tokens=20, output_tokens=4, cost=0.5, seconds=4.0)
    assert (usage.model_seconds, usage.own_seconds, usage.depth) == (6.0, 2.0, 3)


def test_an_unknown_price_makes_the_sum_unknown() -> None:
    with meter() as m:
        report("answer", 0.0, 1.0)
        report("answer", 1.0, 2.0, cost=None)
    assert m.usage().total.cost is None


def test_wall_seconds_come_from_the_meters_clock() -> None:
    with meter(clock=clock_of(100.0, 103.0)) as m:
        report("answer", 100.5, 101.5)
    assert m.usage().own_seconds == pytest.approx(2.0)


def test_nothing_asked_is_nothing_used() -> None:
    with meter() as m:
        pass
    usage = m.usage(wall_seconds=1.0)
    assert (usage.total, usage.depth, usage.own_seconds) == (Spent(), 0, 1.0)


async def test_nested_meters_and_tasks_all_see_the_calls() -> None:
    async def work(role: str) -> None:
        await asyncio.sleep(0)
        report(role, 0.0, 1.0)

    with meter() as outer:
        report("before", 0.0, 1.0)
        with meter() as inner:
            await asyncio.gather(work("a"), asyncio.create_task(work("b")), asyncio.to_thread(report, "c", 0.0, 1.0))
        report("after", 0.0, 1.0)
    report("unseen", 0.0, 1.0)
    assert sorted(call.role for call in inner.calls) == ["a", "b", "c"]
    assert sorted(call.role for call in outer.calls) == ["a", "after", "b", "before", "c"]


async def test_meters_side_by_side_see_only_their_own() -> None:
    async def count_roles(role: str) -> list[str]:
        with meter() as m:
            await asyncio.sleep(0)
            report(role, 0.0, 1.0)
            await asyncio.sleep(0)
            return [call.role for call in m.calls]

    assert await asyncio.gather(count_roles("a"), count_roles("b")) == [["a"], ["b"]]


def test_threads_lose_no_call() -> None:
    with meter() as m:
        call = ModelCall("r", "m", 0.0, 1.0, 1, 1, 0.0)
        threads = [threading.Thread(target=lambda: [m.add(call) for _ in range(500)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert m.total.calls == 2000


async def test_a_change_holds_inside_alone_also_for_tasks_and_threads() -> None:
    async def read_mark() -> str:
        return current_run().fresh_mark

    with change_run(fresh_mark="a", queue="q"):
        with change_run(fresh_mark="b"):
            assert await asyncio.gather(read_mark(), asyncio.to_thread(lambda: current_run().fresh_mark)) == ["b", "b"]
            assert current_run().queue == "q"
        assert current_run().fresh_mark == "a"
    assert current_run() == Run()


async def test_changes_of_tasks_side_by_side_do_not_meet() -> None:
    async def read_mark(mark: str) -> str:
        with change_run(fresh_mark=mark):
            await asyncio.sleep(0)
            return current_run().fresh_mark

    assert await asyncio.gather(read_mark("a"), read_mark("b")) == ["a", "b"]


def test_a_run_inside_another_goes_on_with_it_and_counts_its_own_failures() -> None:
    with change_run(fresh_mark="a"), count_fallbacks() as fallbacks, open_run() as outer, open_run(queue="q") as inner:
        run = current_run()
        report("answer", 0.0, 1.0)
        record_fallback("kind")
    assert (run.fresh_mark, run.queue) == ("a", "q")
    assert run.outcomes is not None
    assert run.outcomes.used is inner
    assert len(inner.calls) == len(outer.calls) == fallbacks["kind"] == 1


def test_fallbacks_reach_every_count_around_them_also_before_an_error() -> None:
    with count_fallbacks() as outer:
        record_fallback("first")
        with suppress(ZeroDivisionError), count_fallbacks() as inner:
            record_fallback("second")
            raise ZeroDivisionError
    record_fallback("unseen")
    assert (inner, outer) == ({"second": 1}, {"first": 1, "second": 1})


def test_a_field_that_no_run_has_is_refused() -> None:
    with pytest.raises(TypeError, match="fresh"), change_run(fresh="a"):
        pass
