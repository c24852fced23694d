"""Questions over HTTP: admitted or refused before a stream begins, streamed, in sessions, from memory that lags."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.language.openai_server import OpenAIServer, in_turn, reply_with, stream_with
from tests.patience import NEVER, SOON, wait_until
from tests.server.served import (
    ASK,
    NOVEL,
    QUESTION,
    STREAM,
    UPLOAD,
    Served,
    finish_job,
    make_client,
    make_tome,
    read_code,
    read_events,
    serve_novel,
)

from tomewise import plugins, register
from tomewise.parts import System
from tomewise.server.serve_options import ServerOptions
from tomewise.tome.tome import Tome
from tomewise.types import Answer, Document, Event, Question

CHAT = "/v1/chat/completions"
REPLY = json.dumps({"reasoning": "r", "supported": "full", "answer": "Ada Marsh put out the light.", "quotes": []})
BODY = {"question": QUESTION, "system": "naive"}
LATE = "Who dredged the harbour?"
ODD = [None, "a text", {"id": 4, "score": 10**400, "place": {"chapter": 5}, "text": 2}]


class Odd:
    """A loop from outside, whose events have the names of ours and other details."""

    async def run(self, question: Question) -> AsyncIterator[Event | Answer]:
        yield Event(name="odd", summary="odd: 1", detail={"evidence": ODD, "notes": 3, "pool": "x", "cut": "y"})
        yield Event(name="answer_part", summary="not ours", detail={"no": "text"})
        yield Event(name="chosen", step=1, summary="not ours", detail={"chosen": 1})
        yield Answer(text="Ada Marsh")


def chat(model: str, question: str = QUESTION, stream: bool = True) -> dict[str, Any]:
    return {"model": model, "stream": stream, "messages": [{"role": "user", "content": question}]}


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        (ASK, {"question": QUESTION, "settings": {"limit": 10**9}}, 400, "usage"),
        (ASK, {"question": QUESTION, "system": "comorag"}, 409, "not_built"),
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
    reply = served.http.request("POST" if body else "GET", path, json=body, headers=STREAM)
    assert read_code(reply) == (status, code)


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
def test_the_time_limit_holds_for_admission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, accept: str):
    make_tome(tmp_path / "novel.tome")
    monkeypatch.setattr(Tome, "within", lambda *_, **__: time.sleep(2))
    with make_client(tmp_path, model="extractive", options=ServerOptions(seconds=0.5)) as client:
        reply = client.post(ASK, json={"question": QUESTION}, headers={"accept": accept})
    assert read_code(reply) == (504, "timeout")


def test_a_stream_too_many_is_refused_and_one_that_is_left_gives_its_place_back(tmp_path: Path):
    hold = threading.Event()
    with (
        OpenAIServer(lambda _: replace(reply_with(REPLY, delay=NEVER), until=hold)) as model,
        serve_novel(tmp_path, "--questions", "1", model=model) as served,
        ThreadPoolExecutor(10) as pool,
    ):
        sent = [(ASK, {**BODY, "question": f"{QUESTION} {n}"}, STREAM if n < 3 else {}) for n in range(6)]
        sent += [(CHAT, chat("novel/naive", f"{QUESTION} Then {number}"), STREAM) for number in range(4)]
        with served.http.stream("POST", ASK, json=BODY, headers=STREAM) as first:
            lines = first.iter_lines()  # when it is freed, the client leaves
            assert next(lines) == "event: started"
            others = [pool.submit(served.http.post, path, json=body, headers=how) for path, body, how in sent]
            wait_until(lambda: sum(reply.done() for reply in others) == 6)  # four may wait
            for refused in (reply.result() for reply in others if reply.done()):
                assert read_code(refused) == (429, "busy")
                assert refused.headers["retry-after"] == "5"
        hold.set()
        assert sum("Ada Marsh" in reply.result().text for reply in others) == 4
        assert served.stream(BODY)[-1][0] == "answer"


def read(events: list[tuple[str, Any]]) -> str:
    """What a page shows after the parts."""
    seen = ""
    for name, data in events:
        if name == "answer_part":
            assert set(data) == {"text", "replace"}
            seen = data["text"] if data["replace"] else seen + data["text"]
    return seen


def test_parts_are_events_of_their_own(tmp_path: Path) -> None:
    pieces = [REPLY[at : at + 6] for at in range(0, len(REPLY), 6)]
    malformed = stream_with(REPLY.replace("}", ', "choice": {}}').replace("Ada Marsh", "The keeper"))
    with (
        OpenAIServer(in_turn(malformed, stream_with(*pieces))) as model,
        serve_novel(tmp_path, model=model) as served,
    ):
        events = served.stream(BODY)
        names = [name for name, _ in events]
        assert names[:3] == ["started", "retrieved", "cost"]
        assert names[-1] == "answer"
        assert set(names[3:-1]) == {"answer_part", "asked again", "cost"}
        assert [data["replace"] for name, data in events if name == "answer_part"].count(True) == 1
        assert read(events) == events[-1][1]["text"] == "Ada Marsh put out the light."
        trace = served.http.get(f"{NOVEL}/traces/{events[-1][1]['trace']}").json()
        assert [event["name"] for event in trace["events"]] == ["retrieved", "asked again"]
        again = [name for name, _ in served.stream(BODY)]
        assert "answer_part" not in again, "the second time it comes from the cache"


def test_a_chat_gets_the_sentences_while_the_model_writes_them(tmp_path: Path) -> None:
    reply = REPLY.replace("light.", "light. The **keeper** had gone. A light [x] was there.")
    pieces = [reply[at : at + 6] for at in range(0, len(reply), 6)]
    with OpenAIServer(in_turn(stream_with(*pieces))) as model, serve_novel(tmp_path, model=model) as served:
        lines = served.post(CHAT, chat("novel/naive")).text.splitlines()
        events = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]
        deltas = [choice["delta"] for event in events for choice in event["choices"]]
        content = [delta["content"] for delta in deltas if delta.get("content")]
        assert content[:2] == ["Ada Marsh put out the light.", " The **keeper** had gone."]
        assert content[2].startswith(" [1][2] A light [x] was there. [")  # the mark of the last one sent
        assert not any("answer_part" in delta.get("reasoning_content", "") for delta in deltas)
    assert [request["stream"] for request in model.requests] == [True]


def test_an_answer_that_is_cut_says_so_and_the_form_reaches_the_model(tmp_path: Path) -> None:
    cut = reply_with(REPLY.partition(" the light.")[0], finish="length")
    streamed = stream_with(REPLY.partition(" the light.")[0], finish="length")
    with (
        OpenAIServer(lambda request: streamed if request["stream"] else cut) as model,
        serve_novel(tmp_path, model=model) as served,
    ):
        answer = served.post(ASK, {**BODY, "form": "list"}).json()
        assert (answer["text"], answer["resolved"]) == ("Ada Marsh put out", True)
        assert "wrote no more of it" in answer["unfinished"]
        assert "- `answer`: a list" in model.requests[0]["messages"][1]["content"]
        trace = served.http.get(f"{NOVEL}/traces/{answer['trace']}").json()
        assert (trace["question"]["form"], trace["answer"]["unfinished"]) == ("list", answer["unfinished"])
        assert served.post(ASK, {**BODY, "form": "poem"}).status_code == 400
        whole = served.post(CHAT, chat("novel/naive", stream=False)).json()
        assert whole["choices"][0]["finish_reason"] == "length"
        lines = served.post(CHAT, chat("novel/naive")).text.splitlines()
        events = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]
        assert [each["finish_reason"] for event in events for each in event["choices"]][-1] == "length"


def test_an_answer_is_copied_as_the_server_writes_it(served: Served) -> None:
    answer = served.post(ASK, BODY).json()
    copies = served.post(f"{NOVEL}/copies", answer).json()
    assert copies["text"].startswith(
        "No model is set: these sentences are nearest to an answer.\n[1] “Ada Marsh put out"
    )
    assert copies["markdown"].startswith(
        "No model is set: these sentences are nearest to an answer.\n\n> Ada Marsh put out"
    )
    quoted = answer["statements"][0]["quotes"][0]
    place = f"id=light&start={quoted['start']}&end={quoted['end']}&trace={answer['trace']}"
    assert f"“{quoted['text']}” <{served.url}/#/t/novel/doc?{place}>" in copies["markdown"]
    assert read_code(served.post(f"{NOVEL}/copies", {"statements": 3})) == (400, "usage")


def test_a_copy_names_author_and_year_where_metadata_has_them(served: Served) -> None:
    metadata = {"author": "A. Reed", "year": 1911}
    body = {"id": "reed", "title": "Dredging", "text": "Zed Quill dredged the harbour.", "metadata": metadata}
    finish = served.post(f"{NOVEL}/documents", {"documents": [body]}).json()
    wait_until(lambda: served.http.get(f"/api/jobs/{finish['id']}").json()["state"] == "done")
    answer = served.post(ASK, {**BODY, "question": "Who dredged the harbour?", "documents": ["reed"]}).json()
    assert "\n\n- A. Reed. Dredging. 1911\n\n" in served.post(f"{NOVEL}/copies", answer).json()["markdown"]


def test_who_wants_no_parts_makes_the_provider_stream_nothing(tmp_path: Path) -> None:
    with OpenAIServer(in_turn(reply_with(REPLY))) as model, serve_novel(tmp_path, model=model) as served:
        assert "put out the light." in served.post(CHAT, {**chat("novel/naive"), "stream": False}).text
        assert served.post(ASK, {**BODY, "question": "Who put out light 2?"}).status_code == 200
    assert [request["stream"] for request in model.requests] == [False, False]


def test_plain_events_of_a_system_from_outside_pass_through_the_server(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(plugins, "_registered", {})
    register("systems", "odd", lambda kit: System(loop=Odd(), retriever=None))
    make_tome(tmp_path / "novel.tome")
    with make_client(tmp_path) as client:
        reply = client.post(ASK, json={"question": QUESTION, "system": "odd"}, headers=STREAM)
        events = read_events(reply.text)
        assert [name for name, _ in events if name != "cost"] == ["started", "odd", "answer_part", "chosen", "answer"]
        url = f"{NOVEL}/traces/{events[-1][1]['trace']}"
        stored = client.get(url).json()["events"]
        assert [event["name"] for event in stored] == ["odd", "answer_part", "chosen"]
        assert stored[1]["detail"] == {"no": "text"}
        assert client.get(f"{url}/evidence").json() == {"evidence": {}}


def test_questions_that_follow_one_another(served: Served):
    sessions = f"{NOVEL}/sessions"
    first = served.post(ASK, {**BODY, "session": "a/b", "settings": {"limit": 3}}).json()
    second = served.post(ASK, {"question": "And when did she do it?", "session": "a/b"}).json()
    assert (second["session"]["number"], second["system"]) == (2, first["system"])
    assert "Ada Marsh" in second["session"]["question"]
    listed = {each["name"]: each for each in served.http.get(sessions).json()["sessions"]}
    assert listed["a/b"] == {"name": "a/b", "system": first["system"], "count": 2}
    shown = served.http.get(f"{sessions}/a%2Fb").json()
    assert [turn["asked"] for turn in shown["turns"]] == [QUESTION, "And when did she do it?"]
    events = served.stream({"question": QUESTION, "session": "a/b"})
    assert events[0][1]["system"] == events[-1][1]["system"] == "naive limit=3"
    assert served.http.delete(f"{sessions}/a%2Fb").json() == {"deleted": "a/b"}
    for method in ("GET", "DELETE"):
        assert served.http.request(method, f"{sessions}/a%2Fb").status_code == 404


def test_a_session_answers_one_question_at_a_time(tmp_path: Path):
    ask = {**BODY, "session": "s"}
    with (
        OpenAIServer(lambda _: reply_with("too late", delay=NEVER)) as model,
        serve_novel(tmp_path, model=model) as served,
        ThreadPoolExecutor() as threads,
    ):
        asking = threads.submit(served.post, ASK, ask)
        assert model.arrived.wait(SOON)
        for headers in (STREAM, {}):
            assert read_code(served.http.post(ASK, json=ask, headers=headers)) == (409, "locked")
        assert served.http.delete(f"{NOVEL}/sessions/s").status_code == 409
        served.end(signal.SIGKILL)
        assert asking.exception()


def test_a_server_that_only_reads_and_bounds_of_a_session(tmp_path: Path):
    make_tome(tmp_path / "novel.tome")
    with Tome.open(tmp_path / "novel.tome", embedder="hash") as tome:
        tome.within("light").sessions["s"].ask(QUESTION, system="naive limit=5000")
    with make_client(tmp_path) as client:
        refused = client.post(ASK, json={"question": QUESTION, "session": "s"})
        assert (refused.status_code, "settings.limit" in refused.text) == (400, True)
    with make_client(tmp_path, options=ServerOptions(read_only=True)) as client:
        assert client.get(f"{NOVEL}/sessions/s").json()["count"] == 1
        assert client.delete(f"{NOVEL}/sessions/s").status_code == 403
        assert client.post(ASK, json={"question": QUESTION, "session": "s"}).status_code == 403


@pytest.fixture(name="lagging")
def make_lagging(tmp_path: Path) -> Path:
    """The folder of a tome whose graph does not know its last document."""
    make_tome(tmp_path / "novel.tome")
    with Tome.open(tmp_path / "novel.tome", embedder="hash", model="extractive") as tome:
        tome.build("hipporag2")
        tome.add(Document(id="late", text="Ottilie Brand dredged the harbour in 1931."))
    return tmp_path


def check_lag(lag: dict[str, Any]) -> None:
    assert (lag["documents"], lag["count"], lag["nearer"]) == (["late"], 1, True)
    assert (lag["system"], lag["cost"]["calls"], lag["unpriced"]) == ("hipporag2", 2, [])


def test_each_kind_of_reply_says_what_the_memory_lacks(lagging: Path):
    with make_client(lagging, model="extractive") as client:
        asked = {"question": LATE, "system": "hipporag2"}
        search = {"query": LATE, "system": "hipporag2"}
        check_lag(read_events(client.post(ASK, json=asked, headers=STREAM).text)[-1][1]["lagging"])
        check_lag(client.post(f"{NOVEL}/search", json=search).json()["lagging"])
        chatted = client.post(CHAT, json=chat("novel/hipporag2", LATE, stream=False)).json()
        check_lag(chatted["tomewise"]["lagging"])
        check_lag(client.get(f"{NOVEL}/traces/1").json()["answer"]["lagging"])
        shown = client.get(NOVEL).json()
        assert "hipporag2" in shown["ready"]
        assert shown["lagging"] == ["hipporag2"], "the system over this graph"
        for path, body in ((ASK, asked), (f"{NOVEL}/search", search)):
            assert read_code(client.post(path, json={**body, "current": True})) == (409, "not_built")
        report = finish_job(client, UPLOAD, {"id": "more", "text": "A gull sat on the mast."})["report"]
        assert (report["lagging"]["documents"], report["lagging"]["cost"]["calls"]) == (["late", "more"], 4)
