"""Questions: alone, many at once and as a stream of events; their systems, what is kept of them, and searches."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from functools import partial

import pytest
from tests.language.openai_server import OpenAIServer, fail_with, in_turn, reply_with
from tests.patience import SOON
from tests.texts import prose

from tomewise import Answer, Document, Tome
from tomewise.errors import ModelError, NotBuilt, UnknownName, UsageError
from tomewise.language.chat import ChatModel
from tomewise.settings import Settings, load
from tomewise.systems.from_passages import hybrid
from tomewise.testing.scripted import ScriptedModel
from tomewise.text.support import Grounds
from tomewise.tome.questions import Questions, answer_many
from tomewise.types import Event, Question

LOG = Document(id="log", text="The keeper, Ada Marsh, put out the light at nine. Nobody asked her why.")
OTHERS = [Document(id=f"d{number}", text=prose(number, 12)) for number in range(4)]
QUESTION = "Who put out the light?"


def reply(text: str, **more: object) -> dict[str, object]:
    return {"answer": text, "quotes": [{"label": "E1", "quote": "put out the light"}], **more}


def make_model(*texts: str, **settings: object) -> ScriptedModel:
    """A model that gives these answers in turn; without any, always one."""
    replies = [reply(text) for text in texts] if texts else lambda _: reply("Ada")
    return ScriptedModel({"answer": replies}, **settings)


def open_tome(here, model) -> Tome:
    tome = Tome.open(here / "a.tome", embedder="hash", model=model)
    tome.add(LOG)
    return tome


@pytest.fixture
def server():
    with OpenAIServer(lambda _: reply_with(json.dumps(reply("Ada")))) as running:
        yield running


# ---------------------------------------------------------------- one question


def test_what_cannot_be_asked_is_refused(here):
    with open_tome(here, make_model()) as tome:
        for question, more, kind in (
            (Question(text="  "), {}, UsageError),
            ("x", {"options": ["a", ""]}, UsageError),
            (Question(text="x"), {"options": ["a", "b"]}, UsageError),
            ("x", {"system": "naif"}, UnknownName),
            ("x", {"system": "hybrid limt=3"}, UnknownName),
            ("x", {"system": "hybrid limit=two"}, UsageError),
            ("x", {"system": "comorag veridical=0 semantic=0 episodic=0"}, UsageError),
        ):
            with pytest.raises(kind):
                tome.ask(question, **more)
        with pytest.raises(UsageError, match="a callback cannot call"):
            tome.ask("Who?", on_event=lambda _: tome.ask("Who else?"))
        assert tome.ask("Who?").text
        tome.remove("log")
        with pytest.raises(NotBuilt, match="tome add"):
            tome.ask("Who?")


def test_settings_reach_the_recipe(here):
    model = make_model()
    with open_tome(here, model) as tome:
        tome.add(*OTHERS)
        tome.ask("Who?", system=partial(hybrid, limit=2))
        answer = tome.ask("Who?", system="hybrid limit=1 context=900")
    assert [len(call.given.evidence) for call in model.calls] == [2, 1]
    assert answer.system == "hybrid limit=1 context=900"


def list_contents(here):
    found = {path.name: path.read_bytes() for path in (here / "a.tome-cache").iterdir()}
    with closing(sqlite3.connect(here / "a.tome")) as file:
        names = [row[0] for row in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return found, {name: file.execute(f"SELECT * FROM {name}").fetchall() for name in names}


@pytest.mark.parametrize("system", ["naive", "hybrid", "full_context"])
def test_asking_writes_nothing_but_its_trace_and_replies(here, system):
    with Tome.open(here / "a.tome", embedder="hash") as tome:
        tome.add(LOG, *OTHERS)
    files, tables = list_contents(here)
    with Tome.open(here / "a.tome") as tome:
        tome.ask(QUESTION, system=system)
    files_after, tables_after = list_contents(here)
    assert files == files_after
    changed = {name for name in tables if tables[name] != tables_after[name]}
    assert changed - {"sqlite_sequence"} == {"calls", "traces"}
    assert len(tables_after["traces"]) == len(tables["traces"]) + 1
    assert sorted(path.name for path in here.iterdir()) == ["a.tome", "a.tome-cache"]


# ---------------------------------------------------------------- the system


def test_every_method_uses_the_default_system_unless_one_is_named(here, monkeypatch):
    with Tome.open(here / "a.tome", embedder="hash", settings={"system": "associative limit=1"}) as tome:
        tome.add(LOG)
        assert [estimate.layer for estimate in tome.memory.estimate().layers] == ["graph:passages-triples"]
        assert [report.layer for report in tome.build().layers] == ["graph:passages-triples"]
        answers = [tome.ask(QUESTION), *tome.ask_many([QUESTION]), tome.sessions["s"].ask(QUESTION)]
        assert {answer.system for answer in answers} == {"associative limit=1"}
        assert len(tome.search(QUESTION)) == 1
        assert tome.ask(QUESTION, system="naive").system == "naive"
    monkeypatch.setenv("TOMEWISE_SYSTEM", "naive")
    monkeypatch.setenv("TOMEWISE_EMBEDDER", "hash")
    with Tome.open(settings=load()) as tome:
        tome.add(LOG)
        assert tome.ask(QUESTION).system == "naive"


def test_the_latest_sixteen_systems_are_kept_ready(tome):
    questions = Questions(tome.kit, tome.traces, Settings())

    def wire(limit):
        return questions.wire(f"naive limit={limit}")

    made = [wire(limit) for limit in range(1, 17)]
    assert wire(1) is made[0], "it is used again, so it stays"
    wire(17)
    assert wire(1) is made[0]
    assert wire(3) is made[2]
    assert wire(2) is not made[1]


# ---------------------------------------------------------------- several questions


def test_errors_take_the_place_of_their_answers(here):
    def answer(given):
        return ModelError("no") if given.question == "2" else reply(f"answer {given.question}")

    with open_tome(here, ScriptedModel({"answer": answer})) as tome:
        first, second, empty, third = tome.ask_many(["1", "2", "", "3"], return_exceptions=True)
        assert (first.text, third.text) == ("answer 1", "answer 3")
        assert isinstance(second, ModelError)
        assert isinstance(empty, UsageError)
        with pytest.raises(ModelError, match="no"):
            tome.ask_many(["1", "2", "3"])
        assert tome.ask_many([]) == []


async def test_questions_that_fail_before_their_first_event_let_the_others_begin():
    async def fail(question, on_event):
        raise ModelError(f"no answer to {question}")

    async with asyncio.timeout(SOON):
        answers = await answer_many(fail, map(str, range(6)), return_exceptions=True)
    assert [str(error) for error in answers] == [f"no answer to {number}" for number in range(6)]


def test_several_questions_keep_their_order_and_the_limit(here):
    running: list[str] = []
    most = 0
    full, second = asyncio.Event(), asyncio.Event()

    async def answer(given):
        nonlocal most
        running.append(given.question)
        most = max(most, len(running))
        if len(running) == 4:
            full.set()
        await asyncio.wait_for(full.wait(), SOON)  # on a busy machine the fourth question may start late
        await (second.wait() if given.question == "0" else asyncio.sleep(0))  # the first one ends late
        second.set()
        running.remove(given.question)
        return reply(f"answer {given.question}")

    with open_tome(here, ScriptedModel({"answer": answer}, limit=4)) as tome:
        answers = tome.ask_many([str(number) for number in range(10)])
    assert [answer.text for answer in answers] == [f"answer {number}" for number in range(10)]
    assert most == 4
    assert all(answer.cost.calls == 1 for answer in answers)


# ---------------------------------------------------------------- a stream of events


async def test_events_come_before_the_answer_and_the_trace_is_kept(here):
    with open_tome(here, make_model()) as tome:
        items = [item async for item in tome.astream(QUESTION, system="naive limit=2")]
        assert [type(item) for item in items] == [Event, Answer]
        assert items[-1].events == tuple(items[:-1])
        assert (items[-1].text, items[-1].system) == ("Ada", "naive limit=2")
        assert items[-1].quotes[0].text == "put out the light"
        assert tome.traces[1].answer.events == items[-1].events
        assert [type(item) for item in tome.stream(QUESTION, system="naive limit=2")] == [Event, Answer]


async def test_errors_are_raised_by_the_stream(here):
    with open_tome(here, ScriptedModel({"answer": lambda _: ModelError("no")})) as tome:
        stream = tome.astream("Who?")
        assert isinstance(await anext(stream), Event)
        with pytest.raises(ModelError, match="no"):
            await anext(stream)
        with pytest.raises(UsageError, match="empty"):
            await anext(tome.astream(" "))


# ---------------------------------------------------------------- replies that are kept


def test_a_question_asked_again_repeats_no_call_and_fresh_replaces_what_was_kept(here):
    model = make_model("Ada", "Ada Marsh", "Marsh")
    with open_tome(here, model) as tome:
        first = tome.ask(QUESTION)
    with open_tome(here, model) as tome:
        again = tome.ask(QUESTION)
        fresh = tome.ask(QUESTION, fresh=True)
        many = [tome.ask_many([QUESTION], fresh=fresh)[0].text for fresh in (False, True, False)]
    assert (first.text, again.text, again.quotes) == ("Ada", "Ada", first.quotes)
    assert (first.cost.calls, again.cost.calls, again.cost.roles) == (1, 0, {})
    assert (fresh.text, fresh.cost.calls) == ("Ada Marsh", 1)
    assert many == ["Ada Marsh", "Marsh", "Marsh"]


def test_an_interrupted_question_repeats_no_call(here):
    encoded = {"cue": "Ada", "labels": ["E1"]}
    replies = [reply("?", supported="none", missing="who"), KeyError("stopped"), reply("Ada")]
    scripts = {"probe": lambda _: {"probes": ["the keeper"]}, "encode": lambda _: encoded, "fuse": lambda _: encoded}
    model = ScriptedModel({"answer": replies, **scripts})
    with open_tome(here, model) as tome:
        tome.add(*(Document(id=f"d{number}", text=f"The keeper lit lamp {number}.") for number in range(30)))
        with pytest.raises(KeyError):
            tome.ask(QUESTION, system="hybrid+probe context=120")
        asked = [call.role for call in model.calls]
        assert len(asked) > 2
        assert tome.ask(QUESTION, system="hybrid+probe context=120").text == "Ada"
    assert [call.role for call in model.calls] == [*asked, "answer"]


@pytest.mark.parametrize(("temperature", "requests"), [(0.0, 1), (0.7, 2), (None, 1)])
def test_no_reply_is_used_twice_at_a_temperature_above_0(here, server, temperature, requests):
    with open_tome(here, ChatModel("openai:test", base_url=server.url, temperature=temperature)) as tome:
        assert [tome.ask(QUESTION).text, tome.ask(QUESTION).text] == ["Ada", "Ada"]
    assert len(server.requests) == requests


# ---------------------------------------------------------------- searches


def test_a_search_gives_the_evidence_of_a_question_and_asks_no_model_to_answer(here):
    with Tome.open(here / "a.tome", embedder="hash", model=ScriptedModel({})) as tome:
        tome.add(LOG, *OTHERS)
        for system in ("naive", "hybrid", "full_context"):
            found = tome.search(QUESTION, system=system, limit=3)
            assert len(found) == 3
            assert all(piece.sources for piece in found)
        assert tome.search(QUESTION)[0].text == LOG.text
        assert asyncio.run(tome.asearch(QUESTION)) == tome.search(QUESTION)
        assert tome.traces.latest() == []


def test_an_answer_that_cannot_be_checked_is_kept_as_unsupported(here, monkeypatch, caplog):
    def fail(*_):
        raise ValueError("a number without an end")

    monkeypatch.setattr(Grounds, "judge", fail)
    with open_tome(here, make_model("Ada. She did it at nine.")) as tome:
        answer = tome.ask(QUESTION)
        assert tome.traces[answer.trace].answer.statements == answer.statements
    assert (answer.text, answer.resolved, answer.support) == ("Ada. She did it at nine.", True, "none")
    assert [each.text for each in answer.quotes] == ["put out the light"]
    assert [record.exc_info[0] for record in caplog.records if record.name == "tomewise.loops.desk"] == [ValueError]


def test_every_try_and_every_reply_of_no_use_is_told_in_words(here):
    busy, useless = fail_with(429, "slow down", retry_after_ms="10"), reply_with("I cannot say.")
    replies = in_turn(busy, useless, reply_with(json.dumps(reply("Ada"))))
    with OpenAIServer(replies) as server, open_tome(here, ChatModel("openai:test", base_url=server.url)) as tome:
        answer = tome.ask(QUESTION)
    (wait,), (again,) = ([each for each in answer.events if each.name == name] for name in ("waiting", "asked again"))
    assert wait.summary.startswith("try 2 of 5 in 0 s, as the server asks: ")
    assert wait.summary.endswith("keeps failing: status 429: slow down")
    assert again.summary.startswith("asked again for a reply that can be used: ")
