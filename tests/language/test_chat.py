import asyncio
import gc
import json
import sys

import pytest
from tests.language.openai_server import (
    CUE,
    GIVEN,
    GOOD,
    Behaviour,
    OpenAIServer,
    fail_with,
    fuse,
    in_turn,
    open_chat,
    reply_with,
)
from tests.patience import NEVER, SOON

from tomewise.errors import BadReply, MissingDependency, ModelError, ModelUnavailable, Refused
from tomewise.language import connect_model, roles
from tomewise.language.chat import ChatModel
from tomewise.language.retry import Backoff
from tomewise.run import meter
from tomewise.types import LanguageModel

pytestmark = pytest.mark.usefixtures("here")  # no key, no proxy


async def test_a_good_reply_is_typed_and_metered():
    async with open_chat() as (model, server):
        assert isinstance(model, LanguageModel)
        with meter() as m:
            assert await model.ask(roles.FUSE, GIVEN) == roles.CueOut(cue=CUE)
    total = m.measure_cost()
    assert (total.calls, total.input_tokens, total.output_tokens, total.dollars) == (1, 100, 20, None)
    assert total.model_seconds > 0
    (request,) = server.requests
    assert [message["role"] for message in request["messages"]] == ["system", "user"]
    assert "- `cue`: text; " in request["messages"][0]["content"]
    assert "<finding" in request["messages"][1]["content"]
    assert (request["max_tokens"], request["temperature"]) == (roles.FUSE.output_tokens, 0.0)
    assert request["response_format"]["type"] == "json_schema"


@pytest.mark.parametrize(
    "content", ['{"cue": {', "I believe it was Mara.", "", None, '{"clue": "Mara"}', '{"cue": {"of": "Mara"}}']
)
async def test_a_reply_that_does_not_fit_is_repaired_once(content):
    async with open_chat(reply_with(content), GOOD) as (model, server):
        with meter() as m:
            assert await fuse(model) == CUE
    assert (m.measure_cost().calls, m.measure_cost().depth) == (2, 2)
    again = [message["content"] for message in server.requests[1]["messages"]]
    if content:
        assert again[2] == content
        assert "could not be used" in again[3]
    else:
        assert "empty" in again[1]
        assert len(again) == 2


async def test_a_second_bad_reply_is_an_error_that_shows_it():
    async with open_chat(reply_with("no"), reply_with("still no")) as (model, server):
        with pytest.raises(BadReply, match="'still no'"):
            await fuse(model)
    assert len(server.requests) == 2


THOUGHTS = {"reasoning_content": "Let me think. Mara ..."}


@pytest.mark.parametrize(("text", "more", "bound"), [('{"cu', {}, 1000), ("", THOUGHTS, 1000 + 8192)])
async def test_a_reply_cut_short_gets_twice_the_room_once_and_more_if_it_thought(text, more, bound):
    cut = reply_with(text, finish="length", **more)
    async with open_chat(cut, GOOD) as (model, server):
        assert await fuse(model) == CUE
        assert [request["max_tokens"] for request in server.requests] == [500, bound]
        assert len(server.requests[1]["messages"]) == 2
        server.handler = in_turn(cut)
        with pytest.raises(BadReply, match="reasoning=off" if more else "cut off for its length"):
            await fuse(model)


QUOTA = {"error": {"message": "pay first", "type": "insufficient_quota", "code": "insufficient_quota"}}
PLACE = r": check the base URL, which for most servers ends in /v1"


