"""How much work a question is worth, in plain words, through every door that takes it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.mcp_server.mcp_tomes import call, connect
from tests.server.served import make_client

from tomewise.errors import UsageError
from tomewise.tome.tome import Tome
from tomewise.types import Answer, Document, Question

ASKED = "Who put out the light?"


@pytest.fixture
def tome(here):
    with Tome.open(here / "a.tome", embedder="hash") as made:
        made.add(Document(id="log", text="Ada Marsh put out the light at nine."))
        yield made


@pytest.mark.parametrize("effort", ["auto", "quick", "thorough"])
def test_an_effort_names_a_system_of_ours(tome, effort):
    named = {"auto": "auto", "quick": "hybrid", "thorough": "investigate"}[effort]
    answer = tome.ask(ASKED, effort=effort)
    assert (answer.system, tome.traces[answer.trace].answer.system) == (named, named)
    streamed = list(tome.stream(ASKED, effort=effort))[-1]
    assert isinstance(streamed, Answer)
    assert streamed.system == tome.sessions["s"].ask(ASKED, effort=effort).system == named


def test_what_is_quick_depends_on_what_is_built(tome):
    tome.build("associative")
    assert tome.ask(ASKED, effort="quick").system == "associative"
    tome.add(Document(id="late", text="Tom Reed lit it again."))
    assert tome.ask(Question(text=ASKED, current=True), effort="quick").system == "hybrid"


def test_a_session_goes_on_with_what_it_was_begun_with(tome, command):
    assert tome.sessions["s"].ask(ASKED, effort="quick").system == "hybrid"
    tome.build("associative")
    assert tome.sessions["s"].ask(ASKED, effort="quick").system == "hybrid"
    printed = command("ask", ASKED, "-m", tome.store.address, "--session", "s", "--effort", "quick", "--json")
    assert json.loads(printed.out)["system"] == "hybrid"


def test_an_effort_and_a_system_are_one_too_many(tome):
    for ask in (tome.ask, tome.sessions["s"].ask):
        with pytest.raises(UsageError, match="leave out the effort, or the system"):
            ask(ASKED, effort="quick", system="naive")
    with pytest.raises(UsageError, match="effort must be one of auto, quick, thorough, whole, not 'hard'"):
        tome.ask(ASKED, effort="hard")
    tome.sessions["s"].ask(ASKED, effort="quick")
    with pytest.raises(UsageError, match="begun with hybrid, not investigate"):
        tome.sessions["s"].ask(ASKED, effort="thorough")


def test_the_command_takes_it(tome, command):
    path = tome.store.address
    printed = command("ask", ASKED, "-m", path, "--effort", "thorough", "--json")
    assert json.loads(printed.out)["system"] == "investigate"
    both = command("ask", ASKED, "-m", path, "--effort", "quick", "-s", "naive")
    assert (both.code, "leave out the effort" in both.err) == (2, True)


async def test_agents_take_it(tome):
    async with connect(Path(tome.store.address)) as client:
        assert (await call(client, "ask", question=ASKED, effort="thorough"))["answer"]["system"] == "investigate"


def test_servers_take_it(tome, here):
    with make_client(files=[here / "a.tome"]) as client:
        ask = "/api/tomes/a/ask"
        assert client.post(ask, json={"question": ASKED, "effort": "thorough"}).json()["system"] == "investigate"
        for wrong in ({"effort": "hard"}, {"effort": "quick", "system": "naive"}):
            assert client.post(ask, json={"question": ASKED, **wrong}).status_code == 400


def test_the_whole_text_is_read_by_a_system_of_ours(tome):
    assert tome.ask(ASKED, effort="whole").system == "whole"
