"""Servers that take less than the protocol says: one refusal teaches it, for good. All are on loopback."""

import asyncio
import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from unittest.mock import Mock

import httpx2
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
    stream_with,
    write_event,
)
from tests.patience import SOON

from tomewise.errors import BudgetExceeded, ModelError, ModelUnavailable, PromptTooLong
from tomewise.language import adapting, client, roles, wire
from tomewise.language.adapting import Learnt
from tomewise.language.budget import Budget
from tomewise.language.chat import ChatModel
from tomewise.language.retry import Backoff
from tomewise.language.wrapped import Wrapped
from tomewise.run import change_run, meter
from tomewise.tome.tome import Tome
from tomewise.types import Document, Limit

pytestmark = pytest.mark.usefixtures("here")  # no key, no proxy
LONGER = "a prompt that is far too long " * 400


def refuse(status, message, does_refuse, **error):
    """A server that refuses some requests in these words, and replies well to all others."""
    refusal = Behaviour({"error": {"message": message, **error}}, status)
    return lambda request: refusal if does_refuse(request) else GOOD


def has(name):
    return lambda request: name in request


def has_rules(request):
    return request["messages"][0]["role"] != "user"


class Ear:
    """Hears a reply."""

    def __init__(self):
        self.heard = []

    def begin(self, begun=""):
        self.heard.clear()

    def hear(self, text):
        self.heard.append(text)


async def ask_anew(server):
    """Ask a model that is made now."""
    model = ChatModel("openai:test", base_url=server.url, backoff=Backoff(retries=0))
    try:
        return await fuse(model)
    finally:
        await model.close()


# ---------------------------------------------------------------- fields and roles


