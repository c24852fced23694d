"""The budget at the hub: what a dead worker had reserved comes free, and what waits can be given up."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.patience import SOON

from tomewise.cluster.pool_worker import Failed
from tomewise.errors import BudgetExceeded
from tomewise.evaluate.on_workers import Hub, HubAccount
from tomewise.language import roles
from tomewise.language.budget import Budget
from tomewise.language.extractive import ExtractiveModel
from tomewise.language.usage import announce_request
from tomewise.language.wrapped import Wrapped
from tomewise.run import Request
from tomewise.testing import HashEmbedder
from tomewise.types import Cost, Limit

REQUEST = Request(100, 50, lambda tokens_in, tokens_out: 0.0)
SPENT = Cost(calls=1, input_tokens=100, output_tokens=20)
GIVEN = roles.FuseIn(question="Who hid the letter?", cues=["Mara held it last."])


class Method:
    def __init__(self, call: Any) -> None:
        self._call = call

    def remote(self, *given: Any) -> asyncio.Task[Any]:
        """Begin the call at once, whether somebody waits for it or not."""
        return asyncio.ensure_future(self._call(*given))


class Actor:
    """A hub whose methods are called as those of an actor are."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    def __getattr__(self, verb: str) -> Method:
        return Method(getattr(self._hub, verb))


@pytest.fixture
def budget() -> Budget:
    return Budget(Limit(calls=2), name="a model")


@pytest.fixture
def hub(tmp_path: Path, budget: Budget) -> Iterator[Hub]:
    made = Hub(tmp_path / "calls.tome", lambda: budget)
    yield made
    made._store.close()


def make_budgeted(model: Any, hub: Hub, number: int = 0) -> Wrapped:
    return Wrapped(model, HubAccount(Actor(hub), (number, 0)).ask)


async def check_nothing_is_reserved(hub: Hub, budget: Budget) -> None:
    """What a group had reserved would count once the group begins again."""
    before = budget.spent.calls
    for number in range(3):
        await hub.begin(number)
    assert budget.spent.calls == before == 2, "what was sent counts"


async def wait_a_little(waiting: asyncio.Task[Any]) -> None:
    for _ in range(20):
        await asyncio.sleep(0)
    assert not waiting.done()


async def test_a_request_waits_for_room_and_is_refused_when_all_is_spent(hub: Hub) -> None:
    assert [await hub.reserve((number, 0), "a", REQUEST) for number in (0, 1)] == [1, 1]
    waiting = asyncio.create_task(hub.reserve((1, 0), "b", REQUEST))
    await wait_a_little(waiting)
    await hub.settle((0, 0), "a", Cost())  # it was never sent
    assert await waiting == 1
    await hub.settle((1, 0), "a", SPENT)
    await hub.settle((1, 0), "b", SPENT)
    refused = await hub.reserve((0, 0), "c", REQUEST)
    assert isinstance(refused, Failed)
    assert isinstance(refused.error, BudgetExceeded)
    assert isinstance(await hub.check(), Failed)


async def test_what_a_dead_worker_had_sent_counts_and_is_waited_for_no_longer(hub: Hub, budget: Budget) -> None:
    place = await hub.begin(0)
    assert await hub.reserve(place, "a", REQUEST) == 1
    assert await hub.reserve((1, 0), "a", REQUEST) == 1
    orphan = asyncio.create_task(hub.reserve(place, "b", REQUEST))
    waiting = asyncio.create_task(hub.reserve((1, 0), "b", REQUEST))
    await wait_a_little(waiting)
    await hub.begin(0)  # on another worker
    assert isinstance(await asyncio.wait_for(orphan, SOON), Failed)
    await wait_a_little(waiting)  # for the request of group 1
    await hub.settle(place, "a", SPENT)  # the dead worker was only out of reach: it is counted already
    await hub.settle((1, 0), "a", Cost())
    assert await waiting == 1
    refused = await asyncio.wait_for(hub.reserve(place, "c", REQUEST), SOON)
    assert isinstance(refused, Failed), "nobody would settle it"
    assert budget.spent.calls == 1


async def test_a_cancelled_ask_holds_nothing(hub: Hub, budget: Budget) -> None:
    class Announcing(ExtractiveModel):
        async def ask(self, role: Any, given: Any) -> Any:
            async with announce_request(REQUEST):
                await asyncio.sleep(3600)

    models = [make_budgeted(Announcing(HashEmbedder()), hub, number) for number in range(3)]
    asks = [asyncio.create_task(model.ask(roles.FUSE, GIVEN)) for model in models]
    await wait_a_little(asks[2])
    for ask in reversed(asks):  # the last one waits for room
        ask.cancel()
        await asyncio.gather(ask, return_exceptions=True)
    for _ in range(20):
        await asyncio.sleep(0)
    await check_nothing_is_reserved(hub, budget)


async def test_a_model_that_announces_nothing_is_counted_after(hub: Hub) -> None:
    model = make_budgeted(ExtractiveModel(HashEmbedder()), hub)
    for _ in range(2):
        await model.ask(roles.FUSE, GIVEN)
        await asyncio.sleep(0)
    with pytest.raises(BudgetExceeded, match="the limit of 2 calls of a model is used up"):
        await model.ask(roles.FUSE, GIVEN)


async def test_requests_of_one_ask_may_run_side_by_side(hub: Hub, budget: Budget) -> None:
    class Voting(ExtractiveModel):
        async def ask(self, role: Any, given: Any) -> Any:
            async def vote(seconds: float) -> None:
                async with announce_request(REQUEST) as bill:
                    await asyncio.sleep(seconds)
                    bill.spent = SPENT

            await asyncio.gather(vote(0.02), vote(0.01))
            return await super().ask(role, given)

    model = make_budgeted(Voting(HashEmbedder()), hub)
    await asyncio.wait_for(model.ask(roles.FUSE, GIVEN), 10)
    await asyncio.sleep(0)
    await check_nothing_is_reserved(hub, budget)
