"""Replies that never end, that take long to read, and that are easily misread; servers that do not take a call."""

from __future__ import annotations

import asyncio
import socket
import time
from contextlib import ExitStack

import pytest
from tests.language.openai_server import Behaviour, OpenAIServer, in_turn, reply_with
from tests.patience import NEVER, SOON

from tomewise.errors import BadReply, ModelError, ModelUnavailable
from tomewise.language import roles, wire
from tomewise.language.chat import ChatModel
from tomewise.language.reply import decode
from tomewise.language.retry import Backoff

GIVEN = roles.FuseIn(question="Who hid the letter?", cues=["Mara sockets it last."])
GOOD = '{"cue": "Mara hid it."}'
ONCE = Backoff(retries=0)
MANY = 200_000


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.mark.parametrize(
    "text",
    [
        "{" * MANY, "[" * MANY, "{}" * (MANY // 2), "[]" * (MANY // 2), '{"' * (MANY // 2), '{"a":' * (MANY // 5),
        "[" * 500 + '"' + "x" * MANY, ("[" * 900 + "1," * 100) * 180, "```\n" * (MANY // 4), ", " * (MANY // 2),
        "</think>" * (MANY // 8), 'x{"a":1}' * (MANY // 8), "{ " * (MANY // 2), "[" + "1" * MANY, "[1," * (MANY // 3),
    ],
)  # fmt: skip
def test_a_long_reply_is_read_in_linear_time(text: str) -> None:
    begun = time.thread_time()
    with pytest.raises(BadReply):
        decode(roles.FUSE, text)
    assert time.thread_time() - begun < 3.0


def test_what_is_longer_than_any_reply_is_not_read() -> None:
    with pytest.raises(BadReply, match="1,000,001 characters long"):
        decode(roles.FUSE, "x" * 1_000_001)


@pytest.mark.parametrize(
    "text",
    [
        '{"cue": "draft"} </think> {"cue": "final"}',
        '<think>{"cue": "draft"}</think>{"cue": "final"}',
        '<think>{"cue": "one"}</think>{"cue": "two"}</think>\n```json\n{"cue": "final"}\n```',
        '<thinking>{"cue": "draft"}</THINKING> It is {"cue": "final"}.',
    ],
)
def test_what_stands_after_the_last_thought_counts(text: str) -> None:
    assert decode(roles.FUSE, text).cue == "final"


@pytest.mark.parametrize(
    "text", ['<think>{"cue": "draft"}', '{"cue": "draft"}</think>', '{"cue": "draft"}</think> Hm.']
)
def test_a_thought_is_no_reply(text: str) -> None:
    with pytest.raises(BadReply, match="no JSON object"):
        decode(roles.FUSE, text)


def test_a_tag_inside_a_string_ends_no_thought() -> None:
    assert decode(roles.FUSE, '{"cue": "it wrote </think> there"}').cue == "it wrote </think> there"


async def test_a_long_unusable_reply_is_not_sent_back_whole() -> None:
    with OpenAIServer(in_turn(reply_with("{" * MANY), reply_with(GOOD))) as server:
        model = ChatModel("openai:test", base_url=server.url)
        assert (await model.ask(roles.FUSE, GIVEN)).cue == "Mara hid it."
        await model.close()
    assert len(server.requests[1]["messages"][2]["content"]) == 8 * roles.FUSE.output_tokens


async def test_a_body_without_end_is_given_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "LONGEST_BODY", 100_000)
    with OpenAIServer(in_turn(Behaviour(b'{"choices": "' + b"x" * 3_000_000))) as server:
        model = ChatModel("openai:test", base_url=server.url)
        with pytest.raises(ModelError, match="bytes for one reply") as raised:
            await model.ask(roles.FUSE, GIVEN)
        await model.close()
    assert not isinstance(raised.value, ModelUnavailable)
    assert len(server.requests) == 1


async def test_a_body_that_unpacks_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    import gzip

    packed = gzip.compress(b" " * 20_000_000)
    with OpenAIServer(in_turn(Behaviour(packed, headers={"Content-Encoding": "gzip"}))) as server:
        model = ChatModel("openai:test", base_url=server.url)
        with pytest.raises(ModelError, match="more than 8,388,608 bytes"):
            await model.ask(roles.FUSE, GIVEN)
        await model.close()


async def test_a_packed_reply_is_read() -> None:
    import gzip
    import json

    packed = gzip.compress(json.dumps(reply_with(GOOD).body).encode())
    with OpenAIServer(in_turn(Behaviour(packed, headers={"Content-Encoding": "gzip"}))) as server:
        model = ChatModel("openai:test", base_url=server.url)
        assert (await model.ask(roles.FUSE, GIVEN)).cue == "Mara hid it."
        await model.close()


async def test_a_server_that_takes_no_connection_is_given_up_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    assert wire.CONNECT_SECONDS == 10.0
    monkeypatch.setattr(wire, "CONNECT_SECONDS", 0.2)
    with ExitStack() as sockets:
        full = sockets.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        address = full.getsockname()
        for _ in range(4):  # more than the queue of a server that accepts nothing
            waiting = sockets.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(address)
        model = ChatModel("openai:test", base_url=f"http://127.0.0.1:{address[1]}/v1", timeout=NEVER, backoff=ONCE)
        async with asyncio.timeout(SOON):
            with pytest.raises(ModelUnavailable, match="cannot be reached"):
                await model.ask(roles.FUSE, GIVEN)
        await model.close()
