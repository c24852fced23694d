"""The window of a model as its server states it, from servers on this machine."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest
from tests.language.openai_server import OpenAIServer, reply_with

from tomewise.language.chat import ChatModel


@pytest.fixture(autouse=True)
def ask_each_time(monkeypatch):
    """A window that does not last is asked for again at once."""
    monkeypatch.setattr("tomewise.language.chat._WINDOW_SECONDS", 0)


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(lambda _: reply_with("{}")) as made:
        yield made


def serve_ollama(server: OpenAIServer, tokens: int) -> list[str]:
    """Ollama with a model that is loaded when it is asked to. Returns what was asked."""
    asked: list[str] = []
    loaded: list[dict[str, Any]] = [{"model": "other:latest", "context_length": 9}]

    def load(body: Any) -> Any:
        asked.append(body["model"])
        loaded.append({"model": f"{body['model']}:latest", "context_length": tokens})
        return {"done": True}

    server.pages |= {"/api/ps": lambda _: asked.append("ps") or {"models": loaded}, "/api/generate": load}
    return asked


def test_ollama_states_the_window_of_a_model_that_is_loaded_and_is_asked_once(server: OpenAIServer) -> None:
    asked = serve_ollama(server, 32_768)
    model = ChatModel("ollama:llama3.1", base_url=server.url)
    assert (model.window, model.window) == (32_768, 32_768)
    assert asked == ["ps", "llama3.1", "ps"]
    assert ChatModel("ollama:llama3.1", base_url=server.url).window == 32_768
    assert asked[3:] == ["ps"], "it is loaded by now"


def test_lm_studio_states_the_window_of_a_model_that_is_loaded(server: OpenAIServer) -> None:
    rows = [{"id": "other", "loaded_context_length": 9}, {"id": "mine", "max_context_length": 131_072}]
    server.pages["/api/v0/models"] = lambda _: {"data": rows}
    model = ChatModel("openai:mine", base_url=server.url)
    assert model.window == 4_096, "not loaded yet"
    rows[1]["loaded_context_length"] = 16_384
    assert model.window == 16_384


@pytest.mark.parametrize("page", [{"data": "no"}, [], {"data": [{"id": "mine"}, 3]}, b"<html>", b"[" * 100_000, None])
def test_a_server_that_states_nothing_leaves_the_known_window(server: OpenAIServer, page: Any) -> None:
    server.pages = {} if page is None else {"/api/v0/models": lambda _: page, "/api/ps": lambda _: page}
    assert ChatModel("openai:mine", base_url=server.url).window == 128_000
    assert ChatModel("ollama:mine", base_url=server.url).window == 4_096


def test_a_window_that_may_change_is_asked_for_once_in_some_seconds(
    server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tomewise.language.chat._WINDOW_SECONDS", 600)
    rows = [{"id": "mine", "max_context_length": 8_192}]
    asked: list[str] = []
    server.pages = {"/api/v0/models": lambda _: asked.append("models") or {"data": rows}}
    model = ChatModel("openai:mine", base_url=server.url)
    assert {model.window for _ in range(10)} == {4_096}
    assert asked == ["models"]


def test_a_window_that_is_given_is_not_asked_for(server: OpenAIServer) -> None:
    assert ChatModel("ollama:llama3.1", base_url=server.url, window=9_000).window == 9_000
    assert not server.connections


def test_a_server_that_is_away_is_asked_again_later() -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{reserved.getsockname()[1]}/v1"
        model = ChatModel("ollama:llama3.1", base_url=address)
        assert model.window == 4_096
    with OpenAIServer(lambda _: reply_with("{}")) as server:
        serve_ollama(server, 8_192)
        model._spec = type(model._spec)("ollama", "llama3.1", server.url)
        assert model.window == 8_192
