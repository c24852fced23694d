"""Every part that exists, held to the contract of its kind."""

from __future__ import annotations

import json
from importlib.util import find_spec

import pytest
from tests.language.openai_server import open_chat, reply_with
from tests.store.plain_store import make_opener

from tomewise.embedding.bundled import BundledMiniLM
from tomewise.embedding.cached_embedder import CachedEmbedder
from tomewise.embedding.hash import HashEmbedder
from tomewise.embedding.weights import INSTALL, PACKAGE
from tomewise.language.budget import Budget
from tomewise.language.cached import Cache
from tomewise.language.extractive import ExtractiveModel
from tomewise.language.prompts import Prompts
from tomewise.language.roles import ANSWER, AnswerIn, Shown
from tomewise.language.wrapped import Wrapped
from tomewise.store.sql.sql_store import SqlStore
from tomewise.systems.kit import Kit
from tomewise.systems.registry import assemble
from tomewise.testing import (
    NotingEmbedder,
    ScriptedModel,
    check_embedder,
    check_language_model,
    check_loop,
    check_retriever,
    check_store,
    document_of,
    put_document,
)
from tomewise.types import Limit, Question

EMBEDDER = HashEmbedder()
GIVEN = AnswerIn(question="Who put out the light?", evidence=[Shown(label="E1", text="Ada Marsh put out the light.")])
REPLY = {"answer": "Ada Marsh", "quotes": [{"label": "E1", "quote": "put out the light"}]}
FLAT = ("naive", "hybrid", "full_context")


@pytest.mark.parametrize(
    "embedder",
    [
        HashEmbedder(),
        CachedEmbedder(NotingEmbedder(16)),
        pytest.param(BundledMiniLM(), marks=pytest.mark.skipif(find_spec(PACKAGE) is None, reason=f"needs {INSTALL}")),
    ],
    ids=lambda embedder: embedder.name,
)
def test_embedders(embedder):
    check_embedder(embedder)


@pytest.mark.parametrize("open_store", [SqlStore.open, make_opener()], ids=["sqlite", "plain"])
def test_stores(tmp_path, open_store):
    check_store(open_store, tmp_path / "a.tome")


def make_model():
    return ScriptedModel({"answer": lambda _: REPLY})


MODELS = (make_model(), ExtractiveModel(EMBEDDER))


@pytest.mark.parametrize(
    "model",
    [
        *MODELS,
        ScriptedModel({}, others=ExtractiveModel(EMBEDDER)),
        Wrapped(make_model(), Budget(Limit(calls=5), name="scripted").ask),
    ],
    ids=lambda model: f"{type(model).__name__}:{model.name}",
)
async def test_models(model):
    await check_language_model(model, ANSWER, GIVEN)


async def test_a_cached_chat_model_over_http(tmp_path, here):
    store = SqlStore.open(tmp_path / "a.tome")
    async with open_chat(reply_with(json.dumps(REPLY))) as (model, _):
        for each in (model, Wrapped(model, Cache(Prompts(), store.calls))):
            await check_language_model(each, ANSWER, GIVEN)
    store.close()


@pytest.fixture
def shelf(tmp_path):
    store = SqlStore.open(tmp_path / "a.tome")
    for number in range(8):
        put_document(
            store, EMBEDDER, document_of(f"d{number}", f"On day {number} the keeper put out the light at nine.")
        )
    yield store
    store.close()


@pytest.mark.parametrize("name", FLAT)
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
async def test_systems_over_passages(shelf, name, model):
    system = assemble(name, Kit(shelf, model, EMBEDDER))
    await check_retriever(system.retriever, "Who put out the light?", shelf)
    free = await check_loop(system.loop, Question(text="Who put out the light on day 3?", force=True))
    assert free.resolved
    options = ("the keeper", "the doctor")
    chosen = await check_loop(system.loop, Question(text="Who put out the light?", options=options))
    assert chosen.choice in (None, "A", "B")
    assert system.layers == ()
