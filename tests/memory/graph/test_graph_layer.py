"""The graph: the facts of a passage stay and go with the passage, and do not depend on the order of adding."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select

from tomewise.errors import BadReply, ModelUnavailable, UsageError
from tomewise.language.cached import Cached
from tomewise.language.extractive import ExtractiveModel
from tomewise.language.prompts import Prompts
from tomewise.memory.building import build, estimate, find_backlog
from tomewise.memory.gists import GistsLayer
from tomewise.memory.graph.graph_layer import GraphLayer
from tomewise.memory.graph.graph_names import GraphNames
from tomewise.run import meter
from tomewise.store.export import export
from tomewise.store.lookups import find_keys, read_edges, read_sources, read_vectors
from tomewise.store.records import BUILDS
from tomewise.store.sql.schema import calls as stored
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import HashEmbedder, ScriptedModel, check_layer, document_of, put_document
from tomewise.types import Progress

EMBEDDER = HashEmbedder(32)
NAMES = GraphNames("passages", "triples")


def quiet(_: Progress) -> None:
    pass


def extract_triples(given: Any) -> dict[str, object]:
    """Reply by the script of these tests: `a > r > b` is a triple, any other line a name."""
    lines = [line.split(" > ") for line in given.text.splitlines()]
    return {
        "entities": [line[0] for line in lines if len(line) == 1],
        "triples": [line for line in lines if len(line) > 1],
    }


def make_model(reply: Callable[[Any], Any] = extract_triples) -> ScriptedModel:
    return ScriptedModel({"extract_facts": reply, "gist": lambda given: {"memory": given.text}})


def open_store(folder: Path, *texts: str) -> SqlStore:
    folder.mkdir(parents=True, exist_ok=True)
    store = SqlStore.open(folder / "a.tome")
    for number, text in enumerate(texts):
        put_document(store, EMBEDDER, document_of(f"d{number}", text))
    return store


def read_links(store: SqlStore, space: str) -> set[tuple[str, str, float]]:
    rows = read_edges(store, space).rows
    keys = rows[:, :2].astype(int)
    nodes = store.nodes_at(np.unique(keys).tolist())
    return {
        (nodes[a].text, nodes[b].text, weight)
        for (a, b), weight in zip(keys.tolist(), rows[:, 2].tolist(), strict=True)
    }


async def test_entities_facts_and_provenance(tmp_path: Path) -> None:
    first, second = "Ada Marsh > kept > the light\nSkerry", "ada marsh > kept > The Light\nTom Hale > is > Tom Hale"
    store = open_store(tmp_path, first, second)
    (report,) = await build([GraphLayer(store, make_model(), EMBEDDER)], store, quiet)
    assert report.added == 6
    assert {node.text for node in store.nodes(NAMES.entities).values()} == {
        "ada marsh",
        "the light",
        "skerry",
        "tom hale",
    }
    assert read_links(store, f"seen-in:{NAMES.entities}") == {
        ("ada marsh", first, 1.0),
        ("ada marsh", second, 1.0),
        ("the light", first, 1.0),
        ("the light", second, 1.0),
        ("skerry", first, 1.0),
        ("tom hale", second, 1.0),
    }
    assert read_links(store, f"seen-in:{NAMES.facts}") == {
        ("ada marsh kept the light", first, 1.0),
        ("ada marsh kept the light", second, 1.0),
        ("tom hale is tom hale", second, 1.0),
    }
    assert read_links(store, NAMES.ends) == {
        ("ada marsh kept the light", "ada marsh", 0.0),
        ("ada marsh kept the light", "the light", 1.0),
        ("tom hale is tom hale", "tom hale", 0.0),
    }
    for layer in (NAMES.entities, NAMES.facts):
        columns = read_vectors(store, layer)
        texts = [store.nodes_at([key])[key].text for key in columns.keys.tolist()]
        assert np.allclose(columns.rows, EMBEDDER.embed(texts))
    entity = find_keys(store, [NAMES.entity("skerry")])
    assert store.nodes_at(entity.values())[entity[NAMES.entity("skerry")]].text == "skerry"


async def test_synonyms_are_those_of_a_plain_comparison_in_any_order(tmp_path: Path) -> None:
    words = "north light house keeper of the old stone tower at skerry point".split()
    draw = random.Random(5)
    names = [*sorted({" ".join(draw.sample(words, 4)) for _ in range(60)}), "no", "of"]
    store = open_store(tmp_path, "\n".join(names[::3]))
    layer = GraphLayer(store, make_model(), EMBEDDER)
    await build([layer], store, quiet)
    put_document(store, EMBEDDER, document_of("later", "\n".join(names)))
    await build([layer], store, quiet)
    rows = EMBEDDER.embed(names).astype(np.float64)
    cosines = np.round(rows @ rows.T, 4)
    expected = set()
    for i, j in np.argwhere(np.triu(cosines, 1) >= 0.8).tolist():
        if min(len(names[i]), len(names[j])) > 2:
            pair = sorted((names[i], names[j]), key=lambda name: NAMES.entity(name))
            expected.add((pair[0], pair[1], cosines[i, j]))
    assert len(expected) > 20
    assert read_links(store, NAMES.synonyms) == expected


async def test_unusable_parts_are_counted_and_a_name_in_every_passage_is_reported(tmp_path: Path) -> None:
    texts = [f"hub > holds > thing {number}\nbad > triple" for number in range(24)]
    store = open_store(tmp_path, *texts)
    layer = GraphLayer(store, make_model(), EMBEDDER)
    (report,) = await build([layer], store, quiet)
    assert "left out or mended: 24 triples not of three parts" in report.notes
    assert "'hub' is named in more than half of the passages" in report.notes
    put_document(store, EMBEDDER, document_of("later", "bad > triple"))
    await build([layer], store, quiet)
    assert store.notes(BUILDS)[NAMES.layer]["dirt"] == {"triples not of three parts": 25}
    assert store.notes(BUILDS)[NAMES.layer]["taken"] == 25
    assert find_backlog([layer], store).counts == {}


@pytest.mark.parametrize("style", ["triples", "relations"])
@pytest.mark.parametrize("source", ["passages", "gists"])
async def test_it_is_a_pure_function_of_the_passages(tmp_path: Path, source: str, style: Any) -> None:
    model = ExtractiveModel(EMBEDDER)
    numbers = iter(range(10))

    def make(store: SqlStore) -> Sequence[Any]:
        graph = GraphLayer(store, model, EMBEDDER, source=source, style=style)
        return [GistsLayer(store, model), graph] if source == "gists" else [graph]

    await check_layer(make, lambda: SqlStore.open(tmp_path / f"{next(numbers)}.tome"), EMBEDDER)


PART = st.sampled_from(["Ada", "ada", "Tom Hale", "the boat", "boat", "1911", "", "Ödön"])
LINE = st.lists(PART, min_size=1, max_size=4)
TEXT = st.lists(LINE.map(" > ".join), min_size=1, max_size=4).map(lambda lines: "\n".join(lines) + "\nend")
STEP = st.tuples(st.integers(0, 4), TEXT | st.none(), st.booleans())  # document, new text or removal, then build?


@settings(max_examples=10, deadline=None)
@given(st.lists(STEP, max_size=7))
async def test_any_history_gives_the_graph_of_the_last_texts(steps: list[tuple[int, str | None, bool]]) -> None:
    with TemporaryDirectory() as folder:
        store = open_store(Path(folder) / "long")
        layer = GraphLayer(store, make_model(), EMBEDDER)
        texts: dict[int, str] = {}
        for document, text, must_build in steps:
            if text is None:
                texts.pop(document, None)
                with store.write() as change:
                    change.remove_document(f"d{document}")
            else:
                texts[document] = text
                put_document(store, EMBEDDER, document_of(f"d{document}", text))
            if must_build:
                await build([layer], store, quiet)
        await build([layer], store, quiet)
        plain = open_store(Path(folder) / "short")
        for document, text in sorted(texts.items(), reverse=True):
            put_document(plain, EMBEDDER, document_of(f"d{document}", text))
        await build([GraphLayer(plain, make_model(), EMBEDDER)], plain, quiet)
        ours = [line for line in export(store) if '"kind": "setting"' not in line]
        assert ours == [line for line in export(plain) if '"kind": "setting"' not in line]
        store.close()
        plain.close()


async def test_a_graph_of_gists_is_assigned_to_the_passages(tmp_path: Path) -> None:
    store = open_store(tmp_path, "Ada > met > Tom")
    model = make_model()
    names = GraphNames("gists", "triples")
    layers = [GraphLayer(store, model, EMBEDDER, source="gists"), GistsLayer(store, model)]
    await build(layers, store, quiet)
    (passage,) = store.passages()
    entities = store.node_keys(names.entities)
    assert read_sources(store, entities, names.entities) == {key: [passage] for key in entities}
    assert len(entities) == 2
    with store.write() as change:
        change.remove_document("d0")
    assert store.nodes(names.entities) == store.nodes(names.facts) == store.nodes("gists") == {}


async def test_a_failed_passage_is_recorded_and_tried_again(tmp_path: Path) -> None:
    broken = True

    def reply(given: Any) -> object:
        return BadReply("no JSON") if broken and "Tom" in given.text else extract_triples(given)

    store = open_store(tmp_path, "Ada > met > Ida", "Tom > met > Ida")
    model = make_model(reply)
    layer = GraphLayer(store, Cached(model, Prompts(), store.calls), EMBEDDER)
    (report,) = await build([layer], store, quiet)
    assert list(report.failed.values()) == ["no JSON"]
    assert read_links(store, NAMES.ends) == {("ada met ida", "ada", 0.0), ("ada met ida", "ida", 1.0)}
    broken = False
    (report,) = await build([layer], store, quiet)
    assert (dict(report.failed), report.added) == ({}, 2)
    assert [call.given.text[:3] for call in model.calls] == ["Ada", "Tom", "Tom"]  # type: ignore[attr-defined]
    assert store.intake(NAMES.layer).failed == {}


@pytest.mark.parametrize("calls", [1, 2])
async def test_a_build_that_was_stopped_repeats_no_call(tmp_path: Path, calls: Any) -> None:
    texts = [f"thing {number} > is > thing {number + 1}" for number in range(6)]
    store = open_store(tmp_path, *texts)
    down = True

    def reply(given: Any) -> object:
        return ModelUnavailable("down") if down and given.text == texts[4] else extract_triples(given)

    # One call at a time, so that a few calls are finished when the model goes down.
    roles = ("extract_facts", "extract_entities", "extract_triples")
    model = ScriptedModel(dict.fromkeys(roles, reply), limit=1, latency=0.002)
    layer = GraphLayer(store, Cached(model, Prompts(), store.calls), EMBEDDER, calls=calls)
    with pytest.raises(ModelUnavailable):
        await build([layer], store, quiet)
    assert store.nodes(layer.names.entities) == {}
    with store.read() as connection:
        kept = connection.execute(select(func.count()).select_from(stored)).scalar_one()
    model.calls.clear()
    down = False
    await build([layer], store, quiet)
    assert kept >= 3
    assert len(model.calls) == 6 * calls - kept
    assert len(store.nodes(layer.names.facts)) == 6


async def test_the_second_call_reads_the_entities_of_the_first(tmp_path: Path) -> None:
    store = open_store(tmp_path, "Ada > met > Tom\nSkerry")
    named = {"entities": ["Skerry", 7, ""]}
    model = ScriptedModel({"extract_entities": lambda _: named, "extract_triples": extract_triples})
    layer = GraphLayer(store, model, EMBEDDER, calls=2)
    await build([layer], store, quiet)
    assert model.calls[1].given.entities == ["Skerry"]  # type: ignore[attr-defined]
    assert {node.text for node in store.nodes(layer.names.entities).values()} == {"ada", "tom", "skerry", "7"}


async def test_graphs_of_one_call_and_of_two_exist_side_by_side(tmp_path: Path) -> None:
    store = open_store(tmp_path, "Ada > met > Tom")
    reversed_reply = {"entities": ["Tom"], "triples": [["Tom", "was met by", "Ada"]]}
    model = ScriptedModel(
        {
            "extract_facts": extract_triples,
            "extract_entities": extract_triples,
            "extract_triples": lambda _: reversed_reply,
        }
    )
    layers = [GraphLayer(store, model, EMBEDDER), GraphLayer(store, model, EMBEDDER, calls=2)]
    assert [layer.name for layer in layers] == ["graph:passages-triples", "graph:passages-triples-in-2-calls"]
    await build(layers, store, quiet)
    facts = [{node.text for node in store.nodes(layer.names.facts).values()} for layer in layers]
    assert facts == [{"ada met tom"}, {"tom was met by ada"}]


@pytest.mark.parametrize("options", [{}, {"calls": 2}, {"style": "relations"}, {"source": "gists"}])
async def test_the_estimate_has_the_exact_calls_and_learns_the_tokens(tmp_path: Path, options: Any) -> None:
    store = open_store(tmp_path)
    line = "The keeper Ada Marsh saw Tom Hale at the harbour of Skerry in May 1911, and Hale sold Ida Poe a boat. "
    for number in range(24):
        put_document(store, EMBEDDER, document_of(f"d{number}", f"{number}. " + line * (2 + number % 3)))
    model = Cached(ExtractiveModel(EMBEDDER), Prompts(), store.calls)
    graph = GraphLayer(store, model, EMBEDDER, **options)
    layers = [GistsLayer(store, model), graph] if "source" in options else [graph]
    foreseen = (await estimate(layers, store))[-1]
    with meter() as used:
        await build(layers, store, quiet)
    spent = [cost for role, cost in used.usage().roles.items() if role != "gist"]
    assert foreseen.calls == sum(cost.calls for cost in spent)
    assert foreseen.calls == 24 * options.get("calls", 1)
    if "calls" not in options:
        given = sum(cost.input_tokens for cost in spent)
        assert abs(foreseen.input_tokens - given) <= 0.1 * given
    for number in range(24, 36):
        put_document(store, EMBEDDER, document_of(f"d{number}", f"{number}. " + line * (2 + number % 3)))
    if "source" in options:
        await build(layers[:1], store, quiet)
    foreseen = (await estimate(layers, store))[-1]
    with meter() as used:
        await build(layers, store, quiet)
    spent = list(used.usage().roles.values())
    for got, given in (
        (foreseen.input_tokens, sum(cost.input_tokens for cost in spent)),
        (foreseen.output_tokens, sum(cost.output_tokens for cost in spent)),
    ):
        assert abs(got - given) <= 0.1 * given


def test_a_style_without_a_reader_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="relations"):
        GraphLayer(open_store(tmp_path), make_model(), EMBEDDER, style="relations", calls=2)
