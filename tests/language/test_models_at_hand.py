"""What servers on this machine offer, and a test call; the servers are fakes on loopback ports."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from tests.language.openai_server import OpenAIServer, fail_with, reply_with, stream_with

from tomewise.errors import ModelUnavailable
from tomewise.language import models_at_hand
from tomewise.language.chat import ChatModel
from tomewise.language.models_at_hand import LocalModel, LocalServer, find_local_models, suggest_model
from tomewise.language.retry import Backoff
from tomewise.language.roles import ANSWER, AnswerIn
from tomewise.language.trial import Trial, try_model

REPLY = '{"answer": "Ada Marsh", "quotes": [], "supported": "full"}'


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(lambda _: reply_with(REPLY)) as made:
        yield made


@pytest.fixture(autouse=True)
def no_keys(monkeypatch):
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def find_root(server: OpenAIServer) -> str:
    return server.url.removesuffix("/v1")


def find_free_root() -> str:
    """The address of a port on which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


def serve(monkeypatch, *servers: LocalServer) -> None:
    monkeypatch.setattr(models_at_hand, "SERVERS", servers)


def serve_ollama(server: OpenAIServer) -> LocalServer:
    about = {
        "small:1b": {"model_info": {"llama.context_length": 131_072}, "capabilities": ["completion"]},
        "large:8b": {"model_info": {"qwen.context_length": 40_960}},
        "busy:3b": {},
        "embed": {"capabilities": ["embedding"]},
    }
    rows = [{"name": name, "size": size} for name, size in zip(about, (1_000, 8_000, 3_000, 500), strict=True)]
    server.pages |= {
        "/api/tags": lambda _: {"models": [*rows, {"name": 3}, "no"]},
        "/api/ps": lambda _: {"models": [{"model": "busy:3b", "context_length": 8_192}]},
        "/api/show": lambda body: about[body["model"]],
    }
    return LocalServer("Ollama", find_root(server), is_ollama=True)


def test_ollama_lists_what_writes_with_windows_and_the_loaded_one_first(server, monkeypatch):
    serve(monkeypatch, serve_ollama(server))
    assert find_local_models() == [
        LocalModel("ollama:busy:3b", "", "Ollama", window=8_192, size=3_000),
        LocalModel("ollama:large:8b", "", "Ollama", most_tokens=40_960, size=8_000),
        LocalModel("ollama:small:1b", "", "Ollama", most_tokens=131_072, size=1_000),
    ]
    assert suggest_model() == ("--model ollama:busy:3b", "Ollama runs here")


def test_servers_of_openais_protocol_state_their_windows(server, monkeypatch):
    rows: list[dict[str, Any]] = [{"id": "mine", "max_model_len": 32_768}, {"id": "nomic"}, {"id": 7}]
    server.pages["/v1/models"] = lambda _: {"data": rows}
    serve(monkeypatch, LocalServer("vLLM", find_root(server)))
    base = f"{find_root(server)}/v1"
    assert find_local_models()[0] == LocalModel("openai:mine", base, "vLLM", window=32_768)
    server.pages["/api/v0/models"] = lambda _: {
        "data": [{"id": "mine", "max_context_length": 9_000}, {"id": "nomic", "type": "embeddings"}]
    }
    assert find_local_models() == [LocalModel("openai:mine", base, "vLLM", window=32_768, most_tokens=9_000)]
    del rows[0]["max_model_len"], server.pages["/api/v0/models"]
    server.pages["/props"] = lambda _: {"default_generation_settings": {"n_ctx": 4_096}}
    assert find_local_models()[0].window == 4_096
    assert suggest_model() == (f"--model openai:mine --base-url {base}", "vLLM runs here")


@pytest.mark.parametrize("page", [b"<html>", [], {"data": "no"}, {"data": [3]}, b"[" * 100_000, None])
def test_anything_else_at_a_port_is_passed_over(server, monkeypatch, page):
    server.pages |= dict.fromkeys(("/v1/models", "/api/tags", "/api/ps", "/props", "/api/v0/models"), lambda _: page)
    root = find_root(server)
    serve(
        monkeypatch, LocalServer("a", root), LocalServer("b", root, is_ollama=True), LocalServer("c", find_free_root())
    )
    assert find_local_models() == []
    assert suggest_model() == ("", "")


def test_a_server_that_accepts_and_says_nothing_is_left_behind(monkeypatch, server):
    monkeypatch.setattr(models_at_hand, "SECONDS", 0.1)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        quiet = LocalServer("silent", f"http://127.0.0.1:{silent.getsockname()[1]}")
        serve(monkeypatch, quiet, quiet, quiet)
        assert find_local_models() == []


