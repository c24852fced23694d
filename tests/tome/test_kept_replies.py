"""Asking uses the replies that the tome keeps: an interrupted question repeats no call, `fresh` asks again."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.language.openai_server import OpenAIServer, reply_with

from tomewise import Document, Tome
from tomewise.language.chat import ChatModel
from tomewise.store.sql import database
from tomewise.testing.scripted import ScriptedModel

LOG = Document(id="log", text="The keeper, Ada Marsh, put out the light at nine. Nobody asked her why.")
QUESTION = "Who put out the light?"


def reply(text: str) -> dict[str, Any]:
    return {"answer": text, "quotes": [{"label": "E1", "quote": "put out the light"}]}


def open_tome(folder: Path, model: Any) -> Tome:
    tome = Tome.open(folder / "a.tome", embedder="hash", model=model)
    tome.add(LOG)
    return tome


def test_a_question_asked_again_repeats_no_call(here: Path) -> None:
    model = ScriptedModel({"answer": [reply("Ada")]})
    with open_tome(here, model) as tome:
        first = tome.ask(QUESTION)
    with open_tome(here, model) as tome:
        again = tome.ask(QUESTION)
    assert (first.text, again.text, again.citations) == ("Ada", "Ada", first.citations)
    assert (first.usage.total.calls, again.usage.total.calls) == (1, 0)
    assert again.usage.roles == {}


def test_an_interrupted_question_repeats_no_call(here: Path) -> None:
    encoded = {"cue": "Ada", "labels": ["E1"]}
    replies = {"answer": [reply("?") | {"supported": "none", "missing": "who"}, KeyError("stopped"), reply("Ada")]}
    scripts = {"probe": lambda _: {"probes": ["the keeper"]}, "encode": lambda _: encoded, "fuse": lambda _: encoded}
    model = ScriptedModel({**replies, **scripts})
    with open_tome(here, model) as tome:
        tome.add(*(Document(id=f"d{number}", text=f"The keeper lit lamp {number}.") for number in range(30)))
        with pytest.raises(KeyError):
            tome.ask(QUESTION, system="hybrid+probe context=120")
        asked = [call.role for call in model.calls]
        assert len(asked) > 2
        assert tome.ask(QUESTION, system="hybrid+probe context=120").text == "Ada"
    assert [call.role for call in model.calls] == [*asked, "answer"]


def test_fresh_asks_again_and_replaces_what_was_kept(here: Path) -> None:
    model = ScriptedModel({"answer": [reply("Ada"), reply("Ada Marsh")]})
    with open_tome(here, model) as tome:
        assert tome.ask(QUESTION).text == "Ada"
        fresh = tome.ask(QUESTION, fresh=True)
        assert (fresh.text, fresh.usage.total.calls) == ("Ada Marsh", 1)
        assert [answer.text for answer in tome.ask_many([QUESTION])] == ["Ada Marsh"]


def test_many_questions_may_be_asked_fresh(here: Path) -> None:
    model = ScriptedModel({"answer": [reply("Ada"), reply("Marsh")]})
    with open_tome(here, model) as tome:
        texts = [tome.ask_many([QUESTION], fresh=fresh)[0].text for fresh in (False, False, True)]
    assert texts == ["Ada", "Ada", "Marsh"]


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(lambda _: reply_with(json.dumps(reply("Ada")))) as running:
        yield running


@pytest.mark.parametrize(("temperature", "requests"), [(0.0, 1), (0.7, 2), (None, 1)])
def test_no_reply_is_used_twice_at_a_temperature_above_0(
    here: Path, server: OpenAIServer, temperature: float | None, requests: int
) -> None:
    model = ChatModel("openai:test", base_url=server.url, temperature=temperature)
    with open_tome(here, model) as tome:
        assert [tome.ask(QUESTION).text, tome.ask(QUESTION).text] == ["Ada", "Ada"]
    assert len(server.requests) == requests


def test_the_command_asks_again_with_fresh(here: Path, server: OpenAIServer, command: Any) -> None:
    open_tome(here, ScriptedModel({})).close()
    words = ("ask", QUESTION, "-m", "a.tome", "--model", "openai:test", "--base-url", server.url, "--json")
    calls = [json.loads(command(*words, *more).out)["usage"]["calls"] for more in ((), (), ("--fresh",))]
    assert calls == [1, 0, 1]


def test_while_another_program_writes_the_answer_comes_with_a_warning(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.05)
    with open_tome(here, ScriptedModel({"answer": [reply("Ada")]})) as tome:
        foreign_writer = sqlite3.connect(here / "a.tome")
        foreign_writer.execute("BEGIN IMMEDIATE")
        with pytest.warns(UserWarning, match="not kept") as warned:
            assert tome.ask(QUESTION).text == "Ada"
        foreign_writer.rollback()
        foreign_writer.close()
    assert len(warned) == 1