@pytest.mark.parametrize(
    ("status", "message", "refused"),
    [
        (400, "Unsupported value: 'temperature' does not support 0 with this model.", "temperature"),
        (422, "temperature: extra fields are not permitted", "temperature"),
        (400, "This response_format type is unavailable now", "response_format"),
        (400, "Failed to parse grammar", "response_format"),
        (500, "json_schema: unresolved $ref", "response_format"),
        (400, "JSON mode is not enabled for models/gemma-3-27b-it", "response_format"),
        (400, "This model does not support structured outputs", "response_format"),
        (400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", "max_tokens"),
    ],
)
async def test_a_field_that_was_refused_once_is_left_out_for_good(status, message, refused):
    async with open_chat() as (model, server):
        server.handler = refuse(status, message, has(refused))
        with meter() as used:
            assert [await fuse(model), await fuse(model), await ask_anew(server)] == [CUE] * 3
    assert [refused in request for request in server.requests] == [True, False, False, False]
    assert used.total.calls == len(server.requests), "a refused request counts too"
    assert all(request.get("max_tokens", request.get("max_completion_tokens")) == 500 for request in server.requests)


async def test_a_field_may_be_named_beside_the_message_or_in_the_body_of_a_framework():
    extra = {"detail": [{"loc": ["body", "temperature"], "msg": "extra", "input": {"max_tokens": 1}}]}
    for body in ({"error": {"message": "not supported", "param": "temperature"}}, extra, [{"error": extra}]):
        async with open_chat(Behaviour(body, 400), GOOD) as (model, server):
            assert await fuse(model) == CUE
        assert server.requests[1].keys() == server.requests[0].keys() - {"temperature"}


@pytest.mark.parametrize(
    "message",
    [
        "System role not supported",
        "Conversation roles must alternate user/assistant/user/assistant/...",
        "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
        "Only user and assistant roles are supported!",
        "role 'system' is not supported",
        "unknown variant `system`, expected `user` or `assistant`",
        "messages[0].role: Input should be 'user' or 'assistant'",
        "messages.0.role must be one of user, assistant",
    ],
)
async def test_where_there_is_no_role_for_rules_they_begin_the_first_turn(message):
    async with open_chat() as (model, server):
        server.handler = refuse(400, message, has_rules)
        assert [await fuse(model), await fuse(model)] == [CUE] * 2
    first, second, third = server.requests
    assert second["messages"] == third["messages"]
    (turn,) = second["messages"]
    assert turn == {"role": "user", "content": "\n\n".join(each["content"] for each in first["messages"])}


async def test_several_things_are_learnt_from_one_request():
    def reply(request):
        for name in ("temperature", "response_format", "max_tokens"):
            if name in request:
                return fail_with(400, f"unknown field {name}")
        return fail_with(400, "no system role") if has_rules(request) else GOOD

    async with open_chat() as (model, server):
        server.handler = reply
        assert [await fuse(model), await fuse(model)] == [CUE] * 2
    assert len(server.requests) == 6
    assert server.requests[-1].keys() == {"model", "messages", "stream", "max_completion_tokens"}
    assert model.adapter.known.describe() == ("takes no temperature, response_format, max_tokens; takes no system role")


@pytest.mark.parametrize("message", ["Your temperature is too high today", "what is this", "the system role is ill"])
async def test_a_refusal_that_stays_teaches_nothing(message):
    async with open_chat(fail_with(400, message)) as (model, server):
        with pytest.raises(ModelError, match=message):
            await fuse(model)
        server.handler = in_turn(GOOD)
        assert await ask_anew(server) == CUE
    assert server.requests[-1] == server.requests[0]


async def test_what_a_request_learnt_that_was_ended_is_not_kept():
    async with open_chat(fail_with(400, "Your temperature is too high today"), GOOD) as (model, server):
        with pytest.raises(BudgetExceeded):
            await fuse(Wrapped(model, Budget(Limit(calls=1), name="the test").ask))
        assert [await fuse(model), await ask_anew(server)] == [CUE] * 2
    assert server.requests[2] == server.requests[1] == server.requests[0]


async def test_a_request_that_fails_forgets_nothing_that_others_learnt():
    def reply(request):
        if "Bad?" in request["messages"][-1]["content"]:
            return replace(fail_with(400, "what is this"), delay=SOON, until=learnt)
        return fail_with(400, "no temperature") if "temperature" in request else GOOD

    learnt = threading.Event()
    async with open_chat() as (model, server):
        server.handler = reply
        failing = asyncio.create_task(model.ask(roles.FUSE, roles.FuseIn(question="Bad?", cues=[])))
        assert await asyncio.to_thread(server.arrived.wait, SOON)
        await fuse(model)
        learnt.set()
        with pytest.raises(ModelError, match="what is this"):
            await failing
        await fuse(model)
        await ask_anew(server)
    assert ["temperature" in request for request in server.requests] == [True, True, False, False, False]


@pytest.mark.parametrize(
    "message", ["content flagged: 'the schema of the temperature'", "temperature: service overloaded, try later"]
)
async def test_a_refusal_that_only_speaks_of_a_field_teaches_nothing(message):
    async with open_chat(fail_with(400, message), GOOD) as (model, server):
        with pytest.raises(ModelError, match=message):
            await fuse(model)
        await fuse(model)
    assert server.requests[1] == server.requests[0]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (
            fail_with(400, "no temperature"),
            Behaviour(None, pieces=[write_event({"error": {"message": "it died", "code": 500}})]),
        ),
        (Behaviour(b"<html>", headers={"content-type": "text/html"}), fail_with(503, "busy")),
    ],
)
async def test_an_error_is_not_taken_for_the_one_before_it(first, second):
    async with open_chat(first, second, GOOD) as (model, server):
        with change_run(listener=("fuse", Ear())):
            assert await fuse(model) == CUE
    assert not server.requests[2].get("stream"), "after an error in a stream, a plain request follows"
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    "message",
    [
        "max_tokens is too large: 500. This model supports at most 300 completion tokens, whereas you provided 500.",
        "Invalid max_tokens value, the valid range of max_tokens is [1, 300]",
        "max_tokens: 500 > 300, which is the maximum allowed number of output tokens for test-20241022",
        "max_tokens cannot exceed 300",
        "max_tokens is too large for this model",
        "`max_tokens` must be less than or equal to `300`, the maximum value for `max_tokens` is less than the "
        "`context_window` for this model",
    ],
)
async def test_the_most_that_a_reply_may_have_is_read_from_the_refusal(message):
    async with open_chat() as (model, server):
        server.handler = refuse(400, message, lambda request: request["max_tokens"] > 300)
        assert await fuse(model) == CUE
    assert [request["max_tokens"] for request in server.requests] == [500, 300 if "300" in message else 250]
    assert model.adapter.known.window == 0


