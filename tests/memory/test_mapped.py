"""Layers that ask about each of their sources: held to one contract, and to what gists and summaries promise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from tests.memory.memories import (
    EMBEDDER,
    build_layer,
    build_layers,
    find_ground,
    keep_replies,
    put_documents,
    put_passages,
    put_text,
)
from tests.store.plain_store import PlainStore

from tomewise.errors import BadReply
from tomewise.language.extractive import ExtractiveModel
from tomewise.memory.building import estimate, find_backlog
from tomewise.memory.gists import GistsLayer
from tomewise.memory.graph.graph_layer import GraphLayer
from tomewise.memory.summaries import SummariesLayer
from tomewise.parts import Kit, make_layers
from tomewise.run import meter
from tomewise.store.contract import Store
from tomewise.store.lookups import read_vectors
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import ScriptedModel, check_mapped_layer
from tomewise.types import Abilities, Layer

TEXTS = ("Ada Marsh kept the light.", "Tom Hale sold a boat in 1911.", "It rained.")
LINE = "The keeper Ada Marsh saw Tom Hale at the harbour of Skerry in May 1911, and Hale sold Ida Poe a boat. "
Make = Callable[[Store, Any], Layer]


def script_model(fail: Callable[[str], Exception | None] = lambda text: None, **settings: Any) -> ScriptedModel:
    """Plays all roles of memory that read one text; `fail` says with which error it fails on a text."""

    def read(given: Any) -> Exception | dict[str, Any]:
        text = given.text if "text" in type(given).model_fields else given.texts[0]
        facts = {"entities": [text], "triples": [[text, "is", "said"]]}
        return fail(text) or {"memory": text, "summary": f"In short: {text}", **facts}

    roles = ("gist", "summarise", "extract_facts", "extract_entities", "extract_triples", "extract_relations")
    return ScriptedModel(dict.fromkeys(roles, read), **settings)


OURS: dict[str, Make] = {
    "gists": GistsLayer,
    "summaries": SummariesLayer,
    "triples": lambda store, model: GraphLayer(store, model, EMBEDDER),
    "triples in two calls": lambda store, model: GraphLayer(store, model, EMBEDDER, calls=2),
}
of_ours = pytest.mark.parametrize("make", OURS.values(), ids=OURS)


# ---------------------------------------------------------------- the contract


@pytest.mark.parametrize(
    "name",
    [
        *("gists", "summaries", "pages", "episodes"),
        *("graph:passages-triples", "graph:passages-triples-in-2-calls", "graph:passages-relations"),
        "graph:gists-triples",
    ],
)
async def test_our_layers_pass_the_contract(name: str, open_store: Callable[[], SqlStore]) -> None:
    def make(store: Store) -> Sequence[Layer]:
        return make_layers(Kit(store, keep_replies(ExtractiveModel(EMBEDDER), store), EMBEDDER), name)

    await check_mapped_layer(make, open_store if name == "graph:gists-triples" else PlainStore, EMBEDDER)


@of_ours
async def test_a_source_whose_call_fails_is_recorded_and_alone_asked_about_again(make: Make, store: SqlStore) -> None:
    broken = [BadReply("no JSON")]
    model = script_model(lambda text: broken[0] if broken and "Tom" in text else None)
    layer = make(store, keep_replies(model, store))
    put_documents(store, *TEXTS)
    report = await build_layer(layer, store)
    assert list(report.failed.values()) == ["no JSON"]
    assert report.added
    assert store.intake(layer.name).failed == report.failed
    assert store.layers().get(layer.name, {"failed": 1})["failed"] == 1
    assert not find_backlog([layer], store).counts, "what was made of the others is usable"
    broken.clear()
    model.calls.clear()
    report = await build_layer(layer, store)
    assert (dict(report.failed), store.intake(layer.name).failed) == ({}, {})
    assert report.added
    assert {call.given.texts[0] if "summarise" in call.role else call.given.text for call in model.calls} == {TEXTS[1]}


@pytest.mark.parametrize("name", ["summaries", "graph:gists-triples", "graph:passages-triples-in-2-calls"])
async def test_an_estimate_has_the_exact_calls_and_the_tokens_within_a_tenth(name: str, store: SqlStore) -> None:
    model = keep_replies(ExtractiveModel(EMBEDDER), store)
    layers = make_layers(Kit(store, model, EMBEDDER), name)
    are_sources_known = name != "graph:gists-triples"
    calls_per_text = 2 if name.endswith("2-calls") else 1
    for numbers in (range(12), range(12, 18)):
        for number in numbers:
            put_text(store, f"d{number}", f"{number}. " + LINE * (2 + number % 3))
        if name != "summaries":  # which may differ between equal passages
            put_text(store, f"twin {numbers[0]}", f"{numbers[0]}. " + LINE * 2)
        foreseen = (await estimate(layers, store))[-1]
        with meter() as used:
            await build_layers(layers, store)
        spent = [cost for role, cost in used.measure_cost().roles.items() if role != "gist"]
        assert foreseen.cost.calls == sum(cost.calls for cost in spent) == len(numbers) * calls_per_text
        # Without the gists, and without the names that the second call reads, the input is not known.
        if are_sources_known and (calls_per_text == 1 or numbers[0]):
            assert foreseen.cost.input_tokens == pytest.approx(sum(cost.input_tokens for cost in spent), rel=0.1)
        if name != "summaries":
            assert foreseen.cost.output_tokens == pytest.approx(sum(cost.output_tokens for cost in spent), rel=0.1)


@pytest.mark.parametrize("name", ["gists", "graph:passages-triples", "episodes", "tree", "schemata"])
async def test_an_estimate_counts_what_a_model_thinks_before_each_reply(name: str, store: SqlStore) -> None:
    put_passages(store, "d", *(f"{number}. {LINE}" for number in range(24)))
    plain, thinking = ScriptedModel({}), ScriptedModel({})
    thinking.abilities = Abilities(thoughts=1000)
    kits = [Kit(store, model, EMBEDDER) for model in (plain, thinking)]
    without, with_thoughts = [(await estimate(make_layers(kit, name), store))[-1].cost for kit in kits]
    assert without.calls
    assert with_thoughts.output_tokens - without.output_tokens == 1000 * without.calls


# ---------------------------------------------------------------- gists and summaries


async def test_a_gist_is_made_of_its_passage_and_keeps_the_notes(store: SqlStore) -> None:
    put_documents(store, *TEXTS)
    model = ScriptedModel({"gist": lambda given: {"notes": "plain", "memory": f"Restated: {given.text}"}})
    await build_layer(GistsLayer(store, model), store)
    assert find_ground(store, "gists") == {f"Restated: {text}": [text] for text in TEXTS}
    assert {node.data["notes"] for node in store.nodes("gists").values()} == {"plain"}
    assert not len(read_vectors(store, "gists").keys), "recall does not search gists"