@pytest.mark.parametrize(
    ("reply", "error", "says"),
    [
        (reply_with(None, refusal="I cannot help with that."), Refused, "openai:test declined"),
        (reply_with("", finish="content_filter"), Refused, "openai:test declined"),
        (fail_with(401, "bad key"), ModelUnavailable, "OPENAI_API_KEY.*bad key"),
        (fail_with(403, "bad key"), ModelUnavailable, "OPENAI_API_KEY.*bad key"),
        (fail_with(404, "what is this"), ModelUnavailable, "what is this"),
        (fail_with(400, "what is this"), ModelError, "what is this"),
        (fail_with(422, "what is this"), ModelError, "what is this"),
        (Behaviour(QUOTA, 429), ModelUnavailable, "quota.*pay first"),
        (fail_with(400, "Your credit balance is too low"), ModelUnavailable, "no quota left.*credit balance"),
        (fail_with(400, "error loading chat template"), ModelError, "rejected the request"),
        # A redirect meets every request.
        (Behaviour(b"", 302, {"location": "https://in.example/?n=v1"}), ModelUnavailable, "redirect to https://in.+URL"),
        (Behaviour(b"", 308), ModelUnavailable, f"sent a redirect .*{PLACE}"),
        (Behaviour(b"<!doctype html>", headers={"content-type": "text/html"}), ModelError, f"a page of HTML .*{PLACE}"),
        (Behaviour(b" <html></html>"), ModelError, f"sent a page of HTML .*{PLACE}"),
        (Behaviour(b"", status=204), ModelError, rf"sent an empty reply \(status 204\).*{PLACE}"),
        (Behaviour(b" \n"), ModelError, rf"sent an empty reply \(status 200\).*{PLACE}"),
    ],
    ids=["refusal", "filter", "401", "403", "404", "400", "422", "quota", "credit", "loading", "redirect",
         "redirect nowhere", "page", "page as JSON", "no content", "empty"],
)  # fmt: skip
async def test_what_would_come_again_is_not_asked_for_again(reply, error, says):
    async with open_chat(reply, GOOD) as (model, server):
        with meter() as seen, pytest.raises(ModelError, match=says) as caught:
            await fuse(model)
    assert type(caught.value) is error
    assert len(server.requests) == seen.total.calls == 1
    assert seen.total.output_tokens == (20 if error is Refused else 0)


CUT = Behaviour(GOOD.body, cut=True)


@pytest.mark.parametrize(
    "passing",
    [
        *map(fail_with, (429, 500, 502, 503, 408)),
        CUT,
        Behaviour(b"busy"),
        fail_with(413, "Request too large on tokens per minute (TPM): Limit 6000, Used 5900, Requested 700"),
    ],
    ids=["429", "500", "502", "503", "408", "cut half-way", "no JSON", "tokens of a minute"],
)
async def test_passing_failures_are_tried_again(passing):
    async with open_chat(passing, passing, GOOD) as (model, server):
        with meter() as m:
            assert await fuse(model) == CUE
    assert len(server.requests) == 3
    assert (m.measure_cost().calls, m.measure_cost().depth) == (3, 1)


@pytest.mark.parametrize("lasting", [fail_with(429, "too many"), fail_with(500), CUT])
async def test_a_failure_that_lasts_ends_after_the_retries(lasting):
    async with open_chat(lasting) as (model, server):
        with pytest.raises(ModelUnavailable, match="openai:test at http"):
            await fuse(model)
    assert len(server.requests) == 3 + (lasting.status != 429), "a server that is not merely busy is tested once"


@pytest.mark.parametrize(("status", "error"), [(500, ModelError), (429, ModelUnavailable), (503, ModelUnavailable)])
async def test_a_request_that_fails_while_others_are_replied_to_fails_alone(status, error):
    lasting = fail_with(status)
    bad = roles.FuseIn(question="Who?", cues=["A text that breaks the server."])
    async with open_chat() as (model, server):
        server.handler = lambda request: lasting if "breaks" in request["messages"][1]["content"] else GOOD
        failing = asyncio.create_task(model.ask(roles.FUSE, bad))
        while not failing.done():
            await fuse(model)
        with pytest.raises(ModelError, match="keeps failing") as raised:
            await failing
        assert type(raised.value) is error
        server.handler = lambda request: lasting
        with pytest.raises(ModelUnavailable, match="keeps failing"):  # earlier replies do not count
            await model.ask(roles.FUSE, bad)


