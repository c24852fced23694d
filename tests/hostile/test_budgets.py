"""Budgets hold whatever the server does: every request counts, and what is under way is reserved."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.language.openai_server import Behaviour, OpenAIServer, fail_with, in_turn, reply_with
from tests.patience import NEVER, SOON
from tests.server.served import serve

from tomewise.errors import BudgetExceeded, ModelError, Refused
from tomewise.language import roles
from tomewise.language.budget import Budget, Budgeted
from tomewise.language.chat import ChatModel
from tomewise.language.retry import Backoff
from tomewise.language.usage import announce_request
from tomewise.memory.ask_each import ask_each
from tomewise.run import Request, change_run, meter
from tomewise.tome.tome import Tome
from tomewise.types import Answer, Document, Spent

GOOD = reply_with('{"cue": "Mara hid it."}')  # 100 tokens in and 20 out
FAST = Backoff(retries=4, first=0.001, longest=0.002)
GIVEN = roles.FuseIn(question="Who hid the letter?", cues=["Mara held it last."])


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def inputs(count: int) -> dict[int, roles.FuseIn]:
    return {number: roles.FuseIn(question=f"Question {number}?", cues=["Mara held it."]) for number in range(count)}


async def ask_all(server: OpenAIServer, count: int, **limits: Any) -> Budgeted:
    """Ask `count` questions at once until the budget refuses."""
    model = ChatModel("openai:gpt-4o-mini", base_url=server.url, backoff=FAST)
    budgeted = Budgeted(model, **limits)
    try:
        with pytest.raises(BudgetExceeded):
            await ask_each(budgeted, roles.FUSE, inputs(count), lambda _: None, "asked")
    finally:
        await model.close()
    return budgeted


@pytest.mark.parametrize(
    "behaviour", [fail_with(500), Behaviour(b"<html>"), reply_with("no JSON"), reply_with(None, refusal="no")],
    ids=["status 500", "page", "unusable", "refused"],
)  # fmt: skip
async def test_calls_bound_the_requests_that_are_sent(behaviour: Behaviour) -> None:
    with OpenAIServer(in_turn(behaviour)) as server, meter() as seen:
        budgeted = await ask_all(server, 40, calls=20)
    assert len(server.requests) == budgeted.spent.calls == seen.total.calls == 20


async def test_a_refusal_counts_with_its_tokens() -> None:
    with OpenAIServer(in_turn(reply_with(None, refusal="I would rather not."))) as server, meter() as seen:
        model = ChatModel("openai:gpt-4o-mini", base_url=server.url, backoff=FAST)
        budgeted = Budgeted(model)
        with pytest.raises(Refused, match="rather not"):
            await budgeted.ask(roles.FUSE, GIVEN)
        await model.close()
    for spent in (budgeted.spent, seen.total):
        assert (spent.calls, spent.input_tokens, spent.output_tokens) == (1, 100, 20)
        assert spent.cost == pytest.approx(100 * 0.15e-6 + 20 * 0.6e-6)


async def test_tokens_are_reserved_before_a_request_is_sent() -> None:
    slow = reply_with('{"cue": "Mara hid it."}', delay=0.02)
    slow.body["usage"] = {"prompt_tokens": 280, "completion_tokens": 500, "total_tokens": 780}
    with OpenAIServer(in_turn(slow)) as server:
        budgeted = await ask_all(server, 40, tokens=3000)
    used = budgeted.spent.input_tokens + budgeted.spent.output_tokens
    assert used == 780 * len(server.requests)
    assert 3000 - 780 < used <= 3000 + 500, "at most one reply more than the limit"
    assert server.most_at_once == 3, "as many as fit with replies of 500 tokens"


async def test_short_replies_leave_room_that_later_requests_take() -> None:
    with OpenAIServer(in_turn(GOOD)) as server:
        budgeted = await ask_all(server, 60, tokens=3000)
    assert len(server.requests) >= 22, "each took 120 tokens, though 500 were reserved for its reply alone"
    assert budgeted.spent.input_tokens + budgeted.spent.output_tokens <= 3000


async def test_money_is_reserved_before_a_request_is_sent() -> None:
    slow = reply_with('{"cue": "Mara hid it."}', delay=0.02)
    slow.body["usage"] = {"prompt_tokens": 280, "completion_tokens": 500, "total_tokens": 780}
    price = 280 * 0.15e-6 + 500 * 0.6e-6
    with OpenAIServer(in_turn(slow)) as server:
        budgeted = await ask_all(server, 40, money=4 * price)
    assert budgeted.spent.cost is not None
    assert 3 * price < budgeted.spent.cost <= 5 * price
    assert server.most_at_once <= 4


async def test_a_small_budget_lets_one_call_go() -> None:
    with OpenAIServer(in_turn(GOOD)) as server:
        model = ChatModel("openai:test", base_url=server.url)
        prompt = model.count_input_tokens(roles.FUSE, GIVEN)
        budgeted = Budgeted(model, tokens=prompt + 1)
        assert (await budgeted.ask(roles.FUSE, GIVEN)).cue == "Mara hid it."
        with pytest.raises(BudgetExceeded, match=f"the next call needs {prompt}"):
            await budgeted.ask(roles.FUSE, GIVEN)
        await model.close()
    assert len(server.requests) == 1


async def test_an_unknown_price_stops_after_one_request() -> None:
    slow = reply_with('{"cue": "Mara hid it."}', delay=0.02)
    with OpenAIServer(in_turn(slow)) as server:
        model = ChatModel("openai:nobody-knows", base_url=server.url)
        budgeted = Budgeted(model, money=1.0)
        asks = [budgeted.ask(roles.FUSE, given) for given in inputs(5).values()]
        outcomes = await asyncio.gather(*asks, return_exceptions=True)
        await model.close()
    assert len(server.requests) == 1
    assert sum("price of openai:nobody-knows is unknown" in str(outcome) for outcome in outcomes) == 4


@pytest.mark.parametrize("model", ["openai:gpt-4o-mini", "openai:nobody-knows"])
async def test_a_limit_of_nothing_sends_nothing_that_may_cost(model: str) -> None:
    with OpenAIServer(in_turn(GOOD)) as server:
        chat = ChatModel(model, base_url=server.url)
        with pytest.raises(BudgetExceeded, match="0 dollars"):
            await Budgeted(chat, money=0.0).ask(roles.FUSE, GIVEN)
        await chat.close()
    assert server.requests == []


async def test_what_could_not_be_sent_costs_nothing_and_what_was_given_up_costs_its_prompt() -> None:
    nobody = Budgeted(ChatModel("openai:gpt-4o-mini", base_url="http://127.0.0.1:9/v1", backoff=FAST))
    with pytest.raises(ModelError, match="cannot be reached"):
        await nobody.ask(roles.FUSE, GIVEN)
    await nobody.close()
    assert nobody.spent.calls == 0
    with OpenAIServer(in_turn(reply_with("late", delay=NEVER))) as server:
        model = ChatModel("openai:gpt-4o-mini", base_url=server.url, timeout=1.0, backoff=Backoff(1, 0.0, 0.0))
        budgeted = Budgeted(model)
        with pytest.raises(ModelError, match="did not reply"):
            await budgeted.ask(roles.FUSE, GIVEN)
        await model.close()
    prompt = model.count_input_tokens(roles.FUSE, GIVEN)
    assert budgeted.spent.calls == len(server.requests) == 3
    assert 2 * prompt < budgeted.spent.input_tokens < 3 * prompt, "the third was the short test request"
    assert budgeted.spent.cost is not None


async def test_a_cancelled_ask_gives_back_what_it_reserved() -> None:
    with OpenAIServer(in_turn(reply_with("late", delay=NEVER), GOOD)) as server:
        model = ChatModel("openai:test", base_url=server.url)
        budgeted = Budgeted(model, calls=2)
        first = asyncio.create_task(budgeted.ask(roles.FUSE, GIVEN))
        assert await asyncio.to_thread(server.arrived.wait, SOON)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert budgeted.spent.calls == 1
        assert (await budgeted.ask(roles.FUSE, GIVEN)).cue == "Mara hid it."
        await model.close()


def test_threads_share_a_budget() -> None:
    class Local:
        name, window = "local", 1000

        async def ask(self, role: Any, given: Any) -> Any:
            async with announce_request(Request(1, 10, lambda *_: 0.0)) as bill:
                await asyncio.sleep(0)
                bill.spent = Spent(calls=1, input_tokens=1, output_tokens=1, cost=0.0)

        def count_input_tokens(self, role: Any, given: Any) -> int:
            return 1

    async def ask_often() -> None:
        for _ in range(200):
            await asyncio.gather(*(budgeted.ask(roles.FUSE, GIVEN) for _ in range(4)))

    budgeted = Budgeted(Local(), tokens=100_000)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as threads:
            for done in [threads.submit(asyncio.run, ask_often()) for _ in range(4)]:
                done.result(30)
    finally:
        sys.setswitchinterval(interval)
    assert (budgeted.spent.calls, budgeted._budget._reserved.calls) == (3200, 0)


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
            with change_run(budget=Budget(name="test", calls=1)):
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
        capped = threads.submit(served.post, "/api/tomes/a/ask", {**body, "max_calls": 1})
        assert server.arrived.wait(SOON)
        free = threads.submit(served.post, "/api/tomes/a/ask", body)
        time.sleep(0.5)
        release.set()
        assert capped.result(SOON).json()["error"]["code"] == "budget"
        assert free.result(SOON).json()["text"] == "The clerk."
    assert len(server.requests) == 2
