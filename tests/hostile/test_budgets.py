"""Budgets hold whatever the server does: every request counts, and what is under way is reserved."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.language.openai_server import (
    CUE,
    FAST,
    GIVEN,
    GOOD,
    Behaviour,
    OpenAIServer,
    fail_with,
    fuse,
    in_turn,
    open_chat,
    reply_with,
)
from tests.patience import NEVER, SOON
from tests.server.served import serve

from tomewise.errors import BudgetExceeded, ModelError, Refused
from tomewise.language import roles
from tomewise.language.budget import Budget
from tomewise.language.chat import ChatModel
from tomewise.language.retry import Backoff
from tomewise.language.wrapped import Wrapped
from tomewise.memory.ask_each import ask_each
from tomewise.run import Request, change_run, meter
from tomewise.testing.scripted import ScriptedModel
from tomewise.tome.tome import Tome
from tomewise.types import Answer, Cost, Document, Limit

pytestmark = pytest.mark.usefixtures("here")  # no key, no proxy
USAGE = {"prompt_tokens": 280, "completion_tokens": 500, "total_tokens": 780}
SLOW = Behaviour({**GOOD.body, "usage": USAGE}, delay=0.02)


def inputs(count: int) -> dict[int, roles.FuseIn]:
    return {number: roles.FuseIn(question=f"Question {number}?", cues=["Mara held it."]) for number in range(count)}


@asynccontextmanager
async def open_budget(
    *behaviours: Behaviour, name: str = "openai:gpt-4o-mini", timeout: float = 60.0, **limits: Any
) -> AsyncIterator[tuple[Wrapped, Budget, OpenAIServer]]:
    """A model within a budget, the budget, and the server that it asks."""
    backoff = Backoff(retries=4, first=0.001, longest=0.002)
    async with open_chat(*behaviours, name=name, timeout=timeout, backoff=backoff) as (model, server):
        budget = Budget(Limit(**limits), name=model.name)
        yield Wrapped(model, budget.ask), budget, server


async def ask_all(behaviour: Behaviour, count: int, **limits: Any) -> tuple[Cost, OpenAIServer]:
    """Ask `count` questions at once until the budget refuses. Returns what was spent."""
    async with open_budget(behaviour, **limits) as (budgeted, budget, server):
        with pytest.raises(BudgetExceeded):
            await ask_each(budgeted, roles.FUSE, inputs(count), lambda _: None, "asked")
    return budget.spent, server


@pytest.mark.parametrize(
    "behaviour", [fail_with(500), Behaviour(b"<html>"), reply_with("no JSON"), reply_with(None, refusal="no")],
    ids=["status 500", "page", "unusable", "refused"],
)  # fmt: skip
async def test_calls_bound_the_requests_that_are_sent(behaviour: Behaviour) -> None:
    with meter() as seen:
        spent, server = await ask_all(behaviour, 40, calls=20)
    assert len(server.requests) == spent.calls == seen.total.calls == 20


async def test_a_refusal_counts_with_its_tokens() -> None:
    async with open_budget(reply_with(None, refusal="I would rather not.")) as (budgeted, budget, _):
        with meter() as seen, pytest.raises(Refused, match="rather not"):
            await fuse(budgeted)
    for spent in (budget.spent, seen.total):
        assert (spent.calls, spent.input_tokens, spent.output_tokens) == (1, 100, 20)
        assert spent.dollars == pytest.approx(100 * 0.15e-6 + 20 * 0.6e-6)


async def test_tokens_are_reserved_before_a_request_is_sent() -> None:
    spent, server = await ask_all(SLOW, 40, tokens=3000)
    used = spent.input_tokens + spent.output_tokens
    assert used == 780 * len(server.requests)
    assert 3000 - 780 < used <= 3000 + 500, "at most one reply more than the limit"
    assert server.most_at_once == 3, "as many as fit with replies of 500 tokens"


async def test_short_replies_leave_room_that_later_requests_take() -> None:
    spent, server = await ask_all(GOOD, 60, tokens=3000)
    assert len(server.requests) >= 22, "each took 120 tokens, though 500 were reserved for its reply alone"
    assert spent.input_tokens + spent.output_tokens <= 3000


async def test_money_is_reserved_before_a_request_is_sent() -> None:
    price = 280 * 0.15e-6 + 500 * 0.6e-6
    spent, server = await ask_all(SLOW, 40, dollars=4 * price)
    assert spent.dollars is not None
    assert 3 * price < spent.dollars <= 5 * price
    assert server.most_at_once <= 4


async def test_a_small_budget_lets_one_call_go() -> None:
    async with open_chat() as (model, server):
        prompt = model.count_input_tokens(roles.FUSE, GIVEN)
        with pytest.raises(BudgetExceeded, match=rf"0 of {prompt - 1} tokens .* needs {prompt}"):
            await fuse(Wrapped(model, Budget(Limit(tokens=prompt - 1), name=model.name).ask))
        budgeted = Wrapped(model, Budget(Limit(tokens=prompt + 1), name=model.name).ask)
        assert await fuse(budgeted) == CUE
        with pytest.raises(BudgetExceeded, match=f"the next call needs {prompt}"):
            await fuse(budgeted)
    assert len(server.requests) == 1


async def test_an_unknown_price_stops_after_one_request() -> None:
    async with open_budget(SLOW, name="openai:nobody-knows", dollars=1.0) as (budgeted, _, server):
        outcomes = await asyncio.gather(*(fuse(budgeted) for _ in range(5)), return_exceptions=True)
    assert len(server.requests) == 1
    assert sum("price of openai:nobody-knows is unknown" in str(outcome) for outcome in outcomes) == 4


@pytest.mark.parametrize("name", ["openai:gpt-4o-mini", "openai:nobody-knows"])
async def test_a_limit_of_nothing_sends_nothing_that_may_cost(name: str) -> None:
    async with open_budget(name=name, dollars=0.0) as (budgeted, _, server):
        with pytest.raises(BudgetExceeded, match="0 dollars"):
            await fuse(budgeted)
    assert server.requests == []


async def test_what_could_not_be_sent_costs_nothing() -> None:
    async with open_budget() as (budgeted, budget, server):
        server.stop()
        with pytest.raises(ModelError, match="cannot be reached"):
            await fuse(budgeted)
    assert budget.spent.calls == 0


async def test_what_was_given_up_costs_its_prompt() -> None:
    late, once = reply_with("late", delay=NEVER), Backoff(1, 0.0, 0.0)
    async with open_chat(late, name="openai:gpt-4o-mini", timeout=0.5, backoff=once) as (model, server):
        budget = Budget(name=model.name)
        with pytest.raises(ModelError, match="did not reply"):
            await fuse(Wrapped(model, budget.ask))
        prompt = model.count_input_tokens(roles.FUSE, GIVEN)
    assert budget.spent.calls == len(server.requests) == 3
    assert 2 * prompt < budget.spent.input_tokens < 3 * prompt, "the third was the short test request"
    assert budget.spent.dollars is not None


async def test_a_cancelled_ask_gives_back_what_it_reserved() -> None:
    async with open_budget(reply_with("late", delay=NEVER), GOOD, calls=2) as (budgeted, budget, server):
        first = asyncio.create_task(fuse(budgeted))
        assert await asyncio.to_thread(server.arrived.wait, SOON)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert budget.spent.calls == 1
        assert await fuse(budgeted) == CUE


async def test_minutes_end_though_calls_overlap_all_the_time() -> None:
    budget, request = Budget(Limit(minutes=0.0005), name="test"), Request(1, 1, lambda *_: 0.0)
    await budget.reserve(request)
    await asyncio.sleep(0.05)
    late = asyncio.create_task(budget.reserve(request))
    await asyncio.sleep(0)
    assert not late.done(), "the time is up while the first one is under way"
    budget.settle(request, Cost(calls=1))
    with pytest.raises(BudgetExceeded, match="minutes"):
        await late


def test_threads_share_a_budget() -> None:
    async def ask_often() -> None:
        for _ in range(200):
            await asyncio.gather(*(fuse(budgeted) for _ in range(4)))

    model = ScriptedModel({"fuse": lambda given: {"cue": "x"}})
    budget = Budget(Limit(calls=3201), name=model.name)
    budgeted = Wrapped(model, budget.ask)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as threads:
            for done in [threads.submit(asyncio.run, ask_often()) for _ in range(4)]:
                done.result(SOON)
    finally:
        sys.setswitchinterval(interval)
    assert budget.spent.calls == len(model.calls) == 3200
    last = asyncio.run(asyncio.wait_for(fuse(budgeted), SOON))  # it would wait for what is still reserved
    assert last == "x"


# ---------------------------------------------------------------- two equal questions at once, one of them within a cap

ANSWER = '{"answer": "The clerk.", "choice": null, "quotes": []}'
QUESTION = "Who forged the letter?"
LETTER = Document(id="letter", text="The clerk forged the letter in May. The doctor was away.")


def play_bad_first(release: threading.Event) -> Callable[[Any], Behaviour]:
    """A first reply that needs a repair, once this is set, and good ones after it."""
    return in_turn(Behaviour(reply_with("no JSON").body, until=release, delay=NEVER), reply_with(ANSWER))


async def test_the_cap_of_one_question_does_not_end_an_equal_one(here: Path) -> None:
    release = threading.Event()
    with OpenAIServer(play_bad_first(release)) as server:
        model = ChatModel("openai:test", base_url=server.url, backoff=FAST)
        tome = Tome.open(here / "a.tome", embedder="hash", model=model)
        await tome.aadd(LETTER)

        async def ask_once() -> Answer:
            with change_run(budget=Budget(Limit(calls=1), name="test")):
                return await tome.aask(QUESTION, system="naive")

        capped = asyncio.create_task(ask_once())
        assert await asyncio.to_thread(server.arrived.wait, SOON)
        free = asyncio.create_task(tome.aask(QUESTION, system="naive"))
        await asyncio.sleep(0.5)
        release.set()
        outcomes = await asyncio.gather(capped, free, return_exceptions=True)
        await tome.aclose()
    assert isinstance(outcomes[0], BudgetExceeded)
    assert isinstance(outcomes[1], Answer)
    assert outcomes[1].text == "The clerk."
    assert len(server.requests) == 2


def test_a_client_with_a_cap_does_not_end_the_equal_question_of_another(here: Path) -> None:
    release = threading.Event()
    with Tome.open(here / "a.tome", embedder="hash") as tome:
        tome.add(LETTER)
    with (
        OpenAIServer(play_bad_first(release)) as server,
        ThreadPoolExecutor(2) as threads,
        serve(here, "a.tome", "--model", "openai:test", "--base-url", server.url) as served,
    ):
        body = {"question": QUESTION, "system": "naive"}
        capped = threads.submit(served.post, "/api/tomes/a/ask", {**body, "budget": "1 calls"})
        assert server.arrived.wait(SOON)
        free = threads.submit(served.post, "/api/tomes/a/ask", body)
        time.sleep(0.5)
        release.set()
        assert capped.result(SOON).json()["error"]["code"] == "budget"
        assert free.result(SOON).json()["text"] == "The clerk."
    assert len(server.requests) == 2
