"""Models that the operator offers: listed, chosen by requests, tried; no other is asked, and no key leaves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.building import play_role
from tests.language.openai_server import Behaviour, OpenAIServer, reply_with
from tests.server.served import ASK, NOVEL, STREAM, finish_job, make_client, make_tome

from tomewise.language.adapting import Adapter
from tomewise.server.library import Library
from tomewise.settings import Settings
from tomewise.types import Cost

KEY = "sk-a-key-that-nobody-sees-0123456789"
ANSWER = '{"reasoning": "It says so.", "answer": "Ada Marsh", "quotes": []}'
QUESTION = {"question": "Who put out the light?", "system": "naive"}


@pytest.fixture(name="asked")
def make_server() -> Iterator[OpenAIServer]:
    with OpenAIServer(play_role) as server:
        yield server


@pytest.fixture
def client(tmp_path: Path, asked: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    make_tome(tmp_path / "novel.tome")
    offer = "openai:gpt-4o-mini openai:broken extractive"
    with make_client(tmp_path, model="openai:own", base_url=asked.url, offer=offer, budget="50 calls") as made:
        yield made


def list_asked(server: OpenAIServer) -> list[str]:
    return [request["model"] for request in server.requests]


def test_models_are_listed_with_window_and_price(client: TestClient, asked: OpenAIServer):
    models = {model.pop("name"): model for model in client.get("/api/models").json()["models"]}
    assert list(models) == ["openai:own", "openai:gpt-4o-mini", "openai:broken", "extractive"]
    small = models["openai:gpt-4o-mini"]
    assert (models["openai:own"]["is_default"], small["is_default"], small["window"]) == (True, False, 128_000)
    assert 0 < small["input_price"] < small["output_price"]
    assert models["extractive"] == {"is_default": False, "window": None, "input_price": 0.0, "output_price": 0.0}
    assert list_asked(asked) == []


def test_a_question_is_asked_of_the_model_that_it_names(client: TestClient, asked: OpenAIServer):
    client.post(ASK, json=QUESTION)
    client.post(ASK, json={**QUESTION, "model": "openai:gpt-4o-mini"})
    client.post(ASK, json={**QUESTION, "model": "openai:own"})  # its reply was kept
    assert list_asked(asked) == ["own", "gpt-4o-mini"]
    client.post(ASK, json={**QUESTION, "model": "extractive"})
    streamed = client.post(ASK, json={**QUESTION, "model": "openai:gpt-4o-mini"}, headers=STREAM)
    assert '"model": "openai:gpt-4o-mini"' in streamed.text
    traces = client.get(f"{NOVEL}/traces").json()["traces"]
    models = [client.get(f"{NOVEL}/traces/{row['number']}").json()["answer"]["model"] for row in reversed(traces)]
    assert models == ["openai:own", "openai:gpt-4o-mini", "openai:own", "extractive", "openai:gpt-4o-mini"]


def test_a_build_asks_the_model_that_it_names(client: TestClient, asked: OpenAIServer):
    body = {"system": "cogitorag", "accept": "50 calls", "model": "openai:gpt-4o-mini"}
    finish_job(client, f"{NOVEL}/builds", body)
    assert set(list_asked(asked)) == {"gpt-4o-mini"}
    costs = client.post(f"{NOVEL}/estimate", json={"system": "raptor", "model": "openai:gpt-4o-mini"}).json()
    assert costs["model"] == "openai:gpt-4o-mini"


@pytest.mark.parametrize("path", ["ask", "search", "estimate", "builds"])
def test_no_other_model_is_asked(client: TestClient, asked: OpenAIServer, path: str):
    body: dict[str, Any] = {"ask": {"question": "x"}, "search": {"query": "x"}}.get(path, {})
    for name in ("openai:gpt-4o", "openai:own " + "x" * 400):
        refused = client.post(f"{NOVEL}/{path}", json={**body, "model": name})
        assert (refused.status_code, refused.json()["error"]["code"]) == (404, "unknown_name")
    assert client.post("/api/models/test", json={"model": "openai:gpt-4o"}).status_code == 404
    assert list_asked(asked) == []


def test_a_model_is_tried_with_one_call_and_its_failure_shows_no_key(client: TestClient, asked: OpenAIServer):
    asked.handler = lambda request: reply_with(ANSWER)
    tried = client.post("/api/models/test", json={"model": "openai:gpt-4o-mini"}).json()
    assert (tried["ok"], tried["reason"], tried["structured"]) == (True, "", "yes")
    assert set(list_asked(asked)) == {"gpt-4o-mini"}
    asked.handler = lambda request: Behaviour({"error": {"message": f"no such model for {KEY}"}}, status=404)
    failed = client.post("/api/models/test", json={"model": "openai:broken"})
    assert (failed.status_code, failed.json()["ok"]) == (200, False)
    assert "no such model" in failed.json()["reason"]
    assert KEY not in failed.text


def test_the_address_of_the_settings_belongs_to_one_provider(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    settings = Settings(model="openai:own", base_url="http://127.0.0.1:9/v1", offer="anthropic:claude-sonnet-4-5")
    library = Library(settings, root=tmp_path)
    addresses = [library.find_spec(name).address for name in library.models]  # type: ignore[union-attr]
    assert addresses == ["http://127.0.0.1:9/v1", None]


def test_above_what_is_accepted_a_question_is_priced_and_not_asked(client: TestClient, asked: OpenAIServer):
    adapter = Adapter(f"openai:own at {asked.url}")
    adapter.time(Cost(calls=1, input_tokens=100, output_tokens=10), 600.0)
    adapter.keep()
    price = client.post(f"{NOVEL}/estimate", json=QUESTION).json()
    assert (price["total"]["calls"], price["system"]) == (1, "naive")
    assert price["total"]["model_seconds"] > 120
    for headers in ({}, STREAM):
        refused = client.post(ASK, json={**QUESTION, "accept": "2 minutes"}, headers=headers)
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "estimate")
        assert refused.json()["estimate"] == price
        assert price["text"] in refused.json()["error"]["message"]
    assert list_asked(asked) == []
    assert client.post(ASK, json={**QUESTION, "accept": price["accept"]}).status_code == 200
    assert list_asked(asked) == ["own"]
    info = client.get("/api/info?systems=false").json()["limits"]
    assert (info["budget"], info["ask_above"]) == ("50 calls", "2 minutes")