@pytest.mark.parametrize("page", [b"<html>", b"[1]", b'{"openai:test": 3}', b'{"a": {"new": 1}}', b"[" * 100_000])
async def test_a_broken_memory_of_servers_is_none(learnt, page):
    learnt.mkdir()
    (learnt / "servers.json").write_bytes(page)
    async with open_chat(fail_with(400, "no temperature"), GOOD) as (model, _):
        assert await fuse(model) == CUE
        assert adapting.read_servers()[model.adapter.name].refused == ("temperature",)


def make_adapters(*names):
    """Adapters of processes that have all begun."""
    adapters = [adapting.Adapter(name) for name in names]
    assert [adapter.known for adapter in adapters] == [Learnt()] * len(names)
    return adapters


def keep(adapter, **known):
    adapter.known = Learnt(**known)
    adapter.keep()


def test_what_two_processes_learn_is_kept_side_by_side_and_what_one_takes_back_goes():
    first, second = make_adapters("openai:test", "openai:test")
    keep(first, refused=("temperature",), window=9_000)
    keep(second, refused=("system",), thoughts=200)
    both = Learnt(refused=("temperature", "system"), window=9_000, thoughts=200)
    assert adapting.read_servers() == {"openai:test": both}
    keep(first, window=9_000)
    assert adapting.read_servers() == {"openai:test": replace(both, refused=("system",))}


def test_what_is_learnt_at_one_moment_is_all_kept():
    adapters = make_adapters(*map(str, range(40)))
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(partial(keep, window=9), adapters))
    assert len(adapting.read_servers()) == len(adapters)


def test_rows_of_another_version_harm_no_other_and_the_latest_is_the_last(learnt):
    learnt.mkdir()
    rows = {"a": {"window": 5, "newer": 1}, "b": 3, "c": {"window": "wide"}, "d": {"window": 7}}
    (learnt / "servers.json").write_text(json.dumps(rows))
    assert adapting.read_servers() == {"a": Learnt(window=5), "d": Learnt(window=7)}
    adapter = adapting.Adapter("a")
    adapter.known = replace(adapter.known, thoughts=9)
    adapter.keep()
    kept = json.loads((learnt / "servers.json").read_text())
    assert list(kept.items()) == [*list(rows.items())[1:], ("a", {"window": 5, "thoughts": 9})]


def test_what_could_not_be_written_leaves_no_file_and_is_written_later(learnt, monkeypatch):
    (adapter,) = make_adapters("a")
    with monkeypatch.context() as full:
        full.setattr(adapting.os, "replace", Mock(side_effect=OSError("the disk is full")))
        keep(adapter, window=9)
    assert [path.name for path in learnt.iterdir() if path.suffix != ".lock"] == []
    adapter.keep()
    assert adapting.read_servers() == {"a": Learnt(window=9)}


OLDER, NEWER = adapting.LENGTHS


