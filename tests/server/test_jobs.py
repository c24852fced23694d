"""Jobs: what they say of themselves, and what becomes of them when clients leave, servers end or others are at work."""

from __future__ import annotations

import json
import signal
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing
from functools import partial
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from tests.language.openai_server import OpenAIServer, fail_with, in_turn, reply_with
from tests.patience import NEVER, SOON, wait_until
from tests.server.served import (
    ASK,
    NOVEL,
    TOKEN,
    UPLOAD,
    Served,
    finish_job,
    make_client,
    make_tome,
    read_code,
    serve,
    serve_novel,
)

from tomewise.server import ownership
from tomewise.server.ownership import Ownership, read_id
from tomewise.tome.tome import Tome
from tomewise.types import Document

SLOW = {"question": "Who put out the light?", "system": "naive+probe"}
CHAT = {"model": "novel/naive", "stream": True, "messages": [{"role": "user", "content": SLOW["question"]}]}
BUILDS = f"{NOVEL}/builds"
BUILD = {"system": "cogitorag", "accept": "1000 calls"}
GIST = json.dumps({"notes": "A meeting.", "memory": "Ada Marsh met the keeper.", "triples": [], "entities": ["Ada"]})


@pytest.fixture
def model() -> Iterator[OpenAIServer]:
    """Replies after a third of a second with a gist, which fits no other role."""
    with OpenAIServer(lambda _: reply_with(GIST, delay=0.3)) as server:
        yield server


def count_calls(path: Path) -> int:
    """How many replies of the model the tome keeps."""
    with closing(sqlite3.connect(path)) as connection:
        (number,) = connection.execute("SELECT count(*) FROM calls").fetchone()
    return int(number)


def make_long_tome(path: Path, documents: int) -> None:
    with Tome.open(path, embedder="hash") as tome:
        tome.add(*(Document(id=f"d{n:02}", text=f"On day {n} Ada Marsh met the keeper.") for n in range(documents)))


def serve_long(
    folder: Path, model: OpenAIServer, *words: str, documents: int = 40, **environment: str
) -> AbstractContextManager[Served]:
    """Serve a tome of so many documents, which is made first where it is not there."""
    return serve_novel(folder, *words, model=model, make=partial(make_long_tome, documents=documents), **environment)


def build(served: Served, **more: Any) -> str:
    """The id of a new job."""
    return str(served.post(BUILDS, {**BUILD, **more}).json()["id"])


@pytest.mark.parametrize(
    ("path", "body", "accept"),
    [(ASK, SLOW, "application/json"), (ASK, SLOW, "text/event-stream"), ("/v1/chat/completions", CHAT, "*/*")],
    ids=["whole", "streamed", "chat"],
)
def test_a_client_that_leaves_ends_its_question(tmp_path: Path, model: OpenAIServer, path: str, body: Any, accept: str):
    model.handler = lambda _: reply_with(GIST, delay=NEVER)
    with serve_novel(tmp_path, model=model) as served:
        served.send_and_leave(path, body, model.arrived, accept=accept)
        assert model.left.wait(SOON)
        time.sleep(0.5)
        assert len(model.requests) == 1
        assert served.http.get("/api/health").json() == {"ok": True}


def test_a_cancelled_build_ends_and_repeats_no_call(tmp_path: Path, model: OpenAIServer):
    with serve_long(tmp_path, model, TOMEWISE_LIMIT="2") as served:
        model.handler = in_turn(*[reply_with(GIST)] * 4, reply_with(GIST, delay=NEVER))
        job = build(served)
        wait_until(lambda: len(model.requests) == 6)  # two are under way, so four have ended
        wait_until(lambda: count_calls(tmp_path / "novel.tome") == 4)
        finished = [request["messages"][-1]["content"] for request in model.sent]
        assert served.http.delete(f"/api/jobs/{job}").json()["state"] == "cancelled"
        assert model.left.wait(SOON)
        time.sleep(0.5)
        before = len(model.requests)
        assert (before, len(finished)) == (6, 4)
        model.handler = lambda _: reply_with(GIST, delay=0.3)
        again = build(served)
        wait_until(lambda: len(model.requests) >= before + 4)
        served.http.delete(f"/api/jobs/{again}")
        assert [prompt for prompt in model.prompts[before:] if prompt in finished] == []


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_streams_and_jobs(tmp_path: Path, model: OpenAIServer, sign: int):
    with serve_long(tmp_path, model, TOMEWISE_LIMIT="2") as served:
        job = build(served)
        wait_until(lambda: len(model.requests) >= 2)
        url, headers = f"/api/jobs/{job}/events", {"authorization": f"Bearer {TOKEN}"}
        client = httpx.Client(base_url=served.url, headers=headers, trust_env=False)
        with client, client.stream("GET", url) as stream:
            texts = stream.iter_text()
            assert "event: job" in next(texts)
            served.end(sign)
            rest = "".join(texts)
        assert "event: error" in rest or "interrupted" in rest
    (file,) = (tmp_path / "novel.tome-jobs").glob(f"*-{job}/job.json")
    assert json.loads(file.read_text())["state"] == "interrupted"


