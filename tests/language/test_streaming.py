"""A reply that is heard while it is written, over real sockets."""

import asyncio
import json

import pytest
from tests.language.openai_server import (
    GIVEN,
    Behaviour,
    fail_with,
    in_turn,
    make_chunk,
    open_chat,
    reply_with,
    stream_with,
    write_event,
)
from tests.patience import SOON

from tomewise.errors import BadReply, ModelError, Refused
from tomewise.language import roles, wire
from tomewise.language.retry import Backoff
from tomewise.run import change_run, meter

CUE = "Mara hid it in the café 😀."
REPLY = json.dumps({"cue": CUE}, ensure_ascii=False)
END = b"data: [DONE]\n\n"
pytestmark = pytest.mark.usefixtures("here")  # no key, no proxy


def send(*pieces, **options):
    """A stream of these bytes and chunks."""
    written = [piece if isinstance(piece, bytes) else write_event(piece) for piece in pieces]
    return Behaviour(None, pieces=written, **options)


def break_off(**options):
    """A stream that begins a reply and does not end it."""
    return stream_with('{"cue": "Ma', finish=None, usage=False, done=False, **options)


class Ear:
    """Hears the text of each reply that begins."""

    def __init__(self):
        self.replies = []
        self.heard = asyncio.Event()

    def begin(self, begun=""):
        self.replies.append([])

    def hear(self, text):
        self.replies[-1].append(text)
        self.heard.set()

    @property
    def texts(self):
        return ["".join(reply) for reply in self.replies]


async def ask(model, ear=None):
    with change_run(listener=("fuse", ear or Ear())):
        return (await model.ask(roles.FUSE, GIVEN)).cue


@pytest.mark.parametrize("text", [REPLY, json.dumps({"cue": CUE})], ids=["plain", "escaped"])
@pytest.mark.parametrize("size", [0, 1, 2, 7, 100_000])
async def test_a_reply_is_heard_however_the_network_cuts_it(text, size):
    ear = Ear()
    pieces = [text[start : start + 3] for start in range(0, len(text), 3)]
    async with open_chat(stream_with(*pieces, size=size)) as (model, server):
        with meter() as m:
            assert await ask(model, ear) == CUE
    assert ear.texts == [text]
    assert len(ear.replies[0]) > 5
    total = m.measure_cost()
    assert (total.calls, total.input_tokens, total.output_tokens) == (1, 100, 20)
    assert server.requests[0]["stream"] is True


async def test_nobody_listens_so_nothing_streams():
    async with open_chat() as (model, server):
        with change_run(listener=("answer", Ear())):
            await model.ask(roles.FUSE, GIVEN)
    assert server.requests[0]["stream"] is False


async def test_a_text_is_heard_when_it_comes():
    ear = Ear()
    async with open_chat(stream_with('{"cue": "Mara', ' hid it."}', pause=0.4)) as (model, _):
        asking = asyncio.create_task(ask(model, ear))
        await ear.heard.wait()
        assert ear.texts == ['{"cue": "Mara']
        assert not asking.done()
        assert await asking == "Mara hid it."


@pytest.mark.parametrize("separator", [b"\r\n", b"\r", b"\n"])
async def test_lines_may_end_in_any_way(separator):
    whole = b"".join(stream_with('{"cue": "', 'Mara"}').pieces).replace(b"\n", separator)
    for size in (1, len(whole)):
        ear = Ear()
        pieces = [b": a comment" + separator * 2, *(whole[at : at + size] for at in range(0, len(whole), size))]
        async with open_chat(send(*pieces)) as (model, _):
            assert await ask(model, ear) == "Mara"
        assert ear.texts == ['{"cue": "Mara"}']


async def test_a_server_that_ignores_the_stream_is_paid_once():
    ear = Ear()
    async with open_chat(reply_with(REPLY)) as (model, server):
        with meter() as m:
            assert await ask(model, ear) == CUE
    assert ear.texts == [REPLY]
    assert (len(server.requests), m.measure_cost().calls, m.measure_cost().input_tokens) == (1, 1, 100)


# ---------------------------------------------------------------- whether the next attempt streams


NOT_DUE = {  # failures that no plain request would spare
    "rate": fail_with(429),
    "busy": fail_with(503),
    "busy in the stream": send({"error": {"message": "overloaded", "code": 503}}),
    "cut after text": break_off(cut=True),
    "silence after text": break_off(hold=True),
    "ended after text": break_off(),
    "error after text": send(make_chunk({"content": "{"}), {"error": {"message": "no"}}),
}
DUE = {
    **{str(status): fail_with(status, "stream is not supported") for status in (400, 422, 501)},
    "error": fail_with(500),
    "page": Behaviour(b"<html><body>Welcome</body></html>", headers={"Content-Type": "text/html"}),
    "no completion": Behaviour({"status": "ok"}),
    "empty": send(),
    "only the end": send(END),
    "cut": send(b": a comment\n\n", cut=True),
    "silence": send(b": a comment\n\n", hold=True),
}


