"""The answer of a tome streams from a server over real sockets, through the whole stack of wrappers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from tests.language.openai_server import OpenAIServer, fail_with, in_turn, reply_with, stream_with
from tests.patience import SOON

from tomewise.language.chat import ChatModel
from tomewise.language.retry import Backoff
from tomewise.tome.tome import Tome
from tomewise.types import Answer, Document, Event

TEXT = "The clerk forged the letter in May. The doctor was away."
QUOTES = [{"label": "E1", "quote": "The clerk forged the letter"}, {"label": "E1", "quote": "never written"}]
FIELDS = {"reasoning": "The letter says so.", "supported": "full", "answer": "The clerk forged it.", "choice": None}
REPLY = json.dumps({**FIELDS, "quotes": QUOTES, "missing": ""})
QUESTION = "Who forged the letter?"
PIECES = [REPLY[at : at + 5] for at in range(0, len(REPLY), 5)]


@pytest.fixture(name="server")
def serve_replies(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with OpenAIServer(in_turn(stream_with(*PIECES))) as serving:
        yield serving


@pytest.fixture(name="tome")
def open_tome(server: OpenAIServer, here: Path) -> Iterator[Tome]:
    model = ChatModel("openai:test", base_url=server.url, backoff=Backoff(retries=1, first=0.01, longest=0.01))
    with Tome.open(here / "a.tome", embedder="hash", model=model) as tome:
        tome.add(Document(id="d", text=TEXT))
        yield tome


def split(events: list[Event]) -> tuple[list[dict[str, Any]], list[str]]:
    """The details of the parts, and the names of the other events."""
    parts = [dict(event.detail) for event in events if event.name == "answer_part"]
    return parts, [event.name for event in events if event.name != "answer_part"]


def join(parts: list[dict[str, Any]]) -> str:
    """What a reader of the parts has in the end."""
    seen = ""
    for part in parts:
        seen = part["text"] if part["replace"] else seen + part["text"]
    return seen


def test_on_event_gets_the_parts_and_the_answer_holds_none(tome: Tome, server: OpenAIServer) -> None:
    events: list[Event] = []
    answer = tome.ask(QUESTION, system="naive", on_event=events.append)
    parts, others = split(events)
    assert join(parts) == answer.text == "The clerk forged it."
    assert len(parts) > 2
    assert not any(part["replace"] for part in parts)
    assert ([citation.text for citation in answer.quotes], answer.dropped_quotes) == ([QUOTES[0]["quote"]], 1)
    assert [event.name for event in answer.events] == others == ["retrieved"]
    assert (answer.cost.calls, answer.cost.input_tokens) == (1, 100)
    assert [event.name for event in tome.traces[answer.trace].answer.events] == ["retrieved"]
    events.clear()
    again = tome.ask(QUESTION, system="naive", on_event=events.append)
    assert (again.text, again.cost.calls, split(events)[0]) == (answer.text, 0, []), "it comes from the cache"
    assert len(server.requests) == 1


def test_without_on_event_nothing_streams(tome: Tome, server: OpenAIServer) -> None:
    server.handler = in_turn(reply_with(REPLY))
    tome.ask(QUESTION, system="naive")
    assert server.requests[-1]["stream"] is False
    tome.ask_many(["Who forged the letters?", "Who forged a letter?"], system="naive")
    assert [request["stream"] for request in server.requests] == [False] * 3


async def test_streams_and_sessions_send_the_parts(tome: Tome) -> None:
    events: list[Event] = []
    answer = await tome.sessions["s"].aask(QUESTION, system="naive", on_event=events.append)
    items = [item async for item in tome.astream(QUESTION, system="naive", fresh=True)]
    assert isinstance(items[-1], Answer)
    for parts in (events, items[:-1]):
        assert join(split(parts)[0]) == answer.text == items[-1].text == "The clerk forged it."


@pytest.mark.parametrize(
    "first",
    [
        stream_with(REPLY.replace('"missing": ""', '"choice": {}').replace("clerk forged it", "doctor forged it")),
        stream_with(*PIECES[:24], finish=None, usage=False, done=False, cut=True),
        fail_with(503),
    ],
    ids=["no JSON", "cut", "failed"],
)
def test_a_second_reply_replaces_the_first(tome: Tome, server: OpenAIServer, first: Any) -> None:
    events: list[Event] = []
    server.handler = in_turn(first, stream_with(*PIECES))
    answer = tome.ask(QUESTION, system="naive", on_event=events.append)
    assert join(split(events)[0]) == answer.text == "The clerk forged it."
    assert len(server.requests) == answer.cost.calls == 2


async def test_leaving_hangs_up_and_keeps_no_trace(tome: Tome, server: OpenAIServer) -> None:
    server.handler = in_turn(stream_with(*PIECES[:24], finish=None, usage=False, done=False, hold=True))
    async with aclosing(tome.astream(QUESTION, system="naive")) as items:
        async for item in items:
            if isinstance(item, Event) and item.name == "answer_part":
                break
    assert await asyncio.to_thread(server.left.wait, SOON)
    assert tome.traces.latest() == []


def test_the_loops_stream_their_last_answer_alone(tome: Tome, server: OpenAIServer) -> None:
    """`stepwise` answers smaller questions first."""
    steps = [
        json.dumps({"reasoning": "r", "subquestion": "Who was away?", "search": True, "answer": "", "finished": False}),
        REPLY.replace("The clerk forged it.", "The doctor."),
        json.dumps({"reasoning": "r", "subquestion": "", "search": False, "answer": "", "finished": True}),
    ]
    plain = [reply_with(step) for step in steps]
    server.handler = in_turn(*plain, stream_with(*PIECES))
    events: list[Event] = []
    answer = tome.ask(QUESTION, system="naive+stepwise", on_event=events.append)
    assert join(split(events)[0]) == answer.text == "The clerk forged it."
    assert [request["stream"] for request in server.requests] == [False, False, False, True]
