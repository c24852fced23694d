"""Slots: how many calls run at a time, whose turn it is, and budgets that are used up while calls wait."""

from __future__ import annotations

import asyncio
import random

import pytest
from tests.patience import SOON

from tomewise.errors import BudgetExceeded, UsageError
from tomewise.language import roles
from tomewise.language.budget import Budgeted
from tomewise.language.call_slots import CallSlots
from tomewise.run import change_run
from tomewise.testing.scripted import ScriptedModel


async def take_slot(slots: CallSlots, name: str, order: list[str]) -> None:
    async with slots:
        order.append(name)
        await asyncio.sleep(0)


async def test_the_shortest_queue_goes_first_and_each_keeps_its_order() -> None:
    slots, order = CallSlots(1), list[str]()
    async with asyncio.TaskGroup() as group:
        with change_run(queue=object()):
            for number in range(6):
                group.create_task(take_slot(slots, f"a{number}", order))
        await asyncio.sleep(0)
        with change_run(queue=object()):
            for number in range(2):
                group.create_task(take_slot(slots, f"b{number}", order))
    assert order == ["a0", "a1", "b0", "b1", "a2", "a3", "a4", "a5"]


async def test_who_goes_ahead_waits_for_nobody_of_the_same_queue() -> None:
    slots, order = CallSlots(1), list[str]()

    async def go_ahead() -> None:
        async with slots.ahead():
            order.append("repair")

    async with asyncio.TaskGroup() as group:
        for number in range(3):
            group.create_task(take_slot(slots, f"a{number}", order))
        await asyncio.sleep(0)
        group.create_task(go_ahead())
    assert order == ["a0", "a1", "repair", "a2"], "a1 had its slot before"
    async with asyncio.timeout(SOON), slots:
        pass


@pytest.mark.parametrize("seed", range(20))
async def test_never_more_than_the_limit_and_nobody_is_forgotten(seed: int) -> None:
    dice = random.Random(seed)
    limit = dice.randint(1, 4)
    slots = CallSlots(limit)
    inside = most = done = 0

    async def enter() -> None:
        nonlocal inside, most, done
        async with slots:
            inside += 1
            most = max(most, inside)
            try:
                await asyncio.sleep(dice.choice([0, 0, 0.001]))
            finally:
                inside -= 1
        done += 1

    tasks = []
    for _ in range(40):
        with change_run(queue=object()):
            tasks.append(asyncio.create_task(enter()))
        if dice.random() < 0.4:
            await asyncio.sleep(0)
        if dice.random() < 0.3:
            dice.choice(tasks).cancel()
    ended = await asyncio.gather(*tasks, return_exceptions=True)
    gone = sum(isinstance(each, asyncio.CancelledError) for each in ended)
    assert most <= limit
    assert done + gone == 40
    await asyncio.wait_for(enter(), SOON)  # no slot was lost


async def test_tokens_are_counted_again_when_a_call_gets_its_turn() -> None:
    inside = ScriptedModel({"fuse": lambda given: {"cue": "x"}}, limit=2, latency=0.001)
    budgeted = Budgeted(inside, tokens=30)
    asks = [budgeted.ask(roles.FUSE, roles.FuseIn(question=f"q{number}", cues=[])) for number in range(20)]
    ended = await asyncio.gather(*asks, return_exceptions=True)
    refused = [each for each in ended if isinstance(each, BudgetExceeded)]
    assert len(refused) + sum(isinstance(each, roles.CueOut) for each in ended) == 20
    spent = budgeted.spent
    assert spent.calls == 20 - len(refused)
    each = (spent.input_tokens + spent.output_tokens) / spent.calls
    assert 30 <= spent.calls * each < 30 + 2 * each, "only the calls that were under way pass the limit"


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_that_lets_nothing_through_is_refused(limit: int) -> None:
    with pytest.raises(UsageError, match=f"a limit of {limit} calls"):
        CallSlots(limit)
