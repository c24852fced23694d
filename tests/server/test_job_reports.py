"""What a job says of itself: which step goes on, how much failed, and why."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.language.openai_server import Behaviour, OpenAIServer, fail_with, reply_with
from tests.patience import wait_until

from tomewise.server.app import make_app
from tomewise.server.jobs import Job
from tomewise.server.library import Library
from tomewise.server.serve_options import ServerOptions
from tomewise.settings import Settings
from tomewise.tome.tome import Tome
from tomewise.types import Document

BUILD = {"system": "cogitorag", "accept": {"calls": 1000}}
MOST_FAILURES = 20
GIST = json.dumps({"notes": "A meeting.", "memory": "Ada Marsh met the keeper.", "triples": [], "entities": ["Ada"]})


@pytest.fixture(name="model")
def make_model(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with OpenAIServer(lambda _: fail_with(400, "this text is not allowed")) as server:
        yield server


def serve(folder: Path, model: OpenAIServer, documents: int) -> TestClient:
    with Tome.open(folder / "novel.tome", embedder="hash") as tome:
        tome.add(*(Document(id=f"d{n:02}", text=f"On day {n} Ada met the keeper.") for n in range(documents)))
    settings = Settings(model="openai:test", base_url=model.url, limit=2, max_failures=MOST_FAILURES)
    return TestClient(make_app(Library(settings, root=folder), ServerOptions()), base_url="http://127.0.0.1:8765")


def build(client: TestClient) -> Any:
    job = client.post("/api/tomes/novel/builds", json=BUILD).json()
    wait_until(lambda: client.get(f"/api/jobs/{job['id']}").json()["state"] in ("done", "failed"))
    return client.get(f"/api/jobs/{job['id']}").json()


def test_a_small_build_of_which_every_call_fails_has_failed_and_says_why(tmp_path: Path, model: OpenAIServer):
    with serve(tmp_path, model, 5) as client:
        job = build(client)
        shown = client.get("/api/tomes/novel").json()
    assert (job["state"], job["failed"]) == ("failed", 5)
    assert "this text is not allowed" in job["reason"]
    assert "every call failed" in job["error"]["message"]
    counted: Counter[str] = Counter()
    for part in shown["failed"]:
        counted[part["layer"]] += part["count"]
    assert counted == {layer: counts["failed"] for layer, counts in shown["layers"].items() if counts["failed"]}
    assert sum(counted.values()) == 5


def test_a_long_build_of_which_every_call_fails_ends_early(tmp_path: Path, model: OpenAIServer):
    with serve(tmp_path, model, 200) as client:
        job = build(client)
    assert job["state"] == "failed"
    assert "with no reply between them" in job["reason"]
    assert len(model.requests) <= MOST_FAILURES + 2  # those in flight


def test_a_build_of_which_some_calls_fail_is_done_with_their_most_frequent_reason(tmp_path: Path, model: OpenAIServer):
    def behave(request: dict[str, Any]) -> Behaviour:
        text = str(request["messages"])
        if "day 3 " in text or "day 4 " in text:
            return fail_with(400, "not allowed")
        return fail_with(400, "too odd") if "day 1 " in text else reply_with(GIST)

    model.handler = behave
    with serve(tmp_path, model, 6) as client:
        job = build(client)
    assert (job["state"], job["error"]) == ("done", None)
    assert job["failed"] >= 3
    assert "not allowed" in job["reason"]


def test_the_step_that_goes_on_is_never_full():
    job = Job(id="1", tome="novel", kind="build", task={}, state="running")
    assert job.describe().doing is None
    job.progress = {"gists": (5, 5), "facts": (2, 9), "characters cut": (10, 10)}
    doing = job.describe().doing
    assert doing is not None
    assert doing.label == "facts"
    job.progress["facts"] = (9, 9)
    assert job.describe().doing is None
    job.progress["facts"], job.state = (2, 9), "failed"
    assert job.describe().doing is None


def test_each_step_is_named_from_its_start(tmp_path: Path):
    seen = []
    with Tome.open(tmp_path / "novel.tome", embedder="hash") as tome:
        tome.add(Document(id="d", text="Ada Marsh met Tom Reed in Hull. \n" * 9), on_progress=seen.append)
        tome.build("hipporag2", on_progress=seen.append)
    labels = list(dict.fromkeys(step.label for step in seen))
    assert {"characters cut", "passages embedded"} < set(labels)
    for label in labels:
        steps = [(step.done, step.total) for step in seen if step.label == label]
        assert steps[-1][0] == steps[-1][1], label
        assert label == "characters cut" or steps[0][0] == 0, label