@pytest.mark.parametrize(
    ("name", "field"),
    [
        *((name, OLDER) for name in ("openai:qwen3", "openai:openchat", "openai:gpt-oss-20b", "ollama:qwen3")),
        *((f"{name}:x", OLDER) for name in ("deepseek", "together", "fireworks", "moonshotai", "alibaba", "nebius")),
        *((f"{name}/x", OLDER) for name in ("openrouter:openai", "vercel:openai")),
        *((name, NEWER) for name in ("openai:gpt-5-mini", "openai:o3")),
    ],
)
async def test_each_provider_gets_the_bound_and_the_schema_that_its_protocol_has(monkeypatch, name, field):
    with OpenAIServer(in_turn(GOOD)) as server:
        monkeypatch.setattr(wire.BoundedClient, "send", send_to(server.url, wire.BoundedClient.send))
        is_ours = name.startswith(("openai:", "ollama:"))
        model = ChatModel(name, base_url=server.url if is_ours else None, api_key="x", backoff=Backoff(0))
        assert await fuse(model) == CUE
        await model.close()
    (request,) = server.requests
    assert request["response_format"]["type"] == "json_schema"
    assert {OLDER, NEWER} & request.keys() == {field}


def send_to(address, send):
    """Send all requests of the HTTP client to this server, whatever address they have."""

    async def redirect(client, request, **options):
        request.url = httpx2.URL(f"{address}/chat/completions")
        return await send(client, request, **options)

    return redirect


# ---------------------------------------------------------------- the setting


async def test_what_is_stated_comes_before_what_is_learnt():
    async with open_chat(server={"temperature": "off", "response_format": "off"}) as (model, server):
        await fuse(model)
    assert not {"temperature", "response_format"} & server.requests[0].keys()
    async with open_chat(fail_with(400, "no temperature"), server={"temperature": "on"}) as (model, server):
        with pytest.raises(ModelError, match="no temperature"):
            await fuse(model)
        server.handler = refuse(400, "unknown field max_tokens", has("max_tokens"))
        model.adapter.known = Learnt(refused=("temperature",))
        assert await fuse(model) == CUE, "what is learnt of other fields counts"
    assert len(server.requests) == 3


@pytest.mark.parametrize(("stated", "effort", "room"), [("off", "none", 0), ("low", "low", 8192)])
async def test_how_much_a_model_thinks_may_be_stated(stated, effort, room):
    async with open_chat(server={"reasoning": stated, "temperature": "on"}) as (model, server):
        model.adapter.known = Learnt(thoughts=400)
        assert model.abilities.thoughts == (0 if stated == "off" else 400)
        await fuse(model)
    (request,) = server.requests
    assert request["reasoning_effort"] == effort
    assert request["chat_template_kwargs"] == {"enable_thinking": stated != "off"}
    assert (request["max_tokens"], request["temperature"]) == (500 + room, 0)


# ---------------------------------------------------------------- thoughts


THINKS = {
    "field": reply_with(GOOD.body["choices"][0]["message"]["content"], reasoning_content="Who was it? " * 20),
    "other field": reply_with(GOOD.body["choices"][0]["message"]["content"], reasoning="Who was it? " * 20),
    "tags": reply_with("<think>Who was it?</think>" + GOOD.body["choices"][0]["message"]["content"]),
    "half of the tags": reply_with('Who? {"cue": 1}?</think>' + GOOD.body["choices"][0]["message"]["content"]),
}


@pytest.mark.parametrize("kind", THINKS)
async def test_a_model_that_thinks_has_room_from_its_next_request_on(kind):
    async with open_chat(THINKS[kind]) as (model, server):
        assert [await fuse(model), await fuse(model), await ask_anew(server)] == [CUE] * 3
    assert [request["max_tokens"] for request in server.requests] == [500, 500 + 8192, 500 + 8192]


async def test_thoughts_that_were_cut_before_their_only_tag_have_room_then():
    async with open_chat(reply_with("Okay, so who hid it? " * 60, finish="length"), GOOD) as (model, server):
        assert await fuse(model) == CUE
    assert [request["max_tokens"] for request in server.requests] == [500, 2 * 500 + 8192]


