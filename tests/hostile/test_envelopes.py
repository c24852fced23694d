"""Whatever a server sends is an output or a ModelError of that one ask, after as many requests as is documented."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Any

import httpx2
import pytest
from tests.language.openai_server import reply_with

from tomewise.errors import ModelError, ModelUnavailable
from tomewise.language import client, connect_model, roles
from tomewise.language.chat import ChatModel
from tomewise.language.retry import Backoff
from tomewise.language.wire import BoundedClient
from tomewise.memory.ask_each import ask_each
from tomewise.run import meter
from tomewise.types import Role

RETRIES = 2
AT_ONCE = Backoff(retries=RETRIES, first=0.0, longest=0.0)
FAMILIES: dict[str, tuple[Role[Any, Any], Any, dict[str, Any]]] = {
    "answer": (
        roles.ANSWER,
        roles.AnswerIn(question="Who?", evidence=[roles.Shown(label="E1", text="Ada set_at out the light.")]),
        {"answer": "Ada", "choice": None, "quotes": [{"label": "E1", "quote": "Ada"}], "supported": "full"},
    ),
    "memory": (roles.SUMMARISE, roles.SummaryIn(texts=["Ada set_at out the light."]), {"summary": "Ada did."}),
    "extraction": (
        roles.EXTRACT_TRIPLES,
        roles.ExtractIn(text="Ada set_at out the light.", entities=["Ada"]),
        {"entities": ["Ada"], "triples": [["Ada", "set_at out", "the light"]]},
    ),
    "selection": (
        roles.FILTER_FACTS,
        roles.FilterIn(question="Who?", facts=["Ada set_at out the light"]),
        {"keep": [1]},
    ),
    "loop": (roles.FUSE, roles.FuseIn(question="Who?", cues=["Ada was there."]), {"cue": "Ada did."}),
    "judge": (
        roles.JUDGE_CORRECT,
        roles.JudgeIn(question="Who?", reference="Ada", prediction="Ada"),
        {"correct": True},
    ),
}
GOOD = '{"cue": "Ada did."}'
ODD: list[Any] = [
    None, True, False, 0, -1, 1.5, 1e308, 10**400, float("nan"), float("inf"), "", " ", "x", "null", "\x00", "\ud800",
    "a" * 5000, "�", [], [None], [[]], [1, "a"], {}, {"a": None}, {"type": "text", "text": "x"},
    [{"type": "text", "text": "x"}], [{"type": "image_url"}], {"message": None}, 1_700_000_000_000_000_000,
]  # fmt: skip
BODIES: list[bytes] = [
    b"", b" ", b"null", b"[]", b"{}", b"0", b'""', b"true", b"<html>busy</html>", b"{", b"[" * 100_000, b"\x00",
    b"\xff\xfe", b"data: {}\n\n", b"NaN", b"9" * 5000, b'{"choices"', b'{"error": null}', b'{"error": "x"}',
    b'{"a":' * 50_000, b'{"error": {"message": 1, "code": []}}',
    b'{"error": {"message": "over capacity"}, "choices": null}',
]  # fmt: skip


class Wire:
    """Stands in for the network: sends `body`, or the odd one where a request holds a word; counts what it was sent."""

    def __init__(self) -> None:
        self.body: bytes = b""
        self.odd: tuple[bytes, bytes] = b"a word that no request holds", b""
        self.requests = 0

    def handle(self, request: httpx2.Request) -> httpx2.Response:
        self.requests += 1
        body = self.odd[1] if self.odd[0] in request.content else self.body
        return httpx2.Response(200, headers={"content-type": "application/json"}, content=body)


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Wire:
    made = Wire()
    monkeypatch.setattr(
        connect_model, "BoundedClient", partial(BoundedClient, transport=httpx2.MockTransport(made.handle))
    )
    return made


@pytest.fixture
async def model(wire: Wire) -> AsyncIterator[ChatModel]:
    made = ChatModel("openai:test", base_url="http://model.test/v1", backoff=AT_ONCE)
    yield made
    await made.close()


async def ask_loop(model: ChatModel) -> str:
    return (await model.ask(*FAMILIES["loop"][:2])).cue


def envelope(content: str) -> dict[str, Any]:
    return json.loads(json.dumps(reply_with(content).body))


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something stands in an envelope, each place as the keys that lead to it."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from places(inner, (*path, key))


DROP = object()


def change(content: str, *path: Any, value: Any) -> dict[str, Any]:
    """An envelope with this value at a place, or with nothing there."""
    whole = place = envelope(content)
    for key in path[:-1]:
        place = place[key]
    if value is DROP:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return whole


ADDED = {
    ("system_fingerprint",): 7, ("service_tier",): 7, ("metadata",): [1], ("moderation",): "no",
    ("choices", 0, "logprobs"): "none", ("choices", 0, "message", "annotations"): "x",
    ("choices", 0, "message", "reasoning_content"): {"a": 1}, ("choices", 0, "message", "audio"): 3,
    ("choices", 0, "message", "refusal"): [], ("choices", 0, "message", "function_call"): "f",
    ("choices", 0, "message", "tool_calls"): [{"id": 1, "type": "custom", "custom": {"name": "n", "input": 3}}],
    ("usage", "prompt_tokens_details"): "x", ("usage", "completion_tokens_details"): {"reasoning_tokens": "many"},
}  # fmt: skip


def make_bodies(content: str, seed: int) -> list[bytes]:
    """Envelopes with places dropped or odd, with odd replies, with broken bytes; and bodies that are no envelope."""
    chance = random.Random(seed)
    bodies = list(BODIES)
    everywhere = list(places(envelope(content)))
    for path in [*everywhere, *ADDED]:
        values = [*chance.sample(ODD, 10), ADDED.get(path), *([] if path in ADDED else [DROP])]
        bodies += [json.dumps(change(content, *path, value=value)).encode() for value in values]
    for field in json.loads(content):
        replies = (json.dumps({**json.loads(content), field: value}) for value in ODD)
        bodies += [json.dumps(envelope(reply)).encode() for reply in replies]
    for _ in range(60):
        odd = {key: chance.choice(ODD) for key in chance.sample(list(envelope(content)), 2)}
        whole = bytearray(json.dumps({**envelope(content), **odd}).encode())
        for _ in range(chance.randrange(1, 6)):
            whole[chance.randrange(len(whole))] = chance.randrange(256)
        bodies.append(bytes(whole[: chance.randrange(len(whole))] if chance.random() < 0.3 else whole))
    return bodies


@pytest.mark.parametrize("family", FAMILIES)
async def test_every_reply_is_an_output_or_a_model_error(wire: Wire, model: ChatModel, family: str) -> None:
    role, given, output = FAMILIES[family]
    bodies = make_bodies(json.dumps(output), seed=len(family))
    assert len(bodies) >= 400
    outputs = 0
    for body in bodies:
        wire.body, wire.requests = body, 0
        with meter() as seen:
            (made,) = await asyncio.gather(model.ask(role, given), return_exceptions=True)
        if isinstance(made, Exception):
            assert isinstance(made, ModelError), repr(made)
            assert not isinstance(made, ModelUnavailable), body[:300]
            assert len(str(made)) < 2000
        else:
            assert isinstance(made, role.output)
            assert type(made).model_validate_json(made.model_dump_json())
            outputs += 1
        assert 1 <= wire.requests <= 2 * (RETRIES + 1)
        assert seen.total.calls == wire.requests, body[:300]
    assert outputs > len(bodies) / 2, "most quirks are in fields that nobody needs"


def quirk(*path: Any, value: Any) -> bytes:
    return json.dumps(change(GOOD, *path, value=value)).encode()


@pytest.mark.parametrize(
    "body",
    [
        *(quirk("created", value=value) for value in (1_700_000_000_000_000_000, "now")),
        *(quirk("id", value=value) for value in (None, 12)),
        *(quirk("usage", "prompt_tokens", value=value) for value in (100.0, "a hundred")),
        quirk("system_fingerprint", value=7),
        quirk("model", value=None),
        quirk("object", value=3),
        quirk("usage", value=[]),
        quirk("service_tier", value=1),
        quirk("choices", 0, "index", value="0"),
        quirk("choices", 0, "logprobs", value="x"),
        quirk("choices", 0, "finish_reason", value=None),
        quirk("choices", 0, "message", "role", value="bot"),
        quirk("choices", 0, "message", "annotations", value="x"),
        quirk("choices", 0, "message", "tool_calls", value=[{"type": "custom", "custom": {"name": "n", "input": "x"}}]),
        quirk("choices", 0, "message", "content", value=[{"type": "text", "text": GOOD}]),
        quirk("choices", 0, "message", "content", value=json.loads(GOOD)),
        quirk("choices", 0, "message", value=GOOD),
        quirk("choices", value=[None, envelope(GOOD)["choices"][0]]),
        b"\xef\xbb\xbf" + quirk("id", value="x"),
        quirk("id", value="x").replace(b"reply", b"\xff"),
    ],
)
async def test_a_quirk_that_hides_no_reply_costs_no_request(wire: Wire, model: ChatModel, body: bytes) -> None:
    wire.body = body
    assert await ask_loop(model) == "Ada did."
    assert wire.requests == 1


@pytest.mark.parametrize(
    ("body", "requests"),
    [
        (quirk("choices", value=[]), 2),
        (quirk("choices", value=[None]), 2),
        (quirk("choices", 0, "message", value=None), 2),
        (b"busy", RETRIES + 1),
        (b"<html>busy</html>", 1),
        (b"", 1),
        (b"[]", RETRIES + 1),
    ],
)
async def test_no_reply_is_repaired_once_no_completion_is_tried_again_and_no_page_is(
    wire: Wire, model: ChatModel, body: bytes, requests: int
) -> None:
    wire.body = body
    with pytest.raises(ModelError):
        await ask_loop(model)
    assert wire.requests == requests


@pytest.mark.parametrize("error", [TypeError("odd"), RuntimeError("odd"), OverflowError("odd"), RecursionError("odd")])
async def test_what_a_client_raises_fails_its_own_ask(
    model: ChatModel, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    async def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(client, "model_request", fail)
    with pytest.raises(ModelError, match=f"cannot be read: {type(error).__name__}: odd"):
        await ask_loop(model)


async def test_errors_of_ours_are_not_taken_for_the_servers(model: ChatModel, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise TypeError("ours")

    monkeypatch.setattr(client.messages, "SystemPromptPart", fail)
    with pytest.raises(TypeError, match="ours"):
        await ask_loop(model)


async def test_one_odd_reply_costs_no_other(wire: Wire, model: ChatModel) -> None:
    wire.odd = b"q3", quirk("choices", value=[])
    wire.body = quirk("id", value=None)
    inputs = {number: roles.FuseIn(question=f"q{number}", cues=[]) for number in range(6)}
    replies = await ask_each(model, roles.FUSE, inputs, lambda _: None, "asked")
    assert set(replies) == {0, 1, 2, 4, 5}
    assert "no usable reply" in replies.failed[3]
