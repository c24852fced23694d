"""What servers on this machine offer, the windows that they state, and a test call; all are on loopback."""

import json
import socket

import pytest
from tests.language.openai_server import GIVEN, OpenAIServer, fail_with, fuse, open_chat, reply_with, stream_with

from tomewise.errors import ModelError, ModelUnavailable, PromptTooLong
from tomewise.language import models_at_hand, roles
from tomewise.language.chat import ChatModel
from tomewise.language.models_at_hand import LocalModel, LocalServer, find_local_models, suggest_model
from tomewise.language.retry import Backoff
from tomewise.language.trial import try_model

REPLY = '{"answer": "Ada Marsh", "quotes": [], "supported": "full"}'
HALVES = REPLY[:20], REPLY[20:]
PAGES = ("/v1/models", "/api/tags", "/api/ps", "/props", "/api/v0/models")
ODD = [b"<html>", [], {"data": "no"}, {"data": [3]}, {"data": [{"id": "mine"}, 3]}, b"[" * 100_000, None]
OLLAMA = "ollama:llama3.1"


@pytest.fixture
def server():
    with OpenAIServer(lambda _: reply_with(REPLY)) as made:
        yield made


@pytest.fixture(autouse=True)
def find_no_key_and_ask_each_time(here, monkeypatch):
    """A window that does not last is asked for again at once."""
    for name in ("GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("tomewise.language.models_at_hand.WINDOW_SECONDS", 0)


def find_root(server):
    return server.url.removesuffix("/v1")


def find_free_root():
    """The address of a port on which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


def serve(monkeypatch, *servers):
    monkeypatch.setattr(models_at_hand, "SERVERS", servers)


def serve_ollama(server):
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


def test_ollama_lists_what_writes_with_windows_and_the_loaded_one_first_and_a_key_comes_before(server, monkeypatch):
    serve(monkeypatch, serve_ollama(server))
    assert find_local_models() == [
        LocalModel("ollama:busy:3b", "", "Ollama", window=8_192, size=3_000),
        LocalModel("ollama:large:8b", "", "Ollama", most_tokens=40_960, size=8_000),
        LocalModel("ollama:small:1b", "", "Ollama", most_tokens=131_072, size=1_000),
    ]
    assert suggest_model() == ("--model ollama:busy:3b", "Ollama runs here")
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    assert suggest_model() == ("--model openai:gpt-4o-mini", "OPENAI_API_KEY is set")


def test_servers_of_openais_protocol_state_their_windows(server, monkeypatch):
    rows = [{"id": "mine", "max_model_len": 32_768}, {"id": "nomic"}, {"id": 7}]
    server.pages["/v1/models"] = lambda _: {"data": rows}
    serve(monkeypatch, LocalServer("vLLM", find_root(server)))
    base = server.url
    assert find_local_models()[0] == LocalModel("openai:mine", base, "vLLM", window=32_768)
    server.pages["/api/v0/models"] = lambda _: {
        "data": [{"id": "mine", "max_context_length": 9_000}, {"id": "nomic", "type": "embeddings"}]
    }
    assert find_local_models() == [LocalModel("openai:mine", base, "vLLM", window=32_768, most_tokens=9_000)]
    del rows[0]["max_model_len"], server.pages["/api/v0/models"]
    server.pages["/props"] = lambda _: {"default_generation_settings": {"n_ctx": 4_096}}
    assert find_local_models()[0].window == 4_096
    assert suggest_model() == (f"--model openai:mine --base-url {base}", "vLLM runs here")


@pytest.mark.parametrize("page", ODD)
def test_anything_else_at_a_port_is_passed_over_and_leaves_the_known_window(server, monkeypatch, page):
    server.pages |= {path: lambda _: page for path in PAGES if path != "/v1/models" or page != ODD[4]}
    root = find_root(server)
    serve(
        monkeypatch, LocalServer("a", root), LocalServer("b", root, is_ollama=True), LocalServer("c", find_free_root())
    )
    assert find_local_models() == []
    assert suggest_model() == ("", "")
    assert ChatModel("openai:mine", base_url=server.url).window == 128_000
    assert ChatModel("ollama:mine", base_url=server.url).window == 4_096


def test_a_server_that_accepts_and_says_nothing_is_left_behind(monkeypatch):
    monkeypatch.setattr(models_at_hand, "SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        serve(monkeypatch, *[LocalServer("silent", f"http://127.0.0.1:{silent.getsockname()[1]}")] * 3)
        assert find_local_models() == []


# ---------------------------------------------------------------- the window that a server states


def load_when_asked(server, tokens):
    """Ollama with a model that is loaded when it is asked to. Returns what was asked."""
    asked, loaded = [], [{"model": "other:latest", "context_length": 9}]

    def load(body):
        asked.append(body["model"])
        loaded.append({"model": f"{body['model']}:latest", "context_length": tokens})
        return {"done": True}

    server.pages |= {"/api/ps": lambda _: asked.append("ps") or {"models": loaded}, "/api/generate": load}
    return asked


def test_ollama_states_the_window_of_a_model_that_is_loaded_and_is_asked_once(server):
    asked = load_when_asked(server, 32_768)
    model = ChatModel(OLLAMA, base_url=server.url)
    assert (model.window, model.window) == (32_768, 32_768)
    assert asked == ["ps", "llama3.1", "ps"]
    assert ChatModel(OLLAMA, base_url=server.url).window == 32_768
    assert asked[3:] == ["ps"], "it is loaded by now"
    assert ChatModel(OLLAMA, base_url=server.url, window=9_000).window == 9_000
    assert asked[4:] == [], "a window that is given is not asked for"


@pytest.mark.parametrize("seconds", [0, 600])
def test_a_window_that_may_change_is_asked_for_once_in_some_seconds(server, monkeypatch, seconds):
    monkeypatch.setattr("tomewise.language.models_at_hand.WINDOW_SECONDS", seconds)
    rows = [{"id": "other", "loaded_context_length": 9}, {"id": "mine", "max_context_length": 131_072}]
    asked = []
    server.pages["/api/v0/models"] = lambda _: asked.append("models") or {"data": rows}
    model = ChatModel("openai:mine", base_url=server.url)
    assert (model.window, model.window) == (4_096, 4_096), "LM Studio has not loaded it yet"
    assert asked == ["models"] * (1 if seconds else 2)
    rows[1]["loaded_context_length"] = 16_384
    assert model.window == (4_096 if seconds else 16_384)


@pytest.mark.parametrize(
    ("rows", "running", "window"),
    [
        ([{"id": "mine", "max_model_len": 32_768}, {"id": "other", "max_model_len": 9}], 0, 32_768),
        ([{"id": "path/of/the.gguf"}], 8_192, 8_192),
        ([{"id": "alias", "max_model_len": 16_384}], 0, 16_384),
        ([{"id": "mine"}, {"id": "other"}], 0, 128_000),
    ],
    ids=["vLLM", "llama.cpp", "under another name", "not stated"],
)
def test_vllm_and_llama_cpp_state_their_windows_to_those_with_a_key(server, rows, running, window):
    server.pages |= {
        "/v1/models": lambda _: {"data": rows},
        "/props": lambda _: {"default_generation_settings": {"n_ctx": running}},
    }
    model = ChatModel("openai:mine", base_url=server.url, api_key="secret")
    assert not model.found_window.known, "nobody was asked yet"
    assert model.window == window
    assert (model.found_window.known or 128_000) == window
    assert set(server.keys) == {"bearer secret"}


async def test_a_refusal_below_the_stated_window_counts_until_the_server_states_it_anew():
    async with open_chat(fail_with(400, "maximum context length is 4000 tokens, you requested 9000")) as (
        model,
        server,
    ):
        server.pages["/v1/models"] = lambda _: {"data": [{"id": "test", "max_model_len": 131_072}]}
        assert model.window == 131_072
        with pytest.raises(PromptTooLong):
            await model.ask(roles.FUSE, roles.FuseIn(question="Who hid the letter? " * 2_000, cues=[]))
        assert model.found_window.find() == (model.found_window.known, "a refusal of its server")
        assert model.window == 4_000
        assert ChatModel("openai:test", base_url=server.url).window == 131_072, "it may run with more by now"


def test_a_server_that_loads_its_model_is_asked_again(server):
    props = [fail_with(503, "Loading model"), {"default_generation_settings": {"n_ctx": 4_096}}]
    server.pages["/props"] = lambda _: props.pop(0)
    model = ChatModel("openai:mine", base_url=server.url)
    assert [model.window, model.window, model.window] == [128_000, 4_096, 4_096]


# ---------------------------------------------------------------- a test call


@pytest.mark.parametrize(
    ("reply", "structured", "streams"),
    [
        (lambda request: stream_with(*HALVES) if request.get("stream") else reply_with(REPLY), "yes", True),
        (lambda _: reply_with("I am a poet."), "no", False),
    ],
    ids=["good", "prose that comes whole"],
)
async def test_a_trial_says_what_a_model_can_do(server, reply, structured, streams):
    server.handler = reply
    trial = await try_model("openai:mine", base_url=server.url)
    assert (trial.problem, trial.structured, trial.streams) == ("", structured, streams)
    assert trial.window > 0
    assert len(server.requests) == (1 if streams else 2)


@pytest.mark.parametrize("spec", ["openai:mine", "ollama:llama3"])
async def test_a_server_of_this_machine_that_is_not_there_is_asked_once(caplog, spec):
    caplog.set_level("INFO", "tomewise.language.retry")
    model = ChatModel(spec, base_url=f"{find_free_root()}/v1")
    with pytest.raises(ModelUnavailable, match="cannot be reached"):
        await model.ask(roles.FUSE, GIVEN)
    await model.close()
    assert caplog.messages == []


async def test_a_server_that_replied_before_is_waited_for(caplog):
    caplog.set_level("INFO", "tomewise.language.retry")
    async with open_chat(backoff=Backoff(retries=2, first=0.01)) as (model, server):
        await fuse(model)
        server.stop()
        with pytest.raises(ModelUnavailable):
            await fuse(model)
    assert [message[:18] for message in caplog.messages] == ["try 2 of 3 in 0 s:", "try 3 of 3 in 0 s:"]


# ---------------------------------------------------------------- the command


def test_the_command_lists_local_models_and_tries_one_that_is_set(command, server, monkeypatch):
    serve(monkeypatch, serve_ollama(server))
    listed = json.loads(command("models", "--json").out)
    assert [row["name"] for row in listed["local"]] == ["ollama:busy:3b", "ollama:large:8b", "ollama:small:1b"]
    assert "not loaded, 40,960 at most" in command("models").out
    monkeypatch.setenv("OLLAMA_BASE_URL", server.url)
    setting = ("config", "set", "model", "ollama:large:8b")
    assert "it answers" in command(*setting).out
    assert json.loads(command(*setting, "--json").out)["test"]["structured"] == "yes"
    before = len(server.requests)
    assert "it answers" not in command(*setting, "--no-test").out
    assert len(server.requests) == before
    failed = command("config", "set", "model", "openai:gpt-4o-mini")
    assert failed.code == 0, "the setting is set all the same"
    assert "the test call failed: no key for openai:gpt-4o-mini" in failed.out


def test_a_trial_learns_what_a_server_takes_and_the_command_lists_it(command, server):
    server.handler = lambda request: fail_with(400, "no temperature") if "temperature" in request else reply_with(REPLY)
    server.pages["/v1/models"] = lambda _: {"data": [{"id": "mine", "max_model_len": 32_768}]}
    tried = command("models", "--try", "openai:mine", "--base-url", server.url).out
    assert "32,768 tokens (its server)" in " ".join(tried.split())
    assert "takes no temperature" in tried
    assert "takes no temperature" in command("models").out
    listed = json.loads(command("models", "--json").out)["learnt"]
    assert listed[f"openai:mine at {server.url}"]["refused"] == ["temperature"]
    assert command("models", "--try", "extractive").code == 2
    assert command("models", "openai", "--try", "openai:mine", "--base-url", server.url).code == 2
    server.handler = lambda _: fail_with(400, "what is this")
    assert command("models", "--try", "openai:mine", "--base-url", server.url).code == ModelError.exit_code


def test_an_answer_without_a_model_names_the_best_at_hand(command, here, server, monkeypatch):
    (here / "a.txt").write_text("Ada Marsh keeps the light.")
    command("add", "a.txt")
    serve(monkeypatch, serve_ollama(server))
    assert "--model ollama:busy:3b (Ollama runs here)" in command("ask", "Who keeps the light?").err
    serve(monkeypatch)
    assert "Here:" not in command("ask", "Who keeps the light?").err
