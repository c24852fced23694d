"""Gists: one per passage, checked, asked for again once, then replaced by the passage."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import func, select

from tomewise.errors import BadReply, ModelUnavailable
from tomewise.fallbacks import GIST_REPEATED, GIST_REPLACED, write_notes
from tomewise.language.cached import Cached
from tomewise.language.extractive import ExtractiveModel
from tomewise.language.prompts import Prompts
from tomewise.language.roles import GIST, GistIn
from tomewise.memory.building import build, estimate
from tomewise.memory.gists import GistsLayer
from tomewise.run import meter
from tomewise.store.lookups import read_sources, read_vectors
from tomewise.store.records import BUILDS
from tomewise.store.sql.schema import calls as stored
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import HashEmbedder, ScriptedModel, check_layer, document_of, put_document
from tomewise.types import Document, Progress

EMBEDDER = HashEmbedder(32)
TEXTS = ("Ada Marsh kept the light.", "Tom Hale sold a boat in 1911.", "It rained.")


def quiet(_: Progress) -> None:
    pass


@pytest.fixture
def store(tmp_path: Path) -> SqlStore:
    store = SqlStore.open(tmp_path / "a.tome")
    for number, text in enumerate(TEXTS):
        put_document(store, EMBEDDER, document_of(f"d{number}", text))
    return store


async def test_a_gist_is_made_of_its_passage_and_keeps_the_notes(store: SqlStore) -> None:
    model = ScriptedModel({"gist": lambda given: {"notes": "plain", "memory": f"Restated: {given.text}"}})
    (report,) = await build([GistsLayer(store, model)], store, quiet)
    gists = store.nodes("gists")
    assert report.added == 3
    assert sorted(node.text for node in gists.values()) == sorted(f"Restated: {text}" for text in TEXTS)
    assert {node.data["notes"] for node in gists.values()} == {"plain"}
    sources = read_sources(store, gists, "gists")
    texts = {key: passage.text for key, passage in store.passages().items()}
    assert all(gists[gist].text.endswith(texts[ground[0]]) for gist, ground in sources.items())
    assert not len(read_vectors(store, "gists").keys), "recall does not search gists"


async def test_an_unsupported_gist_is_asked_for_again_and_then_falls_back(store: SqlStore) -> None:
    def reply(given: GistIn) -> dict[str, str]:
        if "Ada" in given.text:
            return {"memory": "Ada Marsh met Napoleon Bonaparte."}  # unsupported in both calls
        if "Tom" in given.text:
            return {"memory": "Tom Hale sold a boat." if given.avoid else "Tom Hale sold a boat to Ida Poe in 1912."}
        return {"memory": given.text}

    model = ScriptedModel({"gist": reply})
    (report,) = await build([GistsLayer(store, model)], store, quiet)
    gists = {node.text: node.data for node in store.nodes("gists").values()}
    assert gists[TEXTS[0]] == {"notes": "", "unsupported": ["Napoleon Bonaparte"], "fallback": True}
    assert gists["Tom Hale sold a boat."]["unsupported"] == ["Ida Poe", "1912"]
    assert "fallback" not in gists["Tom Hale sold a boat."]
    assert "unsupported" not in gists["It rained."]
    assert len(model.calls) == 5
    counts = {GIST_REPEATED: 2, GIST_REPLACED: 1}
    assert report.notes == tuple(f"fallback: {kind}: {count}" for kind, count in counts.items())
    assert store.notes(BUILDS)["gists"]["fallbacks"] == counts
    put_document(store, EMBEDDER, document_of("more", "Ada Marsh left."))
    (report,) = await build([GistsLayer(store, model)], store, quiet)
    assert list(report.notes) == write_notes({GIST_REPEATED: 1, GIST_REPLACED: 1})
    assert store.notes(BUILDS)["gists"]["fallbacks"] == {GIST_REPEATED: 3, GIST_REPLACED: 2}


async def test_the_retry_is_another_call_for_the_cache(store: SqlStore) -> None:
    model = ScriptedModel({"gist": lambda given: {"memory": "Ida Poe left." if not given.avoid else given.text}})
    cached = Cached(model, Prompts(), store.calls)
    await build([GistsLayer(store, cached)], store, quiet)
    assert len(model.calls) == 6
    assert sorted(node.text for node in store.nodes("gists").values()) == sorted(TEXTS)
    assert "1. Ida Poe" in Prompts().render(GIST, GistIn(text="x", avoid=["Ida Poe"]))


async def test_a_failed_passage_is_recorded_and_tried_again(store: SqlStore) -> None:
    broken = True

    def reply(given: GistIn) -> dict[str, str] | Exception:
        return BadReply("no JSON") if broken and "Tom" in given.text else {"memory": given.text}

    model = ScriptedModel({"gist": reply})
    layer = GistsLayer(store, Cached(model, Prompts(), store.calls))
    (report,) = await build([layer], store, quiet)
    assert (report.added, list(report.failed.values())) == (2, ["no JSON"])
    assert store.layers()["gists"] == {"nodes": 2, "failed": 1}
    broken = False
    (report,) = await build([layer], store, quiet)
    assert (report.added, dict(report.failed)) == (1, {})
    assert store.layers()["gists"] == {"nodes": 3, "failed": 0}
    assert len(model.calls) == 4


async def test_a_build_that_was_stopped_repeats_no_call(store: SqlStore) -> None:
    down = True

    def reply(given: GistIn) -> dict[str, str] | Exception:
        return ModelUnavailable("down") if down and "rained" in given.text else {"memory": given.text}

    # One call at a time, so that two are finished when the model goes down.
    model = ScriptedModel({"gist": reply}, limit=1, latency=0.01)
    layer = GistsLayer(store, Cached(model, Prompts(), store.calls))
    with pytest.raises(ModelUnavailable):
        await build([layer], store, quiet)
    assert store.nodes("gists") == {}
    with store.read() as connection:
        kept = connection.execute(select(func.count()).select_from(stored)).scalar_one()
    model.calls.clear()
    down = False
    await build([layer], store, quiet)
    assert kept >= 1
    assert len(model.calls) == 3 - kept
    assert len(store.nodes("gists")) == 3


async def test_it_is_a_pure_function_of_the_passages(tmp_path: Path) -> None:
    model = ExtractiveModel(EMBEDDER)
    numbers = iter(range(10))
    await check_layer(
        lambda store: [GistsLayer(store, model)],
        lambda: SqlStore.open(tmp_path / f"{next(numbers)}.tome"),
        EMBEDDER,
    )


async def test_the_estimate_has_the_exact_calls_and_nearly_the_tokens(tmp_path: Path) -> None:
    store = SqlStore.open(tmp_path / "b.tome")
    line = "The keeper Ada Marsh saw Tom Hale at the harbour of Skerry on that day, and he told her of the boat. "
    for number in range(12):
        put_document(store, EMBEDDER, Document(id=f"d{number}", text=f"{number}. " + line * (3 + number % 4)))
    put_document(store, EMBEDDER, Document(id="twin", text="0. " + line * 3))
    layer = GistsLayer(store, Cached(ExtractiveModel(EMBEDDER), Prompts(), store.calls))
    (foreseen,) = await estimate([layer], store)
    with meter() as used:
        await build([layer], store, quiet)
    spent = used.usage().total
    assert foreseen.calls == spent.calls == 12
    assert abs(foreseen.input_tokens - spent.input_tokens) <= 0.1 * spent.input_tokens
    assert abs(foreseen.output_tokens - spent.output_tokens) <= 0.1 * spent.output_tokens