async def test_the_server_may_say_how_long_to_wait_up_to_the_patience_and_is_told_by_the_hour():
    async with open_chat(fail_with(429, retry_after_ms="200"), GOOD, backoff=Backoff(1, 0.0, 5.0)) as (model, _):
        with meter() as m:
            await fuse(model)
    assert m.measure_cost().model_seconds >= 0.2
    async with open_chat(fail_with(429, Retry_After="3600"), GOOD) as (model, server):
        with pytest.raises(ModelUnavailable, match=r"keeps failing: status 429.*it asks to wait until \d\d:\d\d"):
            await fuse(model)
    assert len(server.requests) == 1


async def test_a_time_out_covers_the_whole_request_and_is_tried_again():
    slow = reply_with('{"cue": "late"}', delay=NEVER)
    async with open_chat(slow, GOOD, timeout=0.3) as (model, _):
        assert await fuse(model) == CUE
    async with open_chat(slow, timeout=0.1) as (model, _):
        with pytest.raises(ModelUnavailable, match=r"within 0\.1 s"):
            await fuse(model)


async def test_blank_lines_before_a_reply_are_no_empty_reply():
    async with open_chat(Behaviour(b" \n" * 500 + json.dumps(GOOD.body).encode())) as (model, _):
        assert await fuse(model) == CUE


# ---------------------------------------------------------------- keys


@pytest.mark.parametrize(
    ("spec", "variable"),
    [("openai:gpt-4o-mini", "OPENAI_API_KEY"), ("anthropic:claude", "ANTHROPIC_API_KEY"), ("groq:x", "GROQ_API_KEY")],
)
@pytest.mark.parametrize("key", [None, " \n"])
async def test_a_missing_key_is_named_before_anything_is_sent(monkeypatch, spec, variable, key):
    monkeypatch.delenv(variable, raising=False)
    if key:
        monkeypatch.setenv(variable, key)
    with pytest.raises(ModelUnavailable, match=f"no key for {spec}: set {variable}"):
        await ChatModel(spec).ask(roles.FUSE, GIVEN)


