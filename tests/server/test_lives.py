"""Clients that leave, jobs that are cancelled or killed, servers that end, and other programs at the same tome."""

from __future__ import annotations

import json
import signal
import socket
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx2 as httpx
import pytest
from tests.language.openai_server import OpenAIServer, fail_with, in_turn, reply_with
from tests.patience import NEVER, SOON, wait_until
from tests.server.conftest import make_tome
from tests.server.served import TOKEN, serve

from tomewise.store.rights import work_alone
from tomewise.tome.tome import Tome
from tomewise.types import Document

ASK = "/api/tomes/novel/ask"
SLOW = {"question": "Who put out the light?", "system": "naive+probe"}
BUILD = {"system": "cogitorag", "accept": {"calls": 1000}}
GIST = json.dumps({"notes": "A meeting.", "memory": "Ada Marsh met the keeper."})


class SlowModel(OpenAIServer):
    """Replies after a third of a second with a gist, which fits no other role."""

    def __init__(self) -> None:
        super().__init__(lambda _: reply_with(GIST, delay=0.3))


@pytest.fixture
def model() -> Iterator[SlowModel]:
    with SlowModel() as server:
        yield server


def words_for(model: OpenAIServer) -> tuple[str, ...]:
    return ("novel.tome", "--model", "openai:test", "--base-url", model.url)


def count_calls(path: Path) -> int:
    """How many replies of the model the tome keeps."""
    with closing(sqlite3.connect(path)) as connection:
        (number,) = connection.execute("SELECT count(*) FROM calls").fetchone()
    return int(number)


def make_long_tome(path: Path, documents: int = 40) -> None:
    with Tome.open(path, embedder="hash") as tome:
        tome.add(*(Document(id=f"d{n:02}", text=f"On day {n} Ada Marsh met the keeper.") for n in range(documents)))


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
def test_a_client_that_leaves_ends_its_question(tmp_path: Path, model: SlowModel, accept: str):
    make_tome(tmp_path / "novel.tome")
    model.handler = lambda _: reply_with(GIST, delay=NEVER)
    with serve(tmp_path, *words_for(model), OPENAI_API_KEY="k") as served:
        body = json.dumps(SLOW).encode()
        lines = [f"POST {ASK} HTTP/1.1", f"Host: 127.0.0.1:{served.port}", f"Authorization: Bearer {TOKEN}"]
        lines += ["Content-Type: application/json", f"Accept: {accept}", f"Content-Length: {len(body)}", "", ""]
        with socket.create_connection(("127.0.0.1", served.port)) as connection:
            connection.sendall("\r\n".join(lines).encode() + body)
            assert model.arrived.wait(SOON)
        assert model.left.wait(SOON)
        time.sleep(0.5)
        assert len(model.requests) == 1
        assert served.http.get("/api/health").json() == {"ok": True}


def test_a_cancelled_build_ends_and_repeats_no_call(tmp_path: Path, model: SlowModel):
    make_long_tome(tmp_path / "novel.tome")
    with serve(tmp_path, *words_for(model), OPENAI_API_KEY="k", TOMEWISE_LIMIT="2") as served:
        model.handler = in_turn(*[reply_with(GIST)] * 4, reply_with(GIST, delay=NEVER))
        job = served.post("/api/tomes/novel/builds", BUILD).json()["id"]
        wait_until(lambda: len(model.requests) == 6)  # two are under way, so four have ended
        wait_until(lambda: count_calls(tmp_path / "novel.tome") == 4)
        finished = [request["messages"][-1]["content"] for request in model.sent]
        assert served.http.delete(f"/api/jobs/{job}").json()["state"] == "cancelled"
        assert model.left.wait(SOON)
        time.sleep(0.5)
        before = len(model.requests)
        assert (before, len(finished)) == (6, 4)
        model.handler = lambda _: reply_with(GIST, delay=0.3)
        again = served.post("/api/tomes/novel/builds", BUILD).json()["id"]
        wait_until(lambda: len(model.requests) >= before + 4)
        served.http.delete(f"/api/jobs/{again}")
        repeated = [prompt for prompt in model.prompts[before:] if prompt in finished]
        assert repeated == []