def test_of_a_tome_the_hundred_last_jobs_are_kept_and_all_that_were_interrupted(tmp_path: Path):
    make_tome(tmp_path / "novel.tome")
    with make_client(tmp_path) as client:
        oldest, stopped = (finish_job(client, UPLOAD, {"id": id, "text": "It rained."})["id"] for id in ("a", "b"))
    (file,) = (tmp_path / "novel.tome-jobs").glob(f"*-{stopped}/job.json")
    job = json.loads(file.read_text())
    file.write_text(json.dumps({**job, "state": "interrupted"}))
    for number in range(101):  # as if a hundred had ended later
        folder = file.parent.with_name(f"{file.parent.name[:-4]}{number:04x}")
        folder.mkdir()
        (folder / "job.json").write_text(json.dumps({**job, "created": job["created"].replace("+00:00", "+99:99")}))
    (folder / "job.json").write_text(json.dumps({**job, "report": {"layers": [{"failed": 1}]}}))  # of another version
    with make_client(tmp_path) as client:
        last = finish_job(client, UPLOAD, {"id": "a", "text": "It rained."})["id"]
        kept = {job["id"] for job in client.get("/api/jobs?limit=500").json()["jobs"]}
    assert kept >= {stopped, last}
    assert oldest not in kept


def test_two_servers_at_one_tome_wait_for_each_other_and_see_what_the_other_added(tmp_path: Path, model: OpenAIServer):
    make_long_tome(tmp_path / "novel.tome", 40)
    asking = {"OPENAI_API_KEY": "k", "TOMEWISE_LIMIT": "1"}
    words = ("../novel.tome", "--model", "openai:test", "--base-url", model.url)
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    with serve(tmp_path / "one", *words, **asking) as first:
        building = build(first)
        wait_until(lambda: len(model.requests) >= 1)
        (upload,) = (tmp_path / "novel.tome-jobs").glob("*/")
        upload = upload.with_name(f"{upload.name.partition('-')[0]}-half")  # as while the first receives a file
        upload.mkdir()
        with serve(tmp_path / "other", *words, **asking) as second:
            assert second.http.get("/api/jobs").json()["jobs"] == []
            assert second.http.delete(f"/api/jobs/{building}").status_code == 404
            assert upload.exists()
            removal = second.http.delete(f"{NOVEL}/document", params={"document": "d01"})
            assert read_code(removal) == (409, "locked")
            adding = second.post(UPLOAD, {"id": "late", "text": "Tom Reed sold the horse."}).json()["id"]
            assert second.wait_for_job(adding, "waiting")["state"] == "waiting"
            assert first.http.delete(f"/api/jobs/{building}").json()["state"] == "cancelled"
            assert second.wait_for_job(adding)["state"] == "done"
            second.end()
        found = first.post(f"{NOVEL}/search", {"query": "Who sold the horse?", "limit": 1}).json()["evidence"]
        assert found[0]["origins"][0]["document"] == "late"
        first.end()
    assert not list((tmp_path / "novel.tome-jobs").glob("*.lock"))


