"""A passage on which the server hangs, breaks off or fails does not block its layer; a dead server stops it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.language.openai_server import Behaviour, OpenAIServer, fail_with, reply_with
from tests.patience import NEVER, SOON

from tomewise.errors import ModelUnavailable
from tomewise.language.cached import Cached
from tomewise.language.chat import ChatModel
from tomewise.language.prompts import Prompts
from tomewise.language.retry import Backoff
from tomewise.language.roles import FUSE, FuseIn
from tomewise.memory.ask_each import ask_each
from tomewise.memory.building import build, find_backlog
from tomewise.memory.summaries import SummariesLayer
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import HashEmbedder, document_of, put_document
from tomewise.types import LayerReport

POISON = "quicksilver"
FAST = Backoff(retries=1, first=0.01, longest=0.02)
SUMMARY = reply_with('{"summary": "Ada Marsh met Tom Hale.", "cue": "Ada"}')
WAYS = [
    reply_with("late", delay=NEVER),
    Behaviour(SUMMARY.body, cut=True),
    fail_with(500, "out of memory"),
    fail_with(502),
]
NAMES = ["hangs", "breaks off", "fails", "bad gateway"]
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
        (report,) = await build([SummariesLayer(store, Cached(model, Prompts(), store.calls))], store, lambda _: None)
    finally:
        await model.close()
    return report


def library(path: Path) -> SqlStore:
    store = SqlStore.open(path / "a.tome")
    for number, text in enumerate(["Ada Marsh met Tom Hale.", f"The {POISON} was gone.", "Nobody asked her why."]):
        put_document(store, EMBEDDER, document_of(f"d{number}", text))
    return store


@pytest.mark.parametrize("behaviour", WAYS, ids=NAMES)
async def test_a_layer_is_committed_although_nobody_else_is_left_to_be_replied_to(
    tmp_path: Path, behaviour: Behaviour
) -> None:
    store = library(tmp_path)
    with OpenAIServer(fail_on_poison(behaviour)) as server:
        assert len((await build_summaries(store, server)).failed) == 1
        server.requests.clear()
        again = await build_summaries(store, server)  # only the passage that fails is left
        assert len(again.failed) == 1
        assert "meanwhile other requests got a reply" in next(iter(again.failed.values()))
        assert sum(map(is_test_request, server.requests)) == 1
        assert len(server.requests) == 3
        assert find_backlog([SummariesLayer(store, Cached(None, Prompts(), store.calls))], store).counts == {}  # type: ignore[arg-type]
        server.handler = lambda request: SUMMARY
        assert (await build_summaries(store, server)).added == 1
    store.close()


@pytest.mark.parametrize("behaviour", WAYS, ids=NAMES)
async def test_a_tome_of_one_poisonous_passage_is_built(tmp_path: Path, behaviour: Behaviour) -> None:
    store = SqlStore.open(tmp_path / "a.tome")
    put_document(store, EMBEDDER, document_of("d", f"The {POISON} was gone."))
    with OpenAIServer(fail_on_poison(behaviour)) as server:
        assert len((await build_summaries(store, server)).failed) == 1
    store.close()


@pytest.mark.parametrize("behaviour", [*WAYS, fail_with(429), fail_with(503)], ids=[*NAMES, "busy", "overloaded"])
async def test_a_server_that_fails_on_everything_stops_the_build(tmp_path: Path, behaviour: Behaviour) -> None:
    store = library(tmp_path)
    with OpenAIServer(lambda request: behaviour) as server:
        with pytest.raises(ModelUnavailable):
            await build_summaries(store, server)
        assert sum(map(is_test_request, server.requests)) <= 1
    assert store.intake("summaries").failed == {}
    store.close()


async def test_replies_count_from_the_start_of_the_call() -> None:
    """Other requests got replies while the first attempt hung, and none after that."""
    with OpenAIServer(fail_on_poison(reply_with("late", delay=NEVER), reply_with('{"cue": "Ada"}'))) as server:
        model = ChatModel("openai:test", base_url=server.url, timeout=2.0, backoff=Backoff(retries=1, first=0.0))
        inputs = {name: FuseIn(question=name, cues=[]) for name in (POISON, "Who?", "Where?")}
        replies = await ask_each(model, FUSE, inputs, lambda _: None, "asked")
        await model.close()
    assert list(replies) == ["Who?", "Where?"]
    assert not any(map(is_test_request, server.requests))


async def test_one_test_request_is_enough_for_all_that_wait() -> None:
    with OpenAIServer(fail_on_poison(fail_with(500), reply_with('{"cue": "Ada"}'))) as server:
        model = ChatModel("openai:test", base_url=server.url, backoff=FAST)
        inputs = {number: FuseIn(question=f"{POISON} {number}", cues=[]) for number in range(6)}
        replies = await ask_each(model, FUSE, inputs, lambda _: None, "asked")
        await model.close()
    assert len(replies.failed) == 6
    assert sum(map(is_test_request, server.requests)) == 1


async def test_an_address_without_a_server_gets_no_test_request() -> None:
    model = ChatModel("openai:test", base_url="http://127.0.0.1:9/v1", backoff=FAST)
    async with asyncio.timeout(SOON):
        with pytest.raises(ModelUnavailable, match="cannot be reached"):
            await model.ask(FUSE, FuseIn(question="Who?", cues=[]))
    await model.close()