def test_a_killed_job_is_offered_again(tmp_path: Path, model: SlowModel):
    make_long_tome(tmp_path / "novel.tome", 12)
    with serve(tmp_path, *words_for(model), OPENAI_API_KEY="k", TOMEWISE_LIMIT="1") as served:
        build = served.post("/api/tomes/novel/builds", BUILD).json()["id"]
        upload = served.http.post("/api/tomes/novel/documents", files={"files": ("new.txt", b"The smith sold it.")})
        assert upload.json()["state"] == "queued"
        wait_until(lambda: len(model.sent) >= 2)
        served.end(signal.SIGKILL)
    half = tmp_path / "novel.tome-jobs" / "00000000-0000000000000000"
    half.mkdir()  # an upload that was cut by the kill
    with serve(tmp_path, *words_for(model), OPENAI_API_KEY="k") as served:
        states = {job["id"]: job["state"] for job in served.http.get("/api/jobs").json()["jobs"]}
        assert states == {build: "interrupted", upload.json()["id"]: "interrupted"}
        assert not list(half.parent.glob("*-0000000000000000"))
        assert served.http.post(f"/api/jobs/{upload.json()['id']}/resume").status_code == 202
        done = served.wait_for_job(upload.json()["id"])
        assert (done["state"], done["report"]["added"]) == ("done", ["new.txt"])
        assert served.http.post(f"/api/jobs/{upload.json()['id']}/resume").status_code == 400


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_streams_and_jobs(tmp_path: Path, model: SlowModel, sign: int):
    make_long_tome(tmp_path / "novel.tome")
    with serve(tmp_path, *words_for(model), OPENAI_API_KEY="k", TOMEWISE_LIMIT="2") as served:
        job = served.post("/api/tomes/novel/builds", BUILD).json()["id"]
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
    record = json.loads(file.read_text())
    assert record["state"] == "interrupted"


def test_a_job_waits_for_another_program_and_answers_see_what_it_added(tmp_path: Path):
    make_tome(tmp_path / "novel.tome")
    with serve(tmp_path, "novel.tome") as served, Tome.open(tmp_path / "novel.tome", embedder="hash") as neighbour:
        assert served.post(ASK, {"question": "Who sold the horse?"}).json()["citations"] == []
        with work_alone(neighbour.store, "add"):
            job = served.post("/api/tomes/novel/documents", {"id": "late", "text": "The widow kept the coin."}).json()
            assert served.wait_for_job(job["id"], "waiting")["state"] == "waiting"
            removal = served.http.delete("/api/tomes/novel/document", params={"document": "light"})
            assert (removal.status_code, removal.json()["error"]["code"]) == (409, "locked")
        assert served.wait_for_job(job["id"])["state"] == "done"
        neighbour.add(Document(id="horse", text="Tom Reed sold the horse."))
        answer = served.post(ASK, {"question": "Who sold the horse?"}).json()
        assert answer["citations"][0]["document"] == "horse"


def test_a_bound_of_a_question_holds_for_it_alone(tmp_path: Path):
    make_tome(tmp_path / "novel.tome")
    answer = json.dumps({"reasoning": "It says so.", "answer": "Ada Marsh", "quotes": []})
    model = OpenAIServer(lambda _: reply_with(answer))
    with model, serve(tmp_path, *words_for(model), "--max-calls", "1", OPENAI_API_KEY="k") as served:
        for number in range(3):
            reply = served.post(ASK, {"question": f"Who put out light {number}?", "max_calls": 5})
            assert reply.status_code == 200, reply.text
        refused = served.post(ASK, {"question": "Who put out the last light?", "max_calls": 0})
        assert (refused.status_code, refused.json()["error"]["code"]) == (402, "budget")
        assert served.http.get("/api/info").json()["spent"]["calls"] == 3


def test_a_job_that_one_server_took_over_is_not_taken_by_the_next(tmp_path: Path, model: SlowModel):
    make_long_tome(tmp_path / "novel.tome", 12)
    (tmp_path / "other").mkdir()
    asking = {"OPENAI_API_KEY": "k", "TOMEWISE_LIMIT": "1"}
    with serve(tmp_path, *words_for(model), **asking) as first:
        first.post("/api/tomes/novel/builds", BUILD)
        upload = first.http.post("/api/tomes/novel/documents", files={"files": ("new.txt", b"The smith sold it.")})
        id = upload.json()["id"]
        first.end(signal.SIGKILL)
    with serve(tmp_path, *words_for(model), **asking) as second, Tome.open(tmp_path / "novel.tome") as neighbour:
        with work_alone(neighbour.store, "add"):
            assert second.http.post(f"/api/jobs/{id}/resume").status_code == 202
            assert second.wait_for_job(id, "waiting")["state"] == "waiting"
            with serve(tmp_path / "other", "../novel.tome", *words_for(model)[1:], **asking) as third:
                assert third.http.get("/api/jobs").json()["jobs"] == []
                assert third.http.delete(f"/api/jobs/{id}").status_code == 404
        assert second.wait_for_job(id)["report"]["added"] == ["new.txt"]