async def test_a_model_that_thinks_no_more_has_no_room_for_it_in_the_end():
    async with open_chat(THINKS["tags"], GOOD) as (model, server):
        assert {await fuse(model) for _ in range(9)} == {CUE}
    assert [request["max_tokens"] for request in server.requests[1::7]] == [500 + 8192, 500]


async def test_a_tag_within_the_json_of_a_reply_ends_no_thoughts():
    fenced = "```json\n" + json.dumps({"cue": "The tag </think> ends them."}) + "\n```"
    async with open_chat(reply_with(fenced), GOOD) as (model, server):
        await fuse(model)
        await fuse(model)
    assert {request["max_tokens"] for request in server.requests} == {500}


async def test_what_is_reserved_for_a_request_is_what_it_is_sent_with():
    class Slow:
        async def reserve(self, request):
            reserved.append(request.output_bound)
            await both.wait()
            model.adapter.known = Learnt(thoughts=400)
            return 1

        def settle(self, request, spent):
            pass

    reserved, both = [], asyncio.Barrier(2)
    async with open_chat() as (model, server):
        with change_run(permits=(Slow(),)):
            await asyncio.gather(fuse(model), fuse(model))
    assert [request["max_tokens"] for request in server.requests] == reserved == [500, 500]


async def test_a_reply_that_stands_among_the_thoughts_is_read():
    async with open_chat(reply_with(None, reasoning_content=json.dumps({"cue": CUE}))) as (model, server):
        assert [await fuse(model), await fuse(model)] == [CUE] * 2
    assert [request["max_tokens"] for request in server.requests] == [500, 500], "these were no thoughts"


@pytest.mark.parametrize("streams", [False, True])
async def test_a_document_that_speaks_of_thoughts_keeps_its_words(streams):
    text = json.dumps({"cue": "a<think>b</think>c"})
    ear = Ear()
    reply = stream_with(text[:14], text[14:]) if streams else reply_with(text)
    async with open_chat(reply) as (model, _):
        with change_run(listener=("fuse", ear) if streams else None):
            assert await fuse(model) == "a<think>b</think>c"
    assert "".join(ear.heard) == (text if streams else "")


# ---------------------------------------------------------------- windows


WINDOWS = {
    "This model's maximum context length is 4096 tokens. However, you requested 9,000 tokens (8488 in the messages, "
    "512 in the completion). Please reduce the length of the messages or completion.": 4096,
    "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300012 tokens.": 272_000,
    "the request exceeds the available context size (4096 tokens), try increasing it": 4096,
    "Range of input length should be [1, 30720]": 30_720,
    "input length and `max_tokens` exceed context limit: 150000 + 64000 > 200000, decrease them and try again": 200_000,
    "The number of tokens to keep from the initial prompt is 5000. However, the model is loaded with context length of "
    "only 4096 tokens, which is not enough.": 4096,
    "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length": 32_768,
    "prompt is too long: 205000 tokens > 200000 maximum": 200_000,
    "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).": 1_048_576,
    "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 3900 `inputs` tokens and 500 `max_new_tokens`": 4096,
    "Request too large for model `m` in organization `org_01` on tokens per minute (TPM): Limit 6000, Requested 7012, "
    "please reduce your message size and try again.": 6000,
}


