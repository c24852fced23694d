"""Summaries of single passages: one per passage, removed with it, tried again after a failed call."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tomewise.errors import BadReply, ModelUnavailable
from tomewise.language.cached import Cached
from tomewise.language.extractive import ExtractiveModel
from tomewise.language.prompts import Prompts
from tomewise.language.roles import SummaryIn
from tomewise.memory.building import build, estimate, find_backlog
from tomewise.memory.summaries import SummariesLayer
from tomewise.run import meter
from tomewise.store.lookups import read_sources, read_vectors
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import HashEmbedder, ScriptedModel, check_layer, document_of, put_document
from tomewise.types import Progress

EMBEDDER = HashEmbedder(32)
TEXTS = ("Ada Marsh kept the light.", "Tom Hale sold a boat in 1911.", "It rained.")


def quiet(_: Progress) -> None:
    pass


def shorten(given: SummaryIn) -> dict[str, str]:
    return {"summary": f"In short: {given.texts[0]}"}


@pytest.fixture
def store(tmp_path: Path) -> SqlStore:
    store = SqlStore.open(tmp_path / "a.tome")
    for number, text in enumerate(TEXTS):
        put_document(store, EMBEDDER, document_of(f"d{number}", text))
    return store


async def test_each_passage_has_a_summary(store: SqlStore) -> None:
    layer = SummariesLayer(store, ScriptedModel({"summarise": shorten}))
    assert find_backlog([layer], store).counts == {"summaries": 3}
    (report,) = await build([layer], store, quiet)
    summaries = store.nodes("summaries")
    assert (report.added, find_backlog([layer], store).counts) == (3, {})
    passages = store.passages()
    ground = {
        summaries[key].text: [passages[source].text for source in sources]
        for key, sources in read_sources(store, summaries, "summaries").items()
    }
    assert ground == {f"In short: {text}": [text] for text in TEXTS}
    columns = read_vectors(store, "summaries")
    texts = [summaries[key].text for key in columns.keys.tolist()]
    assert np.allclose(columns.rows, EMBEDDER.embed(texts))
    with store.write() as change:
        change.remove_document("d1")
    assert sorted(node.text for node in store.nodes("summaries").values()) == [
        f"In short: {text}" for text in (TEXTS[0], TEXTS[2])
    ]


async def test_equal_passages_have_a_summary_each(store: SqlStore) -> None:
    put_document(store, EMBEDDER, document_of("twin", TEXTS[0]))
    layer = SummariesLayer(store, ScriptedModel({"summarise": shorten}))
    await build([layer], store, quiet)
    assert len(store.nodes("summaries")) == 4


async def test_a_failed_passage_is_tried_again(store: SqlStore) -> None:
    broken = True

    def reply(given: SummaryIn) -> dict[str, str] | Exception:
        return BadReply("no JSON") if broken and "Tom" in given.texts[0] else shorten(given)

    layer = SummariesLayer(store, ScriptedModel({"summarise": reply}))
    (report,) = await build([layer], store, quiet)
    assert (report.added, list(report.failed.values())) == (2, ["no JSON"])
    assert store.layers()["summaries"] == {"nodes": 2, "failed": 1}
    broken = False
    (report,) = await build([layer], store, quiet)
    assert (report.added, dict(report.failed)) == (1, {})


async def test_a_model_that_is_away_stops_the_build(store: SqlStore) -> None:
    model = ScriptedModel({"summarise": lambda _: ModelUnavailable("down")})
    with pytest.raises(ModelUnavailable):
        await build([SummariesLayer(store, model)], store, quiet)
    assert store.nodes("summaries") == {}


async def test_it_is_a_pure_function_of_the_passages(tmp_path: Path) -> None:
    model = ExtractiveModel(EMBEDDER)
    numbers = iter(range(10))
    await check_layer(
        lambda store: [SummariesLayer(store, model)],
        lambda: SqlStore.open(tmp_path / f"{next(numbers)}.tome"),
        EMBEDDER,
    )


async def test_the_estimate_has_the_exact_calls_and_nearly_the_tokens(tmp_path: Path) -> None:
    store = SqlStore.open(tmp_path / "b.tome")
    for number in range(12):
        places = ("Skerry", "Ghent", "Ostend", "Bruges", "Antwerp", "Dover", "Calais")
        sentences = [f"On day {number} the keeper saw the boat at the harbour of {place}." for place in places]
        put_document(store, EMBEDDER, document_of(f"d{number}", " ".join(sentences[: 4 + number % 4])))
    put_document(store, EMBEDDER, document_of("twin", store.document("d0").text))
    layer = SummariesLayer(store, Cached(ExtractiveModel(EMBEDDER), Prompts(), store.calls))
    (foreseen,) = await estimate([layer], store)
    with meter() as used:
        await build([layer], store, quiet)
    spent = used.usage().total
    assert foreseen.calls == spent.calls == 12
    assert abs(foreseen.input_tokens - spent.input_tokens) <= 0.1 * spent.input_tokens
    assert foreseen.output_tokens > 0