def test_only_this_machine_is_asked():
    assert all(server.root.startswith("http://127.0.0.1:") for server in models_at_hand.SERVERS)


def test_a_key_comes_before_what_runs_here(server, monkeypatch):
    serve(monkeypatch, serve_ollama(server))
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    assert suggest_model() == ("--model openai:gpt-4o-mini", "OPENAI_API_KEY is set")


# ---------------------------------------------------------------- a test call


async def test_a_trial_says_what_a_model_can_do():
    def reply(request):
        return stream_with(REPLY[:20], REPLY[20:]) if request.get("stream") else reply_with(REPLY)

    with OpenAIServer(reply) as server:
        trial = await try_model("openai:mine", base_url=server.url)
        assert (trial.problem, trial.structured, trial.streams) == ("", "yes", True)
        assert trial.window > 0
        assert len(server.requests) == 1


async def test_a_trial_notices_replies_that_do_not_fit_and_come_whole():
    with OpenAIServer(lambda _: reply_with("I am a poet.")) as server:
        trial = await try_model("openai:mine", base_url=server.url)
    assert (trial.problem, trial.structured, trial.streams) == ("", "no", False)


async def test_a_trial_that_fails_says_why_and_is_not_tried_again():
    with OpenAIServer(lambda _: fail_with(500, "out of memory")) as server:
        trial = await try_model("openai:mine", base_url=server.url)
        assert "out of memory" in trial.problem
        assert len(server.requests) <= 2, "the second one is plain"
    assert "cannot be reached" in (await try_model("openai:mine", base_url=f"{find_free_root()}/v1")).problem


# ---------------------------------------------------------------- a server that is not there


async def test_a_server_of_this_machine_that_is_not_there_is_asked_once(caplog):
    caplog.set_level("INFO", "tomewise.language.retry")
    for spec in ("openai:mine", "ollama:llama3"):
        model = ChatModel(spec, base_url=f"{find_free_root()}/v1")
        with pytest.raises(ModelUnavailable, match="cannot be reached"):
            await model.ask(ANSWER, AnswerIn(question="Who?"))
        await model.close()
    assert caplog.messages == []


async def test_a_server_that_replied_before_is_waited_for(caplog):
    caplog.set_level("INFO", "tomewise.language.retry")
    with OpenAIServer(lambda _: reply_with(REPLY)) as server:
        model = ChatModel("openai:mine", base_url=server.url, backoff=Backoff(retries=2, first=0.01))
        await model.ask(ANSWER, AnswerIn(question="Who?"))
    with pytest.raises(ModelUnavailable):
        await model.ask(ANSWER, AnswerIn(question="When?"))
    assert [message[:17] for message in caplog.messages] == ["retrying 1 of 2 i", "retrying 2 of 2 i"]
    await model.close()


# ---------------------------------------------------------------- the command


def test_the_command_lists_local_models_and_tries_one_that_is_set(command, server, monkeypatch):
    serve(monkeypatch, serve_ollama(server))
    listed = json.loads(command("models", "--json").out)
    assert [row["name"] for row in listed["local"]] == ["ollama:busy:3b", "ollama:large:8b", "ollama:small:1b"]
    shown = command("models").out
    assert "8,192" in shown
    assert "not loaded, 40,960 at most" in shown
    monkeypatch.setenv("OLLAMA_BASE_URL", server.url)
    ran = command("config", "set", "model", "ollama:large:8b")
    assert ran.code == 0
    assert "it answers" in ran.out
    assert "structured replies: yes" in ran.out
    tested = json.loads(command("config", "set", "model", "ollama:large:8b", "--json").out)["test"]
    assert set(tested) == set(Trial.__dataclass_fields__)
    before = len(server.requests)
    assert "it answers" not in command("config", "set", "model", "ollama:large:8b", "--no-test").out
    command("config", "set", "model", "extractive")
    assert len(server.requests) == before
    failed = command("config", "set", "model", "openai:gpt-4o-mini")
    assert failed.code == 0, "the setting is set all the same"
    assert "the test call failed: no key for openai:gpt-4o-mini" in failed.out


def test_an_answer_without_a_model_names_the_best_at_hand(command, here, server, monkeypatch):
    (here / "a.txt").write_text("Ada Marsh keeps the light.")
    command("add", "a.txt")
    serve(monkeypatch, serve_ollama(server))
    assert "--model ollama:busy:3b (Ollama runs here)" in command("ask", "Who keeps the light?").err
    serve(monkeypatch)
    assert "Here:" not in command("ask", "Who keeps the light?").err