def test_two_servers_at_one_tome_wait_for_each_other_and_see_what_the_other_added(tmp_path: Path, model: SlowModel):
    make_long_tome(tmp_path / "novel.tome")
    asking = {"OPENAI_API_KEY": "k", "TOMEWISE_LIMIT": "1"}
    (tmp_path / "one").mkdir()
    (tmp_path / "other").mkdir()
    words = ("../novel.tome", *words_for(model)[1:])
    with serve(tmp_path / "one", *words, **asking) as first:
        building = first.post("/api/tomes/novel/builds", BUILD).json()["id"]
        wait_until(lambda: len(model.requests) >= 1)
        (upload,) = (tmp_path / "novel.tome-jobs").glob("*/")
        upload = upload.with_name(f"{upload.name.partition('-')[0]}-half")  # as while the first receives a file
        upload.mkdir()
        with serve(tmp_path / "other", *words, **asking) as second:
            assert second.http.get("/api/jobs").json()["jobs"] == []
            assert upload.exists()
            text = {"id": "late", "text": "Tom Reed sold the horse."}
            adding = second.post("/api/tomes/novel/documents", text).json()["id"]
            assert second.wait_for_job(adding, "waiting")["state"] == "waiting"
            assert first.http.delete(f"/api/jobs/{building}").json()["state"] == "cancelled"
            assert second.wait_for_job(adding)["state"] == "done"
            second.end()
        search = {"query": "Who sold the horse?", "limit": 1}
        found = first.post("/api/tomes/novel/search", search).json()["evidence"]
        assert found[0]["sources"][0]["document"] == "late"
        first.end()
    assert not list((tmp_path / "novel.tome-jobs").glob("*.lock"))


def test_a_build_of_which_every_call_fails_has_failed(tmp_path: Path, model: SlowModel):
    make_long_tome(tmp_path / "novel.tome")
    model.handler = lambda _: reply_with("I would rather not say.")
    with serve(tmp_path, *words_for(model), "--max-failures", "5", OPENAI_API_KEY="k") as served:
        job = served.wait_for_job(served.post("/api/tomes/novel/builds", BUILD).json()["id"])
        assert (job["state"], job["error"]["code"], job["report"]) == ("failed", "model", None)
        assert "5 calls of openai:test failed with no reply between them" in job["error"]["message"]
        assert "gave no usable reply" in job["error"]["message"]
        assert len(model.requests) <= 2 * 5 + 2 * 16, "what was in flight, and no other first request"


def test_a_job_says_why_it_waits_and_an_answer_did(tmp_path: Path, model: SlowModel):
    make_long_tome(tmp_path / "novel.tome", documents=1)
    busy = fail_with(429, "slow down", retry_after="3000")
    model.handler = in_turn(busy)
    with serve(tmp_path, *words_for(model), OPENAI_API_KEY="k") as served:
        job = served.post("/api/tomes/novel/builds", BUILD).json()["id"]
        wait_until(lambda: served.http.get(f"/api/jobs/{job}").json()["note"])
        note = served.http.get(f"/api/jobs/{job}").json()["note"]
        assert note.startswith("waiting 60 s, since the server asks for 3000 s: openai:test")
        assert "slow down" in note
        assert served.http.delete(f"/api/jobs/{job}").json()["note"] is None

        model.handler = in_turn(
            fail_with(429, "slow down", retry_after_ms="10"), reply_with('{"answer": "the keeper"}')
        )
        answer = served.post("/api/tomes/novel/ask", {"question": "Whom did Ada meet?", "system": "naive"}).json()
        trace = served.http.get(f"/api/tomes/novel/traces/{answer['trace']}").json()
        (event,) = [event for event in trace["events"] if event["name"] == "waiting"]
        assert event["detail"]["asked"] == 0.01


def test_a_job_of_an_earlier_version_is_still_listed(tmp_path: Path, model: SlowModel):
    make_long_tome(tmp_path / "novel.tome", documents=1)
    model.handler = lambda _: reply_with(GIST)
    with serve(tmp_path, *words_for(model), OPENAI_API_KEY="k") as served:
        job = served.wait_for_job(served.post("/api/tomes/novel/builds", {**BUILD, "system": "naive"}).json()["id"])
    (file,) = (tmp_path / "novel.tome-jobs").glob(f"*-{job['id']}/job.json")
    record = json.loads(file.read_text())
    del record["note"]
    file.write_text(json.dumps(record))
    with serve(tmp_path, *words_for(model), OPENAI_API_KEY="k") as served:
        assert served.http.get(f"/api/jobs/{job['id']}").json()["state"] == "done"