@pytest.mark.parametrize("case", [*NOT_DUE, *DUE])
async def test_only_a_failure_that_may_be_due_to_the_stream_makes_the_next_attempts_plain(case):
    ear, failing = Ear(), [{**NOT_DUE, **DUE}[case]]
    async with open_chat(timeout=2.0) as (model, server):
        server.handler = lambda request: (
            failing.pop() if failing else stream_with(REPLY) if request["stream"] else reply_with(REPLY)
        )
        with meter() as m:
            assert [await ask(model, ear), await ask(model, ear)] == [CUE] * 2
    assert [request["stream"] for request in server.requests] == [True, *[case in NOT_DUE] * 2]
    assert ear.texts[-1] == (REPLY if case in NOT_DUE else "")
    refused = case in ("rate", "busy", "busy in the stream", "400", "422", "501", "error", "page")
    assert m.measure_cost().calls == 3
    assert (m.measure_cost().input_tokens == 200) is refused, "a server may charge for the prompt of a broken reply"


async def test_a_request_that_is_wrong_stays_wrong():
    async with open_chat(fail_with(400, "no such thing")) as (model, server):
        with pytest.raises(ModelError, match="no such thing"):
            await ask(model)
        assert len(server.requests) == 2
        server.handler = in_turn(stream_with(REPLY))
        assert await ask(model) == CUE
    assert server.requests[-1]["stream"] is True, "a plain request failed too, so the stream was not at fault"


async def test_a_server_that_has_streamed_is_asked_to_stream_again():
    ear = Ear()
    async with open_chat(stream_with(REPLY), fail_with(500), reply_with(REPLY), stream_with(REPLY)) as (model, server):
        for _ in range(3):
            assert await ask(model, ear) == CUE
    assert [request["stream"] for request in server.requests] == [True, True, False, True]
    assert ear.texts == [REPLY, "", REPLY]


TOO_LONG = {"message": "the limit is 8192 tokens", "type": "invalid_request_error", "code": "context_length_exceeded"}


@pytest.mark.parametrize("reply", [Behaviour({"error": TOO_LONG}, 400), fail_with(401), fail_with(404)])
async def test_what_a_plain_request_would_meet_too_is_sent_once(reply):
    async with open_chat(reply) as (model, server):
        with pytest.raises(ModelError, match=r"larger window|refused the key|does not exist"):
            await ask(model)
    assert len(server.requests) == 1


# ---------------------------------------------------------------- streams that break off or cannot be read


async def test_a_malformed_reply_is_repaired_once():
    ear = Ear()
    replies = map(stream_with, ('{"cue": {}}', REPLY, "no JSON here"))
    async with open_chat(*replies) as (model, server):
        assert await ask(model, ear) == CUE
        assert ear.texts == ['{"cue": {}}', REPLY]
        with pytest.raises(BadReply):
            await ask(model)
    assert len(server.requests) == 4


async def test_a_refusal_is_not_heard():
    ear = Ear()
    async with open_chat(send(make_chunk({"refusal": "I will not."}), make_chunk({}, "stop"), END)) as (model, _):
        with pytest.raises(Refused, match="I will not"):
            await ask(model, ear)
    assert ear.texts == [""]


async def test_usage_that_is_stated_in_every_chunk_counts_once():
    chunks = [
        {**make_chunk({"content": text}), "usage": {"prompt_tokens": 100, "completion_tokens": tokens}}
        for text, tokens in (('{"cue": ', 1), ('"x"}', 5))
    ]
    async with open_chat(send(*chunks, make_chunk({}, "stop"))) as (model, _):
        with meter() as m:
            await ask(model)
    assert (m.measure_cost().input_tokens, m.measure_cost().output_tokens) == (100, 5)


@pytest.mark.parametrize(
    "pieces",
    [
        [b"data: x\n\n"], [b"data: {}\n\n"] * 50, [b"\xff\xfe\n\n"], [b"\n" * 5000], [END],
        [b"data: " + b"[" * 50_000 + b"\n\n"], [b'data: {"choices": 3}\n\n', END],
        [b'data: {"choices": [{"delta": 7, "finish_reason": 8}], "usage": "x"}\n\n', END],
        [b'data: {"choices": [{"delta": {"content": [1, {}], "tool_calls": 9}}]}\n\n', END],
        [b"data: null\n\n"], [b"event: x\ndata: 1\n\n"], [b"x" * 100_000],
    ],
)  # fmt: skip
async def test_whatever_a_server_streams_is_an_output_or_a_model_error(pieces):
    async with open_chat(send(*pieces)) as (model, _):
        with pytest.raises(ModelError):
            await ask(model)


# ---------------------------------------------------------------- bounds


async def test_a_stream_has_a_bound(monkeypatch):
    monkeypatch.setattr(wire, "LONGEST_BODY", 20_000)
    async with open_chat(stream_with(*["x" * 1000] * 100)) as (model, server):
        with pytest.raises(ModelError, match="sent more than"):
            await ask(model)
    assert len(server.requests) == 1


async def test_a_stream_has_a_time_limit_in_all():
    endless = stream_with(*"xxxxxxxxxxxx", pause=0.1)
    async with open_chat(endless, timeout=0.4, backoff=Backoff(retries=0)) as (model, _):
        with pytest.raises(ModelError, match=r"did not reply within 0\.4 s"):
            await ask(model)


async def test_cancelling_hangs_up():
    ear = Ear()
    async with open_chat(break_off(hold=True)) as (model, server):
        with meter() as m:
            asking = asyncio.create_task(ask(model, ear))
            await ear.heard.wait()
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            assert await asyncio.to_thread(server.left.wait, SOON)
    assert m.measure_cost().calls == 1
    assert m.measure_cost().input_tokens > 0, "what was sent counts"
