"""A passage on which the server hangs, breaks off or fails does not block its layer; a dead server stops it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.language.openai_server import Behaviour, OpenAIServer, fail_with, reply_with
from tests.patience import NEVER, SOON

from tomewise.errors import ModelUnavailable
from tomewise.language.cached import Cache
from tomewise.language.chat import ChatModel
from tomewise.language.prompts import Prompts
from tomewise.language.retry import Backoff
from tomewise.language.roles import FUSE, FuseIn
from tomewise.language.wrapped import Wrapped
from tomewise.memory.ask_each import Replies, ask_each
from tomewise.memory.building import build, find_backlog
from tomewise.memory.summaries import SummariesLayer
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import HashEmbedder, ScriptedModel, document_of, put_document
from tomewise.types import LayerReport

POISON = "quicksilver"
FAST = Backoff(retries=1, first=0.01, longest=0.02)
CUE = reply_with('{"cue": "Ada"}')
SUMMARY = reply_with('{"summary": "Nobody was asked why.", "cue": "Ada"}')
WAYS = [
    pytest.param(reply_with("late", delay=NEVER), id="hangs"),
    pytest.param(Behaviour(SUMMARY.body, cut=True), id="breaks off"),
    pytest.param(fail_with(500, "out of memory"), id="fails"),
    pytest.param(fail_with(502), id="bad gateway"),
]
EMBEDDER = HashEmbedder(32)


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def fail_on_poison(behaviour: Behaviour, good: Behaviour = SUMMARY) -> Callable[[dict[str, Any]], Behaviour]:
    return lambda request: behaviour if POISON in request["messages"][1]["content"] else good


def is_test_request(request: dict[str, Any]) -> bool:
    return "alive" in request["messages"][1]["content"]


async def build_summaries(store: SqlStore, server: OpenAIServer) -> LayerReport:
    model = ChatModel("openai:test", base_url=server.url, timeout=2.0, backoff=FAST)
    try:
        (report,) = await build(
            [SummariesLayer(store, Wrapped(model, Cache(Prompts(), store.calls)))], store, lambda _: None
        )
    finally:
        await model.close()
    return report


async def ask_all(server: OpenAIServer, *questions: str) -> Replies[str, Any]:
    model = ChatModel("openai:test", base_url=server.url, timeout=2.0, backoff=FAST)
    inputs = {question: FuseIn(question=question, cues=[]) for question in questions}
    replies = await ask_each(model, FUSE, inputs, lambda _: None, "asked")
    await model.close()
    return replies


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    with closing(SqlStore.open(tmp_path / "a.tome")) as made:
        put_document(made, EMBEDDER, document_of("d", f"The {POISON} was gone."))
        yield made


@pytest.fixture
def library(store: SqlStore) -> SqlStore:
    for name, text in (("d0", "Ada Marsh met Tom Hale."), ("d2", "Nobody asked her why.")):
        put_document(store, EMBEDDER, document_of(name, text))
    return store


@pytest.mark.parametrize("behaviour", WAYS)
async def test_a_layer_is_committed_although_nobody_else_is_left_to_be_replied_to(
    library: SqlStore, behaviour: Behaviour
) -> None:
    with OpenAIServer(fail_on_poison(behaviour)) as server:
        assert len((await build_summaries(library, server)).failed) == 1
        server.requests.clear()
        again = await build_summaries(library, server)  # only the passage that fails is left
        assert len(again.failed) == 1
        assert "meanwhile other requests got a reply" in next(iter(again.failed.values()))
        assert sum(map(is_test_request, server.requests)) == 1
        assert len(server.requests) == 3
        assert find_backlog([SummariesLayer(library, ScriptedModel({}))], library).counts == {}
        server.handler = lambda request: SUMMARY
        assert (await build_summaries(library, server)).added == 1


@pytest.mark.parametrize("behaviour", WAYS)
async def test_a_tome_of_one_poisonous_passage_is_built(store: SqlStore, behaviour: Behaviour) -> None:
    with OpenAIServer(fail_on_poison(behaviour)) as server:
        assert len((await build_summaries(store, server)).failed) == 1


@pytest.mark.parametrize(
    "behaviour", [*WAYS, pytest.param(fail_with(429), id="busy"), pytest.param(fail_with(503), id="overloaded")]
)
async def test_a_server_that_fails_on_everything_stops_the_build(library: SqlStore, behaviour: Behaviour) -> None:
    with OpenAIServer(lambda request: behaviour) as server:
        with pytest.raises(ModelUnavailable):
            await build_summaries(library, server)
        assert sum(map(is_test_request, server.requests)) <= 1
    assert library.intake("summaries").failed == {}


async def test_replies_count_from_the_start_of_the_call() -> None:
    """Other requests got replies while the first attempt hung, and none after that."""
    with OpenAIServer(fail_on_poison(reply_with("late", delay=NEVER), CUE)) as server:
        assert list(await ask_all(server, POISON, "Who?", "Where?")) == ["Who?", "Where?"]
    assert not any(map(is_test_request, server.requests))


async def test_one_test_request_is_enough_for_all_that_wait() -> None:
    with OpenAIServer(fail_on_poison(fail_with(500), CUE)) as server:
        replies = await ask_all(server, *(f"{POISON} {number}" for number in range(6)))
    assert len(replies.failed) == 6
    assert sum(map(is_test_request, server.requests)) == 1


async def test_an_address_without_a_server_gets_no_test_request() -> None:
    model = ChatModel("openai:test", base_url="http://127.0.0.1:9/v1", backoff=FAST)
    async with asyncio.timeout(SOON):
        with pytest.raises(ModelUnavailable, match="cannot be reached"):
            await model.ask(FUSE, FuseIn(question="Who?", cues=[]))
    await model.close()