def test_a_bound_of_a_question_holds_for_it_alone(tmp_path: Path, model: OpenAIServer):
    model.handler = lambda _: reply_with('{"reasoning": "It says so.", "answer": "Ada Marsh", "quotes": []}')
    with serve_novel(tmp_path, "--budget", "1 calls", model=model) as served:
        for number in range(3):
            reply = served.post(ASK, {"question": f"Who put out light {number}?", "budget": "5 calls"})
            assert reply.status_code == 200, reply.text
        refused = served.post(ASK, {"question": "Who put out the last light?", "budget": "0 calls"})
        assert read_code(refused) == (402, "budget")
        assert served.http.get("/api/info").json()["spent"]["calls"] == 3


def test_a_build_whose_replies_are_all_useless_has_failed_early(tmp_path: Path, model: OpenAIServer):
    model.handler = lambda _: reply_with("I would rather not say.")
    with serve_long(tmp_path, model, "--max-failures", "5") as served:
        job = served.wait_for_job(build(served))
        assert (job["state"], job["error"]["code"], job["report"]) == ("failed", "model", None)
        assert "5 calls of openai:test failed with no reply between them" in job["error"]["message"]
        assert "gave no usable reply" in job["error"]["message"]
        assert len(model.requests) <= 2 * 5 + 2 * 16, "what was in flight, and no other first request"


def test_a_small_build_of_which_every_call_fails_has_failed_and_says_why(tmp_path: Path, model: OpenAIServer):
    model.handler = lambda _: fail_with(400, "this text is not allowed")
    with serve_long(tmp_path, model, documents=5) as served:
        job = served.wait_for_job(build(served))
        shown = served.http.get(NOVEL).json()
    assert (job["state"], job["failed"]) == ("failed", 5)
    assert "this text is not allowed" in job["reason"]
    assert "every call failed" in job["error"]["message"]
    assert sum(part["count"] for part in shown["contents"]["failed"]) == 5


def test_a_job_says_why_it_waits_and_an_answer_did(tmp_path: Path, model: OpenAIServer):
    model.handler = in_turn(fail_with(429, "slow down", retry_after="300"))
    with serve_long(tmp_path, model, documents=1) as served:
        job = f"/api/jobs/{build(served)}"
        wait_until(lambda: served.http.get(job).json()["note"])
        note = served.http.get(job).json()["note"]
        assert note.startswith("try 2 of 5 in 300 s, as the server asks: openai:test")
        assert "slow down" in note
        assert served.http.delete(job).json()["note"] is None
        busy = fail_with(429, "slow down", retry_after_ms="10")
        model.handler = in_turn(busy, reply_with('{"answer": "the keeper"}'))
        answer = served.post(ASK, {"question": "Whom did Ada meet?", "system": "naive"}).json()
        trace = served.http.get(f"{NOVEL}/traces/{answer['trace']}").json()
        (event,) = [event for event in trace["events"] if event["name"] == "waiting"]
        assert event["detail"]["asked"] == 0.01


@pytest.fixture
def tome(tmp_path: Path) -> Path:
    path = tmp_path / "novel.tome"
    path.touch()
    return path


def test_servers_that_start_at_once_share_what_is_left(tome: Path):
    dead = Ownership()
    left = sorted(read_id(dead.make_folder(tome)) for _ in range(20))
    dead.release()
    servers = [Ownership() for _ in range(8)]  # each holds its lock as long as it is there
    with ThreadPoolExecutor(8) as pool:
        taken = list(pool.map(lambda server: server.take_over(tome), servers))
    assert sorted(read_id(folder) for folders in taken for folder in folders) == left
    assert all(folder.is_dir() for folders in taken for folder in folders)


@pytest.mark.parametrize("is_locked", [True, False], ids=["the lock of another user", "no lock can be made"])
def test_jobs_whose_server_may_live_stay(tome: Path, monkeypatch: pytest.MonkeyPatch, is_locked: bool):
    dead, left = Ownership(), tome.with_name("novel.tome-jobs") / f"{'a' * 8}-{'b' * 16}"
    folder = dead.make_folder(tome) if is_locked else left
    folder.mkdir(parents=True, exist_ok=True)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError("not yours")

    monkeypatch.setattr(ownership.FileLock, "acquire", refuse)
    assert Ownership().take_over(tome) == []
    assert folder.is_dir()
