"""What refuses a question is known before a stream begins, and its place in the queue is given back."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.language.openai_server import OpenAIServer, reply_with
from tests.patience import NEVER, wait_until
from tests.server.conftest import make_tome
from tests.server.served import Served, ask_streamed, serve

from tomewise.server import service
from tomewise.server.app import make_app
from tomewise.server.library import Library
from tomewise.server.serve_options import ServerOptions
from tomewise.settings import Settings
from tomewise.store.rights import hold_session
from tomewise.tome.tome import Tome

ASK = "/api/tomes/novel/ask"
CHAT = "/v1/chat/completions"
QUESTION = "Who put out the light?"
REPLY = json.dumps({"reasoning": "r", "answer": "Ada Marsh", "quotes": []})
EVENTS = {"accept": "text/event-stream"}


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def chat(model: str, question: str = QUESTION) -> dict[str, Any]:
    return {"model": model, "stream": True, "messages": [{"role": "user", "content": question}]}


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        ("/api/tomes/novle/ask", {"question": QUESTION}, 404, "unknown_name"),
        (ASK, {"question": QUESTION, "system": "hybird"}, 404, "unknown_name"),
        (ASK, {"question": QUESTION, "settings": {"limit": 10**9}}, 400, "usage"),
        (ASK, {"question": " "}, 400, "usage"),
        (ASK, {"question": QUESTION, "system": "comorag"}, 409, "not_built"),
        (ASK, {"question": QUESTION, "documents": ["nothing"]}, 404, "unknown_name"),
        (ASK, {"question": QUESTION, "documents": ["ligh"]}, 404, "unknown_name"),  # a part of an id finds nothing
        (ASK, {"question": QUESTION, "where": ["year"]}, 400, "usage"),
        (CHAT, chat("novle/hybrid"), 404, "unknown_name"),
        (CHAT, chat("novel"), 404, "unknown_name"),
        (CHAT, chat("novel/hybrid limit=1000000000"), 400, "usage"),
        (CHAT, chat("novel/comorag"), 409, "not_built"),
        (CHAT, chat("novel/hybrid", " "), 400, "usage"),
        ("/api/jobs/nothing/events", None, 404, "unknown_name"),
    ],
)
def test_what_is_refused_is_refused_before_the_stream(
    served: Served, path: str, body: dict[str, Any] | None, status: int, code: str
):
    reply = served.http.request("POST" if body else "GET", path, json=body, headers=EVENTS)
    assert (reply.status_code, reply.json()["error"]["code"]) == (status, code)


@pytest.mark.parametrize("more", [{"system": "hybrid"}, {"documents": ["light"]}])
def test_what_a_session_refuses_is_refused_before_the_stream(served: Served, more: dict[str, Any]):
    body = {"question": QUESTION, "session": "begun"}
    served.post(ASK, {**body, "system": "naive"})
    reply = served.http.post(ASK, json={**body, **more}, headers=EVENTS)
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, "usage")


def test_a_session_that_is_held_is_refused_before_the_stream(tmp_path: Path):
    make_tome(tmp_path / "novel.tome")
    path = tmp_path / "novel.tome"
    with (
        serve(tmp_path, "novel.tome") as served,
        Tome.open(path) as tome,
        hold_session(tome.store, "held"),
    ):
        reply = served.http.post(ASK, json={"question": QUESTION, "session": "held"}, headers=EVENTS)
    assert (reply.status_code, reply.json()["error"]["code"]) == (409, "locked")


@pytest.mark.parametrize("metadata", [{"b": ["z" * 900] * 100, "year": 1}, {"year>=": 1}, {"a\x00": 1}])
def test_metadata_that_would_be_cut_or_cannot_be_tested_is_refused(served: Served, metadata: dict[str, Any]):
    reply = served.post("/api/tomes/novel/documents", {"id": "m", "text": "Words.", "metadata": metadata})
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, "usage")


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
def test_the_time_limit_holds_for_admission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, accept: str):
    make_tome(tmp_path / "novel.tome")
    monkeypatch.setattr(service, "find_exact_scope", lambda *_: time.sleep(2))
    library = Library(Settings(model="extractive"), [tmp_path / "novel.tome"])
    with TestClient(make_app(library, ServerOptions(seconds=0.5)), base_url="http://127.0.0.1:8765") as client:
        reply = client.post(ASK, json={"question": QUESTION}, headers={"accept": accept})
    assert (reply.status_code, reply.json()["error"]["code"]) == (504, "timeout")


def test_a_stream_too_many_is_refused_and_one_that_is_left_gives_its_place_back(tmp_path: Path):
    make_tome(tmp_path / "novel.tome")
    hold = threading.Event()
    with OpenAIServer(lambda _: replace(reply_with(REPLY, delay=NEVER), until=hold)) as model:
        words = ("novel.tome", "--model", "openai:test", "--base-url", model.url, "--questions", "1")
        with serve(tmp_path, *words, OPENAI_API_KEY="k") as served, ThreadPoolExecutor(10) as pool:
            body = {"question": QUESTION, "system": "naive"}
            sent = [(ASK, {**body, "question": f"{QUESTION} {number}"}) for number in range(5)]
            sent += [(CHAT, chat("novel/naive", f"{QUESTION} Then {number}")) for number in range(5)]
            with served.http.stream("POST", ASK, json=body, headers=EVENTS) as first:
                lines = first.iter_lines()  # when it is freed, the client leaves
                assert next(lines) == "event: started"
                others = [pool.submit(served.http.post, path, json=each, headers=EVENTS) for path, each in sent]
                wait_until(lambda: sum(reply.done() for reply in others) == 6)  # four may wait
                for refused in (reply.result() for reply in others if reply.done()):
                    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "busy")
                    assert refused.headers["retry-after"] == "5"
            hold.set()
            assert sum("Ada Marsh" in reply.result().text for reply in others) == 4
            assert "event: answer" in served.http.post(ASK, json=body, headers=EVENTS).text


def test_60_streamed_questions_at_once_by_the_official_client_are_all_answered(tmp_path: Path):
    make_tome(tmp_path / "novel.tome")
    with OpenAIServer(lambda _: reply_with(REPLY, delay=0.05)) as model:
        words = ("novel.tome", "--model", "openai:test", "--base-url", model.url)
        with serve(tmp_path, *words, OPENAI_API_KEY="k") as served:
            answers = asyncio.run(ask_streamed(served, [f"{QUESTION} {number}" for number in range(60)]))
    assert [answer[:9] for answer in answers] == ["Ada Marsh"] * 60
