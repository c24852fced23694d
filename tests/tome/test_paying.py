"""What is asked of models and what is paid, seen from a tome and from a server: nothing twice, and within limits."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import ceil
from pathlib import Path
from typing import Any

import pytest
from tests.language.openai_server import Behaviour, OpenAIServer, in_turn, reply_with

from tomewise import Document, Tome
from tomewise.errors import BudgetExceeded, KeepsFailing, ModelError
from tomewise.language import roles
from tomewise.language.budget import Budget
from tomewise.language.chat import ChatModel
from tomewise.language.price_list import find_price
from tomewise.language.spec import ModelSpec
from tomewise.run import change_run
from tomewise.types import Limit

pytestmark = pytest.mark.usefixtures("here")  # no key, no proxy
QUESTION = "Who lit lamp 3?"
GOOD, BAD = reply_with('{"answer": "Ada", "quotes": [], "cue": "Ada"}'), reply_with("no JSON")
BUILT = "cogitorag extraction=facts"  # gists of passages, and facts of gists
PASSAGES = 5
OpenTome = Callable[..., Tome]


def write_book(numbers: Iterable[int]) -> Document:
    """A document with one passage for each of these lamps."""
    rest = "Nobody asked her why, and she told nobody what she had seen from the gallery that night. " * 2
    return Document(id="book", text="\n\n".join(f"The keeper, Ada Marsh, lit lamp {each}. {rest}" for each in numbers))


def list_lamps(request: dict[str, Any]) -> list[str]:
    """The lamps of the passages that a request asks about; of evidence, one."""
    prompt = request["messages"][1]["content"]
    return re.findall(r"<passage[^>]*>[^<]*?lamp (\d)", prompt) or re.findall(r"lamp (\d)", prompt)[:1]


def play(request: dict[str, Any]) -> Behaviour:
    """A good reply to every role here, with an item for each passage where there are several."""
    items = [
        {
            "label": f"P{place}",
            "answer": "Ada",
            "quotes": [],
            "notes": "",
            "memory": f"Ada Marsh lit lamp {number}.",
            "entities": ["Ada Marsh"],
            "triples": [["Ada Marsh", "lit", f"lamp {number}"]],
        }
        for place, number in enumerate(list_lamps(request), start=1)
    ]
    return reply_with(json.dumps({**items[0], "passages": items}), delay=0.02)


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(play) as running:
        yield running


@pytest.fixture
def open_tome(here: Path, server: OpenAIServer) -> OpenTome:
    """Opens the tome of this test, which has some passages, with a model at the server."""

    def open_it(model: str | ChatModel = "openai:small", **settings: Any) -> Tome:
        settings = {"base_url": server.url, "limit": 4, "passage_tokens": 64, "overlap": 0, **settings}
        tome = Tome.open(here / "a.tome", embedder="hash", model=model, settings=settings)
        tome.add(write_book(range(PASSAGES)))
        assert len(tome.store.passages()) == PASSAGES
        return tome

    return open_it


def put_anew(tome: Tome, *numbers: int) -> None:
    """Remove the book and add one with these lamps: the memory of it is gone, the replies are not."""
    tome.remove("book")
    tome.add(write_book(numbers))


def count_repeated(server: OpenAIServer) -> int:
    """How many requests were sent more than once."""
    counts = Counter(json.dumps([each["model"], each["messages"]]) for each in server.requests)
    return sum(count > 1 for count in counts.values())


# ---------------------------------------------------------------- nothing is paid twice


async def test_equal_questions_at_once_are_one_request_that_one_of_them_pays(
    server: OpenAIServer, open_tome: OpenTome
) -> None:
    tome = await asyncio.to_thread(open_tome)
    answers = await asyncio.gather(*(tome.aask(QUESTION, system="naive") for _ in range(3)))
    await tome.aclose()
    assert [answer.text for answer in answers] == ["Ada"] * 3
    assert sorted(answer.cost.calls for answer in answers) == [0, 0, 1]
    assert len(server.requests) == 1


@pytest.mark.parametrize("together", [1, 3])
def test_a_build_that_a_limit_stops_goes_on_without_what_it_paid(
    server: OpenAIServer, open_tome: OpenTome, together: int
) -> None:
    system = f"{BUILT} together={together}"
    with open_tome(budget="2 calls") as tome, pytest.raises(BudgetExceeded, match="limit of 2 calls"):
        tome.build(system)
    assert len(server.requests) == 2
    with open_tome() as tome:
        tome.build(system)
        assert count_repeated(server) == 0
        assert len(server.requests) == 2 * ceil(PASSAGES / together), "gists, then their facts"
        server.requests.clear()
        assert tome.build(system).cost.calls == 0
    assert server.requests == []


def test_passages_that_were_asked_about_together_are_kept_one_by_one(server: OpenAIServer, open_tome: OpenTome) -> None:
    with open_tome() as tome:
        tome.build(f"{BUILT} together=4")
        put_anew(tome, 9, *range(PASSAGES))
        server.requests.clear()
        tome.build(f"{BUILT} together=4")
    assert list(map(list_lamps, server.requests)) == [["9", "0"], ["9"]], "0 has another passage before it now"


def test_what_is_asked_again_is_asked_once_also_where_it_was_stopped(server: OpenAIServer, open_tome: OpenTome) -> None:
    with open_tome() as tome:
        tome.build(BUILT)
    whole = len(server.requests)
    assert whole == 2 * PASSAGES
    server.requests.clear()
    with open_tome(budget="2 calls") as tome, pytest.raises(BudgetExceeded):
        tome.build(BUILT, again=["gists"])
    assert len(server.requests) == 2
    with open_tome() as tome:
        tome.build(BUILT)
    assert count_repeated(server) == 0
    assert len(server.requests) == PASSAGES, "the gists alone, since the new ones are equal"


def test_a_reply_is_kept_for_its_own_model(server: OpenAIServer, open_tome: OpenTome) -> None:
    for names in ({}, {"answer": "openai:large"}, {"answer": "openai:small"}, {"gist": "openai:large"}):
        with open_tome(models=names) as tome:
            tome.ask(QUESTION, system="naive")
    assert [request["model"] for request in server.requests] == ["small", "large"]


def test_a_model_that_draws_its_replies_is_asked_each_time_and_the_others_once(
    server: OpenAIServer, open_tome: OpenTome
) -> None:
    drawing = ChatModel("openai:drawing", base_url=server.url, temperature=0.7)
    with open_tome(models={"gist": drawing}) as tome:
        for _ in range(2):
            tome.ask(QUESTION, system="naive")
            tome.build(f"{BUILT} together=2")
            put_anew(tome, *range(PASSAGES))
    counts = Counter(request["model"] for request in server.requests)
    assert counts == {"drawing": 2 * 3, "small": 3 + 1}, "twos of five passages, and one answer"


# ---------------------------------------------------------------- nothing above a limit


@pytest.mark.parametrize(
    "replies", [[GOOD], [BAD, GOOD], [Behaviour(b"<html>", 500), GOOD]], ids=["good", "bad", "error"]
)
def test_a_limit_on_calls_bounds_the_requests_of_all_questions(
    server: OpenAIServer, open_tome: OpenTome, replies: Sequence[Behaviour]
) -> None:
    turns = iter(range(10**6))
    server.handler = lambda _: replies[next(turns) % len(replies)]
    with open_tome(budget="3 calls") as tome:
        outcomes: list[object] = []
        for number in range(5):
            try:
                outcomes.append(tome.ask(f"Who lit lamp {number}?", system="naive").text)
            except ModelError as error:
                outcomes.append(type(error))
        assert outcomes[-1] is BudgetExceeded
        kept = [number for number, outcome in enumerate(outcomes) if outcome == "Ada"]
        assert kept
        for number in kept:
            assert tome.ask(f"Who lit lamp {number}?", system="naive").cost.calls == 0, "what is kept needs no budget"
    assert len(server.requests) == 3


def test_one_limit_holds_over_the_models_of_all_roles(server: OpenAIServer, open_tome: OpenTome) -> None:
    with open_tome(budget="3 calls", models={"gist": "openai:large"}) as tome:
        with pytest.raises(BudgetExceeded, match="limit of 3 calls of openai:small gist=openai:large"):
            tome.build(BUILT)
        with pytest.raises(BudgetExceeded):
            tome.ask(QUESTION, system="naive")
    assert len(server.requests) == 3


async def test_a_question_with_a_limit_of_its_own_takes_nothing_from_the_next(
    server: OpenAIServer, open_tome: OpenTome
) -> None:
    server.handler = in_turn(BAD, GOOD)
    tome = await asyncio.to_thread(open_tome)
    with (
        change_run(budget=Budget(Limit(calls=1), name="one question")),
        pytest.raises(BudgetExceeded, match="of one question"),
    ):
        await tome.aask(QUESTION, system="naive")
    assert len(server.requests) == 1, "the repair was one too many"
    with change_run(budget=Budget(Limit(calls=1), name="one question")):
        assert (await tome.aask(QUESTION, system="naive")).text == "Ada"
    with change_run(budget=Budget(Limit(calls=0), name="one question")):
        assert (await tome.aask(QUESTION, system="naive")).text == "Ada", "what is kept needs no budget"
    await tome.aclose()
    assert len(server.requests) == 2


def test_each_role_costs_what_its_own_model_costs(server: OpenAIServer, open_tome: OpenTome) -> None:
    with open_tome("openai:gpt-4o-mini", models={"gist": "openai:gpt-4o"}) as tome:
        built = tome.build(BUILT).cost.roles
    for role, name in (("gist", "openai:gpt-4o"), ("extract_facts", "openai:gpt-4o-mini")):
        cost = built[role]
        assert cost.dollars == pytest.approx(find_price(ModelSpec.parse(name), cost.input_tokens, cost.output_tokens))


def test_a_model_that_only_fails_is_stopped_in_time_and_what_was_kept_is_used(
    server: OpenAIServer, open_tome: OpenTome
) -> None:
    with open_tome() as tome:
        tome.build(BUILT)
    server.requests.clear()
    server.handler = in_turn(reply_with(None, refusal="I would rather not."))
    with open_tome(max_failures=2, limit=1) as tome:
        put_anew(tome, *range(PASSAGES))
        assert tome.build(BUILT).cost.calls == 0
        put_anew(tome, 6, 7, 8, 9)
        with pytest.raises(KeepsFailing, match="2 calls of openai:small failed"):
            tome.build(BUILT)
    assert 2 <= len(server.requests) < 4


# ---------------------------------------------------------------- order and end


async def test_a_repair_goes_before_the_asks_that_wait(server: OpenAIServer) -> None:
    server.handler = in_turn(BAD, GOOD)
    model = ChatModel("openai:small", base_url=server.url, limit=1)
    asks = [model.ask(roles.FUSE, roles.FuseIn(question=f"Question {number}?", cues=["x"])) for number in range(4)]
    await asyncio.gather(*asks)
    await model.close()
    turns = [len(request["messages"]) for request in server.requests]
    assert turns.index(4) <= 2, "rules, prompt, reply and what is wrong with it"
    assert Counter(turns) == {2: 4, 4: 1}


class CountingEnds(ChatModel):
    """A model that counts how often it is closed."""

    ends = 0

    async def close(self) -> None:
        self.ends += 1
        await super().close()


def test_a_tome_closes_each_of_its_models_once(server: OpenAIServer, open_tome: OpenTome) -> None:
    small, large = (CountingEnds(f"openai:{name}", base_url=server.url) for name in ("small", "large"))
    with open_tome(small, models={"answer": large, "gist": large, "fuse": small}, budget="9 calls") as tome:
        tome.ask(QUESTION, system="naive")
    assert (small.ends, large.ends) == (1, 1)