@pytest.mark.parametrize(("message", "window"), WINDOWS.items())
async def test_a_prompt_that_is_too_long_teaches_the_window(message, window):
    async with open_chat(fail_with(413 if "minute" in message else 400, message)) as (model, server):
        with pytest.raises(PromptTooLong, match=f"config set window {window}`") as raised:
            await model.ask(roles.FUSE, roles.FuseIn(question=LONGER * (window // 2000), cues=[]))
        assert raised.value.window == window
        assert (model.window, ChatModel("openai:test", base_url=server.url).window) == (window, window)
        assert ChatModel("openai:test", base_url=server.url, window=9).window == 9
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (413, b"<html><h1>413 Request Entity Too Large</h1><hr>nginx/1.24.0, limit 1024</html>"),
        (413, {"statusCode": 413, "detail": "Request body is too large (max 2048 bytes)"}),
        *((400, {"message": "too long", "n_ctx": window}) for window in (True, -5, 99)),
        (400, {"message": "prompt too long; exceeded max context length by 904 tokens"}),
        (400, {"message": "context length exceeded (code 1261). Request 20261127."}),
        (400, {"message": "context length is " + "9" * 1500}),
    ],
)
async def test_a_number_that_is_no_window_teaches_none(status, body):
    async with open_chat(Behaviour(body, status), GOOD) as (model, server):
        with pytest.raises(PromptTooLong) as raised:
            await model.ask(roles.FUSE, roles.FuseIn(question=LONGER, cues=[]))
        assert (raised.value.window, raised.value.asked) == (0, 0)
        assert await fuse(model) == CUE
        assert replace(model.adapter.known, timings=()) == Learnt()
    assert server.requests[-1]["max_tokens"] == 500


async def test_a_server_that_states_its_window_beside_the_message_is_heard():
    error = {"message": "the request exceeds the available context size", "n_ctx": 1500, "n_prompt_tokens": 2000}
    async with open_chat(Behaviour({"error": error}, 400)) as (model, _):
        with pytest.raises(PromptTooLong):
            await model.ask(roles.FUSE, roles.FuseIn(question=LONGER, cues=[]))
        assert model.window == 1500


async def test_a_reply_keeps_less_room_where_a_prompt_fits_then():
    message = "'max_tokens' is too large: 500. This model's maximum context length is 900 tokens (500 > 900 - 420)."
    async with open_chat() as (model, server):
        server.handler = refuse(400, message, lambda request: request["max_tokens"] > 480)
        assert await fuse(model) == CUE
    assert 250 < server.requests[1]["max_tokens"] <= 480


@pytest.mark.parametrize(("thoughts", "window"), [(0, 900), (400, 8192)])
async def test_requests_that_are_refused_together_all_get_what_room_the_server_counts(thoughts, window):
    def reply(request):  # it counts more tokens than we estimate
        asked = request["max_tokens"] + 448
        words = f"This model's maximum context length is {window} tokens. However, you requested {asked} tokens."
        return replace(fail_with(400, words), delay=0.2) if asked > window else GOOD

    async with open_chat() as (model, server):
        server.handler = reply
        model.adapter.known = Learnt(thoughts=thoughts)
        assert await asyncio.gather(*(fuse(model) for _ in range(3))) == [CUE] * 3
    assert [window - 500 < request["max_tokens"] <= window - 448 for request in server.requests[3:]] == [True] * 3


@pytest.mark.parametrize(
    ("options", "known", "bound"),
    [
        ({"window": 32768}, Learnt(window=600), 500),
        ({}, Learnt(window=600), 500),
        ({"window": 4096}, Learnt(thoughts=400), (3000, 4096)),
    ],
)
async def test_the_window_leaves_a_reply_what_its_role_needs(options, known, bound):
    async with open_chat(**options) as (model, server):
        model.adapter.known = known
        await model.ask(roles.FUSE, roles.FuseIn(question="Who hid it? " * 99, cues=[]))
    (sent,) = (request["max_tokens"] for request in server.requests)
    assert sent == bound or bound[0] < sent < bound[1]


@contextmanager
def serve_window(tokens):
    """A server that refuses every prompt above this window, and answers any other with its first sentence."""
    answer = {"answer": "at nine", "supported": "full", "quotes": []}

    def reply(request):
        asked = sum(len(turn["content"]) for turn in request["messages"]) // 4 + request["max_tokens"]
        if asked > tokens:
            return fail_with(400, f"maximum context length is {tokens} tokens, you requested {asked} tokens")
        return reply_with(json.dumps(answer))

    with OpenAIServer(reply) as server:
        yield server


def test_an_answer_is_asked_for_again_with_the_evidence_that_fits(here):
    documents = [Document(id=f"{number}.txt", text=f"The light {number} was put out. " * 40) for number in range(40)]
    with (
        serve_window(4000) as server,
        Tome.open(here / "a.tome", embedder="hash", model="openai:test", base_url=server.url) as tome,
    ):
        tome.add(*documents)
        with pytest.warns(UserWarning, match=r"asked again with \d+ of \d+ pieces of evidence.*config set window 4000"):
            assert tome.ask("When was the light put out?", system="hybrid context=6000").text == "at nine"
        before = len(server.requests)
        assert tome.ask("Who put out the light?", system="hybrid context=6000").text == "at nine"
        assert len(server.requests) == before + 1, "the next prompt fits at once"


# ---------------------------------------------------------------- waits


async def test_silence_is_reported_with_what_can_be_done(monkeypatch):
    monkeypatch.setattr(client, "SILENCE", 0.05)
    waits = []
    async with open_chat(reply_with('{"cue": "x"}', delay=0.3), timeout=77) as (model, server):
        with change_run(on_wait=waits.append):
            await fuse(model)
    (wait,) = waits
    assert "no word from openai:test at http://127.0.0.1" in wait.summary
    assert "`timeout` gives it" in wait.summary
    tokens = sum(len(turn["content"]) for turn in server.requests[0]["messages"]) / 4
    assert 77 < wait.detail["seconds"] < 77 * (1 + tokens / 3600), "a part of it is over"


async def test_a_near_server_has_longer_for_a_longer_prompt():
    async with open_chat(timeout=100.0) as (model, _):
        await fuse(model)
        near = model._find_client()
        short, long = (client.ChatRequest("", "", [turn], roles.CueOut, 9) for turn in ("Who?", LONGER))
        assert 100 < near.measure_patience(short) < 101 < near.measure_patience(long) < 250


async def test_a_server_that_loads_its_model_is_waited_for_as_long_as_a_reply():
    loading = [fail_with(503, "Loading model")] * 9
    async with open_chat(*loading, GOOD, backoff=Backoff(2, 0.001, 0.001)) as (model, server):
        assert await fuse(model) == CUE
    assert len(server.requests) == 10


# ---------------------------------------------------------------- replies that are none


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        ({"message": "out of tokens for this quota", "code": 429}, ModelUnavailable, "no quota left.*out of tokens"),
        ("model is loading", ModelUnavailable, "model is loading"),
        ({"message": "Not authenticated", "code": 401}, ModelUnavailable, "refused the key.*Not authenticated"),
        ({"message": "no such thing"}, ModelError, "rejected the request: status 200: no such thing"),
    ],
)
async def test_an_error_that_comes_as_a_success_is_told_in_its_own_words(error, kind, text):
    backoff = Backoff(retries=1, first=0.0)
    async with open_chat(Behaviour({"error": error}), backoff=backoff, timeout=0.5) as (model, _):
        with pytest.raises(kind, match=text) as raised:
            await fuse(model)
    assert "pydantic" not in str(raised.value)


@contextmanager
def serve_bytes(sent):
    """A server that sends these bytes whatever it is asked, and hangs up. Yields its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve():
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(100_000)
                    connection.sendall(sent)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        listener.shutdown(socket.SHUT_RDWR)
    thread.join()


@pytest.mark.parametrize(
    "sent", [b"", b"SSH-2.0-OpenSSH_9.6\r\n", b"\x15\x03\x01\x00\x02\x02\x16", b"HTTP/1.1 200 OK\r\n\r\n{"]
)
async def test_what_speaks_another_protocol_is_one_plain_line_in_time(sent):
    with serve_bytes(sent) as address:
        model = ChatModel("openai:test", base_url=address, backoff=Backoff(retries=1, first=0.0), timeout=5)
        async with asyncio.timeout(10):
            with pytest.raises(ModelError, match=r"openai:test at http://127") as raised:
                await model.ask(roles.FUSE, GIVEN)
        await model.close()
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 400
