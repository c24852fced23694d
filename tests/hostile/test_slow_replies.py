"""Replies that never end, that take long to read, and that are easily misread; servers that do not take a call."""

import asyncio
import gzip
import json
import socket
import time
from contextlib import ExitStack

import pytest
from tests.language.openai_server import CUE, GOOD, Behaviour, fuse, open_chat, reply_with
from tests.patience import NEVER, SOON

from tomewise.errors import BadReply, ModelError, ModelUnavailable
from tomewise.language import roles, wire
from tomewise.language.chat import ChatModel
from tomewise.language.reply import decode
from tomewise.language.retry import Backoff

MANY = 200_000
pytestmark = pytest.mark.usefixtures("here")  # no key, no proxy


@pytest.mark.parametrize(
    "text",
    [
        "{" * MANY, "[" * MANY, "{}" * (MANY // 2), "[]" * (MANY // 2), '{"' * (MANY // 2), '{"a":' * (MANY // 5),
        "[" * 500 + '"' + "x" * MANY, ("[" * 900 + "1," * 100) * 180, "```\n" * (MANY // 4), ", " * (MANY // 2),
        "</think>" * (MANY // 8), 'x{"a":1}' * (MANY // 8), "{ " * (MANY // 2), "[" + "1" * MANY, "[1," * (MANY // 3),
    ],
)  # fmt: skip
def test_a_long_reply_is_read_in_linear_time(text):
    begun = time.thread_time()
    with pytest.raises(BadReply):
        decode(roles.FUSE, text)
    assert time.thread_time() - begun < 3.0


def test_what_is_longer_than_any_reply_is_not_read():
    with pytest.raises(BadReply, match="1,000,001 characters long"):
        decode(roles.FUSE, "x" * 1_000_001)


@pytest.mark.parametrize(
    ("text", "cue"),
    [
        ('{"cue": "draft"} </think> {"cue": "final"}', "final"),
        ('<think>{"cue": "draft"}</think>{"cue": "final"}', "final"),
        ('<think>{"cue": "one"}</think>{"cue": "two"}</think>\n```json\n{"cue": "final"}\n```', "final"),
        ('<thinking>{"cue": "draft"}</THINKING> It is {"cue": "final"}.', "final"),
        ('{"cue": "it wrote </think> there"}', "it wrote </think> there"),
        ('<think>{"cue": "draft"}', None),
        ('{"cue": "draft"}</think>', None),
        ('{"cue": "draft"}</think> Hm.', None),
    ],
)
def test_what_stands_after_the_last_thought_counts_and_a_thought_is_no_reply(text, cue):
    if cue:
        assert decode(roles.FUSE, text).cue == cue
    else:
        with pytest.raises(BadReply, match="no JSON object"):
            decode(roles.FUSE, text)


async def test_a_long_unusable_reply_is_not_sent_back_whole():
    async with open_chat(reply_with("{" * MANY), GOOD) as (model, server):
        assert await fuse(model) == CUE
    assert len(server.requests[1]["messages"][2]["content"]) == 8 * roles.FUSE.output_tokens


def pack(body):
    return Behaviour(gzip.compress(body), headers={"Content-Encoding": "gzip"})


async def test_a_packed_reply_is_read():
    async with open_chat(pack(json.dumps(GOOD.body).encode())) as (model, _):
        assert await fuse(model) == CUE


@pytest.mark.parametrize(
    ("endless", "bound"),
    [(Behaviour(b'{"choices": "' + b"x" * 3_000_000), 100_000), (pack(b" " * 20_000_000), wire.LONGEST_BODY)],
    ids=["long", "packed"],
)
async def test_a_body_without_end_is_given_up_once(monkeypatch, endless, bound):
    monkeypatch.setattr(wire, "LONGEST_BODY", bound)
    async with open_chat(endless) as (model, server):
        with pytest.raises(ModelError, match="more than 8,388,608 bytes for one reply") as raised:
            await fuse(model)
    assert not isinstance(raised.value, ModelUnavailable)
    assert len(server.requests) == 1


async def test_a_server_that_takes_no_connection_is_given_up_soon(monkeypatch):
    assert wire.CONNECT_SECONDS == 10.0
    monkeypatch.setattr(wire, "CONNECT_SECONDS", 0.2)
    with ExitStack() as sockets:
        full = sockets.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        address = full.getsockname()
        for _ in range(4):  # more than the queue of a server that accepts nothing
            waiting = sockets.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(address)
        url = f"http://127.0.0.1:{address[1]}/v1"
        model = ChatModel("openai:test", base_url=url, timeout=NEVER, backoff=Backoff(retries=0))
        async with asyncio.timeout(SOON):
            with pytest.raises(ModelUnavailable, match="cannot be reached"):
                await fuse(model)
        await model.close()
