"""`kill -9` at random moments of an upload, a job and a question: nothing is lost, and no finished call is repeated."""

from __future__ import annotations

import json
import random
import signal
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, suppress
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from tests.building import mark, play_role, read_marks, role
from tests.language.openai_server import Behaviour, OpenAIServer, reply_with
from tests.server.served import ASK, NOVEL, UPLOAD, Served, serve_novel
from tests.texts import prose

from tomewise.server.ownership import read_id
from tomewise.tome.tome import Tome
from tomewise.types import Document

QUESTION = {"question": "Who burned the letter?", "system": "naive"}
BUILD = {"system": "associative", "accept": "1000 calls"}
FILES = {f"notes/{number}.txt": prose(number, 30).encode() for number in range(10, 14)}
BOUNDARY = b"--x\r\n"
LATENCY = 0.03  # seconds of one call
UPLOAD_SECONDS = 0.6  # seconds that an upload takes to arrive


def play(request: dict[str, Any]) -> Behaviour:
    """Reply to a question with the mark of the request, so that the file tells which answer it holds."""
    if role(request):
        return play_role(request, delay=LATENCY)
    return reply_with(json.dumps({"answer": mark(request), "choice": None, "quotes": []}), delay=LATENCY)


@pytest.fixture
def model() -> Iterator[OpenAIServer]:
    with OpenAIServer(play) as server:
        yield server


def make_prose(path: Path) -> None:
    with Tome.open(path, embedder="hash", settings={"passage_tokens": 64}) as tome:
        tome.add(*(Document(id=f"d{number}", text=prose(number, 30)) for number in range(4)))


def start(folder: Path, model: OpenAIServer) -> AbstractContextManager[Served]:
    return serve_novel(folder, model=model, make=make_prose, TOMEWISE_LIMIT="2")


def upload(served: Served) -> dict[str, Any]:
    """Send the files piece by piece; the job."""

    def send() -> Iterator[bytes]:
        for name, text in FILES.items():
            head = f'Content-Disposition: form-data; name="files"; filename="{name}"\r\n\r\n'
            yield BOUNDARY + head.encode()
            for begin in range(0, len(text), 500):
                time.sleep(UPLOAD_SECONDS / sum(len(each) // 500 + 1 for each in FILES.values()))
                yield text[begin : begin + 500]
            yield b"\r\n"
        yield b"--x--\r\n"

    kind = {"content-type": "multipart/form-data; boundary=x"}
    reply = served.http.post(UPLOAD, content=send(), headers=kind)
    assert reply.status_code == 202, reply.text
    return reply.json()


def build(served: Served) -> dict[str, Any]:
    reply = served.post(f"{NOVEL}/builds", BUILD)
    assert reply.status_code == 202, reply.text
    return reply.json()


def ask(served: Served) -> dict[str, Any]:
    reply = served.post(ASK, QUESTION)
    assert reply.status_code == 200, reply.text
    return reply.json()


def finish(served: Served, job: dict[str, Any]) -> None:
    ended = served.wait_for_job(job["id"], seconds=60)
    assert (ended["state"], ended["error"]) == ("done", None)


def work_until_killed(served: Served, seconds: float) -> list[dict[str, Any] | None]:
    """Upload, build and ask at once, and kill the server after so many seconds. What was replied, None if nothing."""

    def attempt(act: Any) -> dict[str, Any] | None:
        with suppress(httpx.TransportError):
            return act(served)
        return None

    with ThreadPoolExecutor() as threads:
        working = [threads.submit(attempt, act) for act in (upload, build, ask)]
        time.sleep(seconds)
        served.end(signal.SIGKILL)
        return [each.result() for each in working]


def read_finished(path: Path) -> set[str]:
    """The marks of the calls whose replies are in the file."""
    with closing(sqlite3.connect(path)) as connection:
        replies = [json.loads(reply) for (reply,) in connection.execute("SELECT reply FROM calls")]
    return read_marks(path) | {reply["answer"] for reply in replies if "answer" in reply}


def read_memory(folder: Path) -> list[str]:
    with Tome.open(folder / "novel.tome") as tome:
        return list(tome.memory.export())


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], float]:
    """The memory after an undisturbed run, and the seconds that it took."""
    folder = tmp_path_factory.mktemp("whole")
    with OpenAIServer(play) as model, start(folder, model) as served:
        began = time.monotonic()
        finish(served, upload(served))
        finish(served, build(served))
        ask(served)
        seconds = time.monotonic() - began
    return read_memory(folder), seconds


@pytest.mark.parametrize("seed", range(4))
def test_a_killed_server_loses_nothing_and_repeats_no_finished_call(
    tmp_path: Path, model: OpenAIServer, whole: tuple[list[str], float], seed: int
) -> None:
    memory, seconds = whole
    path = tmp_path / "novel.tome"
    with start(tmp_path, model) as served:
        uploaded, building, answered = work_until_killed(served, random.Random(seed).uniform(0, seconds))
    finished, before = read_finished(path), len(model.requests)
    assert answered is None or answered["text"] in finished
    with start(tmp_path, model) as served:
        jobs = {job["id"]: job for job in served.http.get("/api/jobs").json()["jobs"]}
        assert {job["state"] for job in jobs.values()} <= {"done", "interrupted"}
        assert {job["id"] for job in (uploaded, building) if job} <= jobs.keys()
        folders = {read_id(folder) for folder in (tmp_path / "novel.tome-jobs").glob("*/")}
        assert folders == jobs.keys()  # nothing is left of an upload that was cut
        for job in jobs.values():
            resume = f"/api/jobs/{job['id']}/resume"
            if job["state"] == "interrupted":
                assert served.http.post(resume).status_code == 202
            finish(served, job)
            assert served.http.post(resume).status_code == 400
        if not any(job["kind"] == "add" for job in jobs.values()):
            finish(served, upload(served))
        finish(served, build(served))
        assert ask(served)["text"] in read_finished(path)
    assert finished.isdisjoint(mark(request) for request in model.requests[before:])
    assert read_memory(tmp_path) == memory
