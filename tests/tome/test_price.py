"""The price of a question and of a build: foretold as it is paid, shown and asked for where it is high."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.language.openai_server import Behaviour, OpenAIServer
from tests.tome.test_paying import play, write_book

from tomewise import Tome
from tomewise.errors import BudgetExceeded, UsageError
from tomewise.language import adapting
from tomewise.recall.flat import Dense
from tomewise.systems.kit import answer_once
from tomewise.testing import ScriptedModel
from tomewise.types import Cost, Limit

QUESTION = "Who lit lamp 3?"
SLOW, FAST = (10, 5), (50_000, 5_000)  # tokens read and written in a second
FACT = {"label": "E1", "quote": "Ada Marsh", "fact": "Ada Marsh lit a lamp."}
REPLIES: dict[str, Any] = {
    "answer": {"answer": "Ada", "quotes": []},
    "carry_note": {"note": "Ada lit lamps."},
    "plan_reading": {"questions": ["Who lit it?"], "nets": ["lamps"], "needs_all": True},
    "extract_notes": {"facts": [FACT]},
    "mark_facts": {"facts": [FACT]},
    "infer_notes": {"inferences": []},
    "refine_questions": {"answered": [], "new": []},
    "update_ledger": {"inferences": [], "answered": [], "new": []},
    "filter_facts": {"facts": []},
    "step": {"sufficient": False, "question": "Who is Ada?"},
}


def teach(server: OpenAIServer, speed: tuple[int, int]) -> None:
    """Let this machine know how fast the model is."""
    adapter = adapting.Adapter(f"openai:test at {server.url}")
    sizes = ((100, 50), (1_000, 20), (3_000, 90))
    timings = tuple((read, written, read / speed[0] + written / speed[1]) for read, written in sizes)
    adapter.known = adapting.Learnt(timings=timings)
    adapter.keep()


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(play) as running:
        yield running


@pytest.fixture(name="filled")
def fill_tome(here):
    with Tome.open(here / "a.tome", embedder="hash", settings={"passage_tokens": 64}) as tome:
        tome.add(write_book(range(5)))
    return here / "a.tome"


@pytest.fixture
def open_book(filled, server):
    """Opens the tome with a model at the server."""
    return lambda **more: Tome.open(filled, model="openai:test", settings={"base_url": server.url, **more})


@pytest.mark.parametrize("system", ["hybrid", "naive", "bm25 limit=3", "full_context"])
def test_of_a_question_of_one_call_the_tokens_are_foretold_exactly(filled, system):
    model = ScriptedModel({name: lambda _, reply=reply: reply for name, reply in REPLIES.items()})
    with Tome.open(filled, model=model) as tome:
        foretold = tome.estimate(QUESTION, system=system)
        assert not model.calls
        paid = tome.ask(QUESTION, system=system).cost
        assert (foretold.total.calls, foretold.total.input_tokens) == (paid.calls, paid.input_tokens)
        assert (foretold.bound, foretold.model) == ("", "scripted")
        assert foretold.total.output_tokens == 256
        for number in range(20):
            tome.ask(f"{QUESTION} {number}?", system=system)
        again = tome.estimate(QUESTION, system=system).total
        assert abs(again.output_tokens - paid.output_tokens) <= 1, "replies have the mean length of those that came"


@pytest.mark.parametrize(
    "system", ["chain_of_agents chunk=100", "cosmir chunk=100", "read_through chunk=100", "stepwise", "investigate"]
)
def test_of_more_calls_no_more_are_made_and_no_more_tokens_read_than_foretold(filled, system):
    replies = {name: lambda _, reply=reply: reply for name, reply in REPLIES.items()}
    model = ScriptedModel(replies, others=None)
    with Tome.open(filled, model=model) as tome:
        system = "hybrid+stepwise" if system == "stepwise" else system
        foretold = tome.estimate(QUESTION, system=system)
        assert not model.calls
        assert foretold.bound == "at most"
        if system == "investigate":
            return
        paid = tome.ask(QUESTION, system=system).cost
        assert paid.calls <= foretold.total.calls
        assert paid.input_tokens <= foretold.total.input_tokens
        if system.startswith(("chain", "cosmir")):
            assert paid.calls == foretold.total.calls


def test_a_system_that_is_wired_already_has_no_price(filled):
    with Tome.open(filled) as tome, pytest.raises(UsageError, match="cannot be priced"):
        tome.estimate(QUESTION, system=answer_once(tome.kit, Dense(tome.store, tome.kit.embedder)))


def test_minutes_of_a_question_and_of_a_build_are_those_that_they_take(open_book, server):
    """The server is as slow as it was measured to be: within a factor of 1.5."""
    speed = (4_000, 2_000)

    def reply(request: dict[str, Any]) -> Behaviour:
        made = play(request)
        message = made.body["choices"][0]["message"]
        wanted = request["response_format"]["json_schema"]["schema"]["properties"]
        message["content"] = json.dumps({k: v for k, v in json.loads(message["content"]).items() if k in wanted})
        read = sum(len(turn["content"]) for turn in request["messages"]) // 4
        written = len(message["content"]) // 4
        made.body["usage"].update(prompt_tokens=read, completion_tokens=written)
        return Behaviour(made.body, delay=read / speed[0] + written / speed[1])

    server.handler = reply
    teach(server, speed)
    with open_book(limit=1) as tome:
        for number in range(20):  # from which the length of replies is known
            tome.ask(f"Who lit lamp 1 on day {number}?", system="naive")
        foretold = tome.estimate(QUESTION, system="naive").total.model_seconds
        assert foretold / 1.5 < tome.ask(QUESTION, system="naive").cost.model_seconds < foretold * 1.5
        tome.build("cogitorag extraction=facts")
        tome.add(replace(write_book(range(5, 9)), id="b"))
        foretold = tome.memory.estimate("cogitorag extraction=facts").total.model_seconds
        assert foretold / 1.5 < tome.build("cogitorag extraction=facts").cost.model_seconds < foretold * 1.5


def test_a_slow_model_is_shown_less_and_the_trace_says_so_once(open_book, server):
    teach(server, SLOW)
    with open_book() as tome:
        answer = tome.ask(QUESTION, system="hybrid")
        (lowered,) = [event for event in answer.events if event.name == "context lowered"]
        assert lowered.detail["context"] == 1_200
        assert answer.system == "hybrid"
        stated = tome.ask(QUESTION, system="hybrid context=1200")
        assert stated.system == "hybrid context=1200"
        assert "context lowered" not in [event.name for event in stated.events]
        for stated in ("hybrid context=6000", "full_context"):
            assert "context lowered" not in [event.name for event in tome.ask(QUESTION, system=stated).events]
    teach(server, (50, 5))
    with open_book() as tome:
        (event,) = [each for each in tome.ask(QUESTION, system="naive").events if each.name == "context lowered"]
        assert event.detail["context"] == 2_000
    teach(server, FAST)
    with open_book() as tome:
        assert "context lowered" not in [event.name for event in tome.ask(QUESTION, system="naive").events]


# ---------------------------------------------------------------- shown and asked for


@pytest.fixture
def ask(command, filled, server):
    def run(*words: str):
        return command(*words, "--tome", filled, "--model", "openai:test", "--base-url", server.url)

    return run


@pytest.mark.parametrize("words", [("ask", QUESTION), ("build", "--system", "cogitorag")])
def test_above_two_minutes_a_terminal_is_asked_and_a_no_pays_nothing(ask, server, type_reply, words):
    teach(server, SLOW)
    type_reply("n\n")
    ran = ask(*words)
    assert ran.code != 0
    assert "this takes" in ran.err
    assert "min" in ran.err
    assert not server.requests
    type_reply("y\n")
    assert ask(*words).code == 0
    assert server.requests


def test_with_yes_or_below_the_price_nobody_is_asked_and_elsewhere_it_is_said(ask, server, type_reply):
    type_reply("n\n")
    assert ask("ask", QUESTION).code == 0, "nothing is known of the speed yet"
    teach(server, SLOW)
    assert ask("ask", "Who lit lamp 1?", "--yes").code == 0
    teach(server, FAST)
    assert ask("ask", "Who lit lamp 2?").code == 0


def test_where_nobody_can_be_asked_it_goes_on_and_says_so(ask, server, monkeypatch):
    teach(server, SLOW)
    ran = ask("ask", QUESTION)
    assert ran.code == 0
    assert ran.err.startswith("this takes 1 call, ")
    monkeypatch.setenv("TOMEWISE_ASK_ABOVE", "99 minutes")
    assert "this takes" not in ask("ask", "Who lit lamp 4?").err


def test_an_estimate_of_a_question_prints_and_asks_nobody(ask, server):
    teach(server, SLOW)
    ran = ask("ask", QUESTION, "--estimate")
    assert (ran.code, "at the speed" in ran.out, "nothing was asked yet" in ran.out) == (0, True, True)
    price = json.loads(ask("ask", QUESTION, "--estimate", "--json").out)
    assert price["total"]["calls"] == 1
    assert price["total"]["model_seconds"] > 60
    assert price["accept"] == "2 calls"
    assert not server.requests


# ---------------------------------------------------------------- limits


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("20 calls", Limit(calls=20)),
        ("1 call, 90,000 tokens, $0.5, 2.5 minutes", Limit(calls=1, tokens=90_000, dollars=0.5, minutes=2.5)),
        ("$1,000", Limit(dollars=1_000)),
        ("0 calls", Limit(calls=0)),
        ("1,234,567,890,123 tokens", Limit(tokens=1_234_567_890_123)),
        ("0.00001 minutes", Limit(minutes=0.00001)),
    ],
)
def test_a_limit_is_written_as_it_is_read(text, limit):
    assert Limit.parse(text) == limit
    assert str(limit) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "20",
        "20 apples",
        "-1 calls",
        "1.5 calls",
        "$",
        "20 calls 5 minutes",
        "∞ calls",
        "$1e5",
        "$0,50",
        "1,,2 calls",
        "٣ calls",
    ],
)
def test_what_is_no_limit_is_refused(text):
    with pytest.raises(ValueError, match="a limit should be such as"):
        Limit.parse(text)
    with pytest.raises(UsageError, match="a limit should be such as") as refused:
        Tome.open(settings={"budget": text})
    assert str(refused.value).count(", not ") == 1


def test_a_price_above_no_limit_is_refused(filled):
    with Tome.open(filled) as tome, pytest.raises(UsageError, match="a limit should be such as"):
        tome.price_above("5 hours", QUESTION)


def test_a_limit_holds_what_it_bounds_and_the_lower_one_counts():
    cost = Cost(calls=2, input_tokens=100, output_tokens=20, dollars=None, model_seconds=90.0)
    assert Limit.parse("2 calls, 120 tokens, 1.5 minutes").holds(cost)
    assert not any(Limit.parse(text).holds(cost) for text in ("1 call", "119 tokens", "$9", "1.4 minutes"))
    assert Limit.parse("2 calls, $1", None, "3 calls, 1 minute") == Limit.parse("2 calls, $1, 1 minute")


def test_minutes_are_bounded_and_what_came_is_kept(open_book, server):
    server.handler = lambda request: Behaviour(play(request).body, delay=0.3)
    with (
        open_book(budget="0.01 minutes", limit=1) as tome,
        pytest.raises(BudgetExceeded, match=r"limit of 0.01 minutes"),
    ):
        tome.build("cogitorag")
    assert 2 <= len(server.requests) <= 4
