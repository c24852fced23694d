"""A reply that is heard while it is written, over real sockets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from pydantic_ai.models import Model
from pydantic_ai.models.openai import OpenAIChatModel
from tests.language.openai_server import (
    Behaviour,
    OpenAIServer,
    fail_with,
    in_turn,
    make_chunk,
    reply_with,
    stream_with,
    write_event,
)
from tests.patience import SOON

from tomewise.errors import BadReply, BudgetExceeded, ModelError, ModelUnavailable, Refused
from tomewise.language import roles, wire
from tomewise.language.budget import Budgeted
from tomewise.language.chat import ChatModel
from tomewise.language.retry import Backoff
from tomewise.run import change_run, meter

GIVEN = roles.FuseIn(question="Who hid the letter?", cues=["Mara held it last."])
CUE = "Mara hid it in the café 😀."
REPLY = json.dumps({"cue": CUE}, ensure_ascii=False)
ESCAPED = json.dumps({"cue": CUE})
FAST = Backoff(retries=2, first=0.01, longest=0.05)


class Ear:
    """Hears the text of each reply that begins."""

    def __init__(self) -> None:
        self.replies: list[list[str]] = []
        self.heard = asyncio.Event()

    def begin(self) -> None:
        self.replies.append([])

    def hear(self, text: str) -> None:
        self.replies[-1].append(text)
        self.heard.set()

    @property
    def texts(self) -> list[str]:
        return ["".join(reply) for reply in self.replies]


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(in_turn(reply_with(REPLY))) as serving:
        yield serving


@asynccontextmanager
async def chat_model(server: OpenAIServer, *behaviours: Behaviour, **options: Any) -> AsyncIterator[ChatModel]:
    server.handler = in_turn(*behaviours)
    model = ChatModel("openai:test", base_url=server.url, **{"backoff": FAST, **options})
    try:
        yield model
    finally:
        await model.close()


async def ask(model: Any, ear: Ear) -> roles.CueOut:
    with change_run(listener=("fuse", ear)):
        return await model.ask(roles.FUSE, GIVEN)


@pytest.mark.parametrize("text", [REPLY, ESCAPED])
@pytest.mark.parametrize("size", [0, 1, 2, 7, 100_000])
async def test_a_reply_is_heard_however_the_network_cuts_it(server: OpenAIServer, text: str, size: int) -> None:
    ear = Ear()
    pieces = [text[start : start + 3] for start in range(0, len(text), 3)]
    async with chat_model(server, stream_with(*pieces, size=size)) as model:
        with meter() as m:
            assert await ask(model, ear) == roles.CueOut(cue=CUE)
    assert ear.texts == [text]
    assert len(ear.replies[0]) > 5
    total = m.usage().total
    assert (total.calls, total.input_tokens, total.output_tokens) == (1, 100, 20)
    assert server.requests[0]["stream"] is True


async def test_nobody_listens_so_nothing_streams(server: OpenAIServer) -> None:
    async with chat_model(server, reply_with(REPLY)) as model:
        with change_run(listener=("answer", Ear())):
            await model.ask(roles.FUSE, GIVEN)
    assert server.requests[0]["stream"] is False


async def test_a_text_is_heard_when_it_comes(server: OpenAIServer) -> None:
    ear = Ear()
    async with chat_model(server, stream_with('{"cue": "Mara', ' hid it."}', pause=1.0)) as model:
        asking = asyncio.create_task(ask(model, ear))
        await ear.heard.wait()
        assert ear.texts == ['{"cue": "Mara']
        assert not asking.done()
        assert (await asking).cue == "Mara hid it."


@pytest.mark.parametrize("separator", [b"\r\n", b"\r", b"\n"])
async def test_lines_may_end_in_any_way(server: OpenAIServer, separator: bytes) -> None:
    whole = b"".join(stream_with('{"cue": "', 'Mara"}').pieces or ()).replace(b"\n", separator)
    for size in (1, len(whole)):
        ear = Ear()
        pieces = [b": a comment" + separator * 2, *(whole[at : at + size] for at in range(0, len(whole), size))]
        async with chat_model(server, Behaviour(None, pieces=pieces)) as model:
            assert (await ask(model, ear)).cue == "Mara"
        assert ear.texts == ['{"cue": "Mara"}']


async def test_a_character_may_be_cut_between_two_chunks(server: OpenAIServer) -> None:
    ear = Ear()
    halves = [
        b'data: {"choices": [{"delta": {"content": "%s"}}]}\n\n' % part
        for part in (rb"{\"cue\": \"\ud83d", rb"\ude00\"}")
    ]
    async with chat_model(server, Behaviour(None, pieces=[*halves, b"data: [DONE]\n\n"])) as model:
        assert (await ask(model, ear)).cue == "😀"
    assert ear.texts == ['{"cue": "😀"}']


async def test_a_server_that_ignores_the_stream_is_paid_once(server: OpenAIServer) -> None:
    ear = Ear()
    async with chat_model(server, reply_with(REPLY)) as model:
        with meter() as m:
            assert (await ask(model, ear)).cue == CUE
    assert ear.texts == [REPLY]
    assert (len(server.requests), m.usage().total.calls, m.usage().total.input_tokens) == (1, 1, 100)


@pytest.mark.parametrize("status", [400, 422, 501])
async def test_a_server_that_rejects_the_stream_gets_a_plain_request(server: OpenAIServer, status: int) -> None:
    ear = Ear()
    async with chat_model(server, fail_with(status, "stream is not supported"), reply_with(REPLY)) as model:
        with meter() as m:
            assert (await ask(model, ear)).cue == CUE
            assert (await ask(model, ear)).cue == CUE
    assert [request["stream"] for request in server.requests] == [True, False, False]
    assert (m.usage().total.calls, m.usage().total.input_tokens) == (3, 200)
    assert "".join(ear.texts) == ""


async def test_a_request_that_is_wrong_stays_wrong(server: OpenAIServer) -> None:
    async with chat_model(server, fail_with(400, "no such thing")) as model:
        with pytest.raises(ModelError, match="no such thing"):
            await ask(model, Ear())
        assert len(server.requests) == 2
        server.handler = in_turn(stream_with(REPLY))
        assert (await ask(model, Ear())).cue == CUE
    assert server.requests[-1]["stream"] is True, "a plain request failed too, so the stream was not at fault"


@pytest.mark.parametrize(
    "failing",
    [
        fail_with(500),
        Behaviour(b"<html><body>Welcome</body></html>", headers={"Content-Type": "text/html"}),
        Behaviour({"status": "ok"}),
        Behaviour(None, pieces=[]),
        Behaviour(None, pieces=[b"data: [DONE]\n\n"]),
        Behaviour(None, pieces=[b": a comment\n\n"], cut=True),
        Behaviour(None, pieces=[b": a comment\n\n"], hold=True),
    ],
    ids=["error", "page", "no completion", "empty", "only the end", "cut", "silence"],
)
async def test_a_stream_without_text_makes_the_next_attempt_plain(server: OpenAIServer, failing: Behaviour) -> None:
    async with chat_model(server, timeout=4.0) as model:
        server.handler = lambda request: failing if request["stream"] else reply_with(REPLY)
        for _ in range(2):
            assert (await ask(model, Ear())).cue == CUE
    assert [request["stream"] for request in server.requests] == [True, False, False]


async def test_a_server_that_has_streamed_is_asked_to_stream_again(server: OpenAIServer) -> None:
    ear = Ear()
    async with chat_model(server, stream_with(REPLY), fail_with(500), reply_with(REPLY), stream_with(REPLY)) as model:
        for _ in range(3):
            assert (await ask(model, ear)).cue == CUE
    assert [request["stream"] for request in server.requests] == [True, True, False, True]
    assert ear.texts == [REPLY, "", REPLY]


@pytest.mark.parametrize(
    "failing",
    [
        fail_with(429), fail_with(503),
        Behaviour(None, pieces=[write_event({"error": {"message": "overloaded", "code": 503}})]),
        stream_with('{"cue": "Ma', finish=None, usage=False, done=False, cut=True),
        stream_with('{"cue": "Ma', finish=None, usage=False, done=False, hold=True),
    ],
    ids=["rate", "busy", "busy in the stream", "cut after text", "silence after text"],
)  # fmt: skip
async def test_a_failure_that_is_not_due_to_the_stream_leaves_it_on(server: OpenAIServer, failing: Behaviour) -> None:
    async with chat_model(server, failing, stream_with(REPLY), timeout=4.0) as model:
        assert (await ask(model, Ear())).cue == CUE
    assert [request["stream"] for request in server.requests] == [True, True]


async def test_a_prompt_that_is_too_long_is_sent_once(server: OpenAIServer) -> None:
    error = {"message": "the limit is 8192 tokens", "type": "invalid_request_error", "code": "context_length_exceeded"}
    async with chat_model(server, Behaviour({"error": error}, 400)) as model:
        with meter() as m, pytest.raises(ModelError, match="name a model with a larger window"):
            await ask(Budgeted(model, calls=1), Ear())
    assert (len(server.requests), m.usage().total.calls) == (1, 1)


@pytest.mark.parametrize("status", [401, 403, 404])
async def test_a_key_or_a_name_that_is_wrong_is_sent_once(server: OpenAIServer, status: int) -> None:
    async with chat_model(server, fail_with(status)) as model:
        with pytest.raises(ModelUnavailable):
            await ask(model, Ear())
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "dropped",
    [
        stream_with('{"cue": "Ma', finish=None, usage=False, done=False, cut=True),
        stream_with('{"cue": "Ma', finish=None, usage=False, done=False),
        Behaviour(None, pieces=[write_event(make_chunk({"content": "{"})), write_event({"error": {"message": "no"}})]),
    ],
)  # fmt: skip
async def test_a_stream_that_breaks_off_is_asked_for_again(server: OpenAIServer, dropped: Behaviour) -> None:
    ear = Ear()
    async with chat_model(server, dropped, stream_with(REPLY)) as model:
        with meter() as m:
            assert (await ask(model, ear)).cue == CUE
    assert len(ear.texts) == 2
    assert ear.texts[1] == REPLY
    spent = m.usage().total
    assert spent.calls == 2
    assert spent.input_tokens > 100, "the prompt of the broken reply counts: the server may charge for it"


async def test_a_malformed_reply_is_repaired(server: OpenAIServer) -> None:
    ear = Ear()
    async with chat_model(server, stream_with('{"cue": 3}'), stream_with(REPLY)) as model:
        assert (await ask(model, ear)).cue == CUE
    assert ear.texts == ['{"cue": 3}', REPLY]


async def test_a_refusal_is_not_heard(server: OpenAIServer) -> None:
    ear = Ear()
    pieces = [
        write_event(make_chunk({"refusal": "I will not."})),
        write_event(make_chunk({}, "stop")),
        b"data: [DONE]\n\n",
    ]
    async with chat_model(server, Behaviour(None, pieces=pieces)) as model:
        with pytest.raises(Refused, match="I will not"):
            await ask(model, ear)
    assert ear.texts == [""]


async def test_usage_that_is_stated_in_every_chunk_counts_once(server: OpenAIServer) -> None:
    counts = [{"prompt_tokens": 100, "completion_tokens": number, "total_tokens": 100 + number} for number in (1, 5)]
    chunks = [
        {**make_chunk({"content": text}), "usage": usage}
        for text, usage in zip(['{"cue": ', '"x"}'], counts, strict=True)
    ]
    pieces = [*map(write_event, chunks), write_event(make_chunk({}, "stop"))]
    async with chat_model(server, Behaviour(None, pieces=pieces)) as model:
        with meter() as m:
            await ask(model, Ear())
    assert (m.usage().total.input_tokens, m.usage().total.output_tokens) == (100, 5)


async def test_arguments_of_a_tool_that_nobody_offered_are_the_reply(server: OpenAIServer) -> None:
    calls = [
        {"index": 0, "id": "c", "type": "function", "function": {"name": "x", "arguments": part}}
        for part in ('{"cue":', '"y"}')
    ]
    pieces = [write_event(make_chunk({"tool_calls": [call]})) for call in calls] + [b"data: [DONE]\n\n"]
    async with chat_model(server, Behaviour(None, pieces=pieces)) as model:
        assert (await ask(model, Ear())).cue == "y"


async def test_a_stream_has_a_bound(server: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "LONGEST_BODY", 20_000)
    endless = stream_with(*["x" * 1000] * 100)
    async with chat_model(server, endless) as model:
        with pytest.raises(ModelError, match="sent more than"):
            await ask(model, Ear())
    assert len(server.requests) == 1


async def test_a_stream_has_a_time_limit_in_all(server: OpenAIServer) -> None:
    async with chat_model(
        server, stream_with(*"xxxxxxxxxxxx", pause=0.1), timeout=0.4, backoff=Backoff(retries=0)
    ) as model:
        with pytest.raises(ModelError, match=r"did not reply within 0\.4 s"):
            await ask(model, Ear())


async def test_cancelling_hangs_up(server: OpenAIServer) -> None:
    ear = Ear()
    endless = stream_with('{"cue": "Ma', finish=None, usage=False, done=False, hold=True)
    async with chat_model(server, endless) as model:
        with meter() as m:
            asking = asyncio.create_task(ask(model, ear))
            await ear.heard.wait()
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            assert await asyncio.to_thread(server.left.wait, SOON)
    assert m.usage().total.calls == 1
    assert m.usage().total.input_tokens > 0, "what was sent counts"


async def test_an_error_of_the_listener_is_no_error_of_the_server(server: OpenAIServer) -> None:
    class Deaf(Ear):
        def hear(self, text: str) -> None:
            raise ZeroDivisionError

    async with chat_model(server, stream_with(REPLY)) as model:
        with pytest.raises(ZeroDivisionError):
            await ask(model, Deaf())
    assert len(server.requests) == 1


async def test_a_budget_reserves_for_a_stream_too(server: OpenAIServer) -> None:
    async with chat_model(server, stream_with(REPLY)) as model:
        bounded = Budgeted(model, calls=1)
        assert (await ask(bounded, Ear())).cue == CUE
        with pytest.raises(BudgetExceeded):
            await ask(bounded, Ear())
    assert len(server.requests) == 1


async def test_a_model_that_is_down_is_down(server: OpenAIServer) -> None:
    async with chat_model(server, fail_with(503)) as model:
        with pytest.raises(ModelUnavailable):
            await ask(model, Ear())
    assert len(server.requests) == 1 + FAST.retries


@pytest.mark.parametrize(
    "pieces",
    [
        [b"data: x\n\n"], [b"data: {}\n\n"] * 50, [b"\xff\xfe\n\n"], [b"\n" * 5000], [b"data: [DONE]\n\n"],
        [b"data: " + b"[" * 50_000 + b"\n\n"], [b'data: {"choices": 3}\n\n', b"data: [DONE]\n\n"],
        [b'data: {"choices": [{"delta": 7, "finish_reason": 8}], "usage": "x"}\n\n', b"data: [DONE]\n\n"],
        [b'data: {"choices": [{"delta": {"content": [1, {}], "tool_calls": 9}}]}\n\n', b"data: [DONE]\n\n"],
        [b"data: null\n\n"], [b"event: x\ndata: 1\n\n"], [b"x" * 100_000],
    ],
)  # fmt: skip
async def test_whatever_a_server_streams_is_an_output_or_a_model_error(
    server: OpenAIServer, pieces: list[bytes]
) -> None:
    async with chat_model(server, Behaviour(None, pieces=pieces)) as model:
        with pytest.raises(ModelError):
            await ask(model, Ear())


async def test_a_reply_that_stays_malformed_is_a_bad_reply(server: OpenAIServer) -> None:
    async with chat_model(server, stream_with("no JSON here")) as model:
        with pytest.raises(BadReply):
            await ask(model, Ear())
    assert len(server.requests) == 2


async def test_a_provider_that_cannot_stream_gets_a_plain_request(
    server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OpenAIChatModel, "request_stream", Model.request_stream)
    ear = Ear()
    async with chat_model(server, reply_with(REPLY)) as model:
        assert (await ask(model, ear)).cue == CUE
    assert (len(server.requests), server.requests[0]["stream"], ear.texts) == (1, False, [""])


async def test_a_provider_that_cannot_stream_is_not_asked_again_without_the_stream(
    server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OpenAIChatModel, "request_stream", Model.request_stream)
    async with chat_model(server, fail_with(400, "no such thing")) as model:
        with pytest.raises(ModelError, match="no such thing"):
            await ask(model, Ear())
    assert len(server.requests) == 1