@pytest.mark.parametrize("key", ["secret-1", "secret-1 ", "secret-1\n", "\t secret-1\r\n"])
async def test_the_key_and_the_address_may_come_from_the_environment_with_blanks_around_the_key(monkeypatch, key):
    with OpenAIServer(in_turn(GOOD)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", key)
        models = [ChatModel("openai:test"), ChatModel("openai:test", api_key=key.replace("1", "2"))]
        for model in models:
            await fuse(model)
        monkeypatch.delenv("OPENAI_API_KEY")
        models.append(ChatModel("openai:test", base_url=server.url))
        await fuse(models[-1])
        for model in models:
            await model.close()
    assert server.keys == ["bearer secret-1", "bearer secret-2", "bearer none"]


@pytest.mark.parametrize("key", ["sécret-1", "secret 1", "secret\n1", "secret-1\u200b", "secret\x7f1", "“secret-1”"])
async def test_a_key_that_no_header_carries_is_refused_by_the_name_of_its_variable(monkeypatch, key):
    monkeypatch.setenv("OPENAI_API_KEY", key)
    for options, place in (({}, "OPENAI_API_KEY holds"), ({"api_key": key}, "the key that was given holds")):
        async with open_chat(**options) as (model, server):
            with pytest.raises(ModelUnavailable, match=place) as raised:
                await fuse(model)
        assert "cret" not in str(raised.value)
        assert server.requests == []


# ---------------------------------------------------------------- providers


async def test_ollama_is_asked_with_its_schema():
    async with open_chat(name="ollama:llama3.1") as (model, server):
        assert await fuse(model) == CUE
    assert server.requests[0]["model"] == "llama3.1"
    assert server.requests[0]["response_format"]["type"] == "json_schema"


async def test_a_model_that_thinks_gets_room_and_no_temperature():
    async with open_chat(name="openai:gpt-5-mini") as (model, server):
        await fuse(model)
    assert server.requests[0]["max_completion_tokens"] == 500 + 8192
    assert "temperature" not in server.requests[0]


@pytest.mark.parametrize(
    ("provider", "remedy"), [("anthropic", r"tomewise\[anthropic\]"), ("groq", r"pydantic-ai-slim\[groq\]")]
)
async def test_a_provider_that_is_not_installed_says_what_to_do(monkeypatch, provider, remedy):
    monkeypatch.setitem(sys.modules, provider, None)
    monkeypatch.delitem(sys.modules, f"pydantic_ai.providers.{provider}", raising=False)
    with pytest.raises(MissingDependency, match=remedy):
        await ChatModel(f"{provider}:x", api_key="x").ask(roles.FUSE, GIVEN)


def test_the_window_is_known_or_set():
    windows = {"openai:gpt-4o-mini": 128_000, "openai:gpt-4": 8_192, "ollama:llama3.1": 4_096}
    assert {name: ChatModel(name).window for name in windows} == windows
    assert ChatModel("openai:other", window=10_000).window == 10_000


async def test_no_client_is_made_ahead_that_may_look_for_credentials(monkeypatch):
    """Those of clouds ask the network who they are."""
    made = []
    monkeypatch.setattr(connect_model, "connect_model", lambda spec, *_: (made.append(spec.provider), None))
    for name in ("google-cloud:a", "bedrock:a", "ollama:a"):
        await ChatModel(name).prepare()
    assert made == ["ollama"]


# ---------------------------------------------------------------- connections


async def test_the_limit_holds_and_connections_are_shared():
    async with open_chat(reply_with('{"cue": "x"}', delay=0.03), limit=3) as (model, server):
        with meter() as m:
            await asyncio.gather(*(fuse(model) for _ in range(12)))
        await fuse(model)
    assert server.most_at_once == 3
    assert server.connections <= 3
    assert (len(server.requests), m.measure_cost().depth) == (13, 1)


async def test_cancelling_frees_the_place():
    async with open_chat(reply_with('{"cue": "late"}', delay=30.0), GOOD, limit=1) as (model, server):
        task = asyncio.create_task(fuse(model))
        assert await asyncio.to_thread(server.arrived.wait, SOON)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await fuse(model) == CUE


def test_one_model_serves_several_event_loops():
    async def ask_once() -> str:
        cue = await fuse(model)
        await model.close()
        return cue

    with OpenAIServer(in_turn(GOOD)) as server:
        model = ChatModel("openai:test", base_url=server.url)
        assert [asyncio.run(ask_once()) for _ in range(2)] == [CUE] * 2
    assert server.connections == 2
    gc.collect()  # a connection that is still open warns here, and warnings are errors


# ---------------------------------------------------------------- what a call uses


async def test_uncounted_tokens_are_estimated():
    async with open_chat(Behaviour({**GOOD.body, "usage": None})) as (model, _):
        with meter() as m:
            await fuse(model)
        total = m.measure_cost()
        assert total.input_tokens == model.count_input_tokens(roles.FUSE, GIVEN) > 200
    assert total.output_tokens == 6  # 23 bytes
    assert total.dollars is None


async def test_cached_and_reasoning_tokens_are_counted_separately():
    details = {"prompt_tokens_details": {"cached_tokens": 64}, "completion_tokens_details": {"reasoning_tokens": 12}}
    async with open_chat(Behaviour({**GOOD.body, "usage": {**GOOD.body["usage"], **details}})) as (model, _):
        with meter() as m:
            await asyncio.gather(fuse(model), fuse(model))
    total = m.measure_cost()
    assert (total.input_tokens, total.cached_tokens) == (200, 128)
    assert (total.output_tokens, total.reasoning_tokens) == (40, 24)
