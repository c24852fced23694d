"""Ask about many nodes: order, failures, budgets that end half-way, and requests that leave early."""

from __future__ import annotations

import asyncio

import pytest

from tomewise.errors import BadReply, BudgetExceeded, ModelUnavailable, Refused, UsageError
from tomewise.language.budget import Budgeted
from tomewise.language.cached import Cached
from tomewise.language.prompts import Prompts
from tomewise.language.roles import FUSE, FuseIn
from tomewise.memory import ask_each as module
from tomewise.memory.ask_each import ask_each, run_each
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing.scripted import ScriptedModel
from tomewise.types import Progress


def quiet(_: Progress) -> None:
    pass


def inputs(count: int) -> dict[int, FuseIn]:
    return {number: FuseIn(question=f"q{number}", cues=[]) for number in range(count)}


async def test_replies_are_in_the_order_of_the_inputs() -> None:
    async def play(number: int) -> str:
        await asyncio.sleep(0.001 * (7 - number))
        return f"r{number}"

    reports: list[Progress] = []
    replies = await run_each({f"k{n}": n for n in range(7)}, play, reports.append, "asked")
    assert list(replies.items()) == [(f"k{n}", f"r{n}") for n in range(7)]
    assert [progress.done for progress in reports] == [0, 1, 2, 3, 4, 5, 6, 7]
    assert {(progress.label, progress.total) for progress in reports} == {("asked", 7)}
    assert dict(await run_each({}, play, quiet, "nothing")) == {}


async def test_a_reply_that_fails_for_good_is_recorded_and_left_out() -> None:
    def reply(given: FuseIn) -> object:
        return {"q1": BadReply("no JSON"), "q3": Refused("no")}.get(given.question, {"cue": given.question})

    replies = await ask_each(ScriptedModel({"fuse": reply}), FUSE, inputs(5), quiet, "fused")
    assert {key: output.cue for key, output in replies.items()} == {0: "q0", 2: "q2", 4: "q4"}
    assert replies.failed == {1: "no JSON", 3: "no"}


@pytest.mark.parametrize("error", [ModelUnavailable("gone"), UsageError("the prompt is broken")])
async def test_an_error_that_every_call_would_raise_stops_at_once(error: Exception) -> None:
    model = ScriptedModel({"fuse": lambda given: error if given.question == "q3" else {"cue": "x"}}, limit=1)
    with pytest.raises(type(error), match=str(error)):
        await ask_each(model, FUSE, inputs(2000), quiet, "fused")
    assert len(model.calls) < 2000


async def test_running_calls_end_after_the_budget_is_used_up(tmp_path) -> None:
    store = SqlStore.open(tmp_path / "a.tome")
    inside = ScriptedModel({"fuse": lambda given: {"cue": given.question}}, latency=0.01, limit=8)
    reports: list[Progress] = []
    cached = Cached(Budgeted(inside, calls=10), Prompts(), store.calls)
    with pytest.raises(BudgetExceeded, match="10 calls"):
        await ask_each(cached, FUSE, inputs(30), reports.append, "fused")
    assert len(inside.calls) == 10
    assert max(progress.done for progress in reports) == 10
    again = ScriptedModel({"fuse": lambda given: {"cue": given.question}})
    replies = await ask_each(Cached(again, Prompts(), store.calls), FUSE, inputs(30), quiet, "fused")
    assert len(again.calls) == 20, "the cache keeps the ten replies that were paid for"
    assert [output.cue for output in replies.values()] == [f"q{number}" for number in range(30)]
    store.close()


async def test_requests_leave_before_all_are_prepared_and_not_all_wait_at_once(monkeypatch) -> None:
    monkeypatch.setattr(module, "_MOST_AT_ONCE", 50)
    begun, waiting, most, early = 0, 0, 0, 0

    async def play(number: int) -> int:
        nonlocal begun, waiting, most, early
        begun, waiting = begun + 1, waiting + 1
        most = max(most, waiting)
        await asyncio.sleep(0)
        early = early or begun
        await asyncio.sleep(0)
        waiting -= 1
        return number

    await run_each({n: n for n in range(300)}, play, quiet, "asked")
    assert begun == 300
    assert early < 100
    assert most <= 50


async def test_two_batches_share_a_model_fairly() -> None:
    model = ScriptedModel({"fuse": lambda given: {"cue": given.question}}, limit=2, latency=0.001)
    finished: list[str] = []

    async def batch(name: str, count: int) -> None:
        given = {number: FuseIn(question=f"{name}{number}", cues=[]) for number in range(count)}
        await ask_each(model, FUSE, given, quiet, name)
        finished.append(name)

    async with asyncio.TaskGroup() as group:
        group.create_task(batch("many", 200))
        await asyncio.sleep(0.002)
        group.create_task(batch("few", 4))
    assert finished == ["few", "many"]
    assert len(model.calls) == 204
