"""An answer streams to the clients of `POST /ask` while the model writes it, and to no others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.language.openai_server import OpenAIServer, in_turn, reply_with, stream_with
from tests.server.conftest import make_tome
from tests.server.served import Served, serve
from tests.server.test_endpoints import events_of

REPLY = json.dumps({"reasoning": "r", "supported": "full", "answer": "Ada Marsh put out the light.", "quotes": []})
BODY = {"question": "Who put out the light?", "system": "naive"}


def ask(served: Served) -> list[tuple[str, Any]]:
    reply = served.http.post("/api/tomes/novel/ask", json=BODY, headers={"accept": "text/event-stream"})
    return events_of(reply.text)


def read(events: list[tuple[str, Any]]) -> str:
    """What a page shows after the parts."""
    seen = ""
    for name, data in events:
        if name == "answer_part":
            assert set(data) == {"text", "replace"}
            seen = data["text"] if data["replace"] else seen + data["text"]
    return seen


def test_parts_are_events_of_their_own(tmp_path: Path) -> None:
    make_tome(tmp_path / "novel.tome")
    pieces = [REPLY[at : at + 6] for at in range(0, len(REPLY), 6)]
    malformed = stream_with(REPLY.replace("[]", "3").replace("Ada Marsh", "The keeper"))
    with OpenAIServer(in_turn(malformed, stream_with(*pieces))) as model:
        words = ("novel.tome", "--model", "openai:test", "--base-url", model.url)
        with serve(tmp_path, *words, OPENAI_API_KEY="k") as served:
            events = ask(served)
            names = [name for name, _ in events]
            assert names[:3] == ["started", "retrieved", "usage"]
            assert names[-1] == "answer"
            assert set(names[3:-1]) == {"answer_part"}
            assert [data["replace"] for name, data in events if name == "answer_part"].count(True) == 1
            assert read(events) == events[-1][1]["text"] == "Ada Marsh put out the light."
            trace = served.http.get(f"/api/tomes/novel/traces/{events[-1][1]['trace']}").json()
            assert [event["name"] for event in trace["events"]] == ["retrieved"]
            assert "answer_part" not in [name for name, _ in ask(served)], "the second time it comes from the cache"


def test_the_protocol_of_openai_gets_the_answer_whole(tmp_path: Path) -> None:
    make_tome(tmp_path / "novel.tome")
    with OpenAIServer(in_turn(reply_with(REPLY))) as model:
        words = ("novel.tome", "--model", "openai:test", "--base-url", model.url)
        with serve(tmp_path, *words, OPENAI_API_KEY="k") as served:
            messages = [{"role": "user", "content": BODY["question"]}]
            body = {"model": "novel/naive", "messages": messages, "stream": True}
            reply = served.http.post("/v1/chat/completions", json=body)
    assert "answer_part" not in reply.text
    assert reply.text.count("put out the light.") >= 1
    assert [request["stream"] for request in model.requests] == [False]


def test_who_wants_no_stream_makes_the_provider_stream_nothing(tmp_path: Path) -> None:
    make_tome(tmp_path / "novel.tome")
    with OpenAIServer(in_turn(reply_with(REPLY))) as model:
        words = ("novel.tome", "--model", "openai:test", "--base-url", model.url)
        with serve(tmp_path, *words, OPENAI_API_KEY="k") as served:
            plain = served.post("/api/tomes/novel/ask", BODY)
            chat = {"model": "novel/naive", "messages": [{"role": "user", "content": "Who put the light out?"}]}
            completed = served.post("/v1/chat/completions", chat)
            in_session = served.post("/api/tomes/novel/ask", {"question": "Who put it out?", "session": "letters"})
    assert {reply.status_code for reply in (plain, completed, in_session)} == {200}
    assert len(model.requests) >= 3
    assert not any(request.get("stream") for request in model.requests)
