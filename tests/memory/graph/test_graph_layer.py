"""The graph: the facts of a passage stay and go with the passage, and do not depend on the order of adding."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.memory.memories import (
    EMBEDDER,
    build_layer,
    build_layers,
    find_ground,
    put_documents,
    put_text,
    remove_documents,
)

from tomewise.memory.graph.entity_kinds import find_kinds
from tomewise.memory.graph.graph_layer import GraphLayer
from tomewise.memory.graph.graph_names import GraphNames
from tomewise.store.contract import Store
from tomewise.store.lookups import read_edges, read_vectors
from tomewise.store.records import BUILDS
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import ScriptedModel
from tomewise.tome.tome import Tome
from tomewise.types import Document

NAMES = GraphNames("passages", "triples")
RELATIONS = GraphNames("passages", "relations")


def extract_triples(given: Any) -> dict[str, object]:
    """Reply by the script of these tests: `a > r > b` is a triple, any other line a name."""
    lines = [line.split(" > ") for line in given.text.splitlines()]
    return {
        "entities": [line[0] for line in lines if len(line) == 1],
        "triples": [line for line in lines if len(line) > 1],
    }


def extract_relations(given: Any) -> dict[str, object]:
    """Reply by the script: `name / type / description` and `source > target > description > strength`."""
    entities = [line.split(" / ") for line in given.text.splitlines() if " / " in line]
    relations = [line.split(" > ") for line in given.text.splitlines() if " > " in line]
    return {
        "entities": [{"name": name, "type": kind, "description": description} for name, kind, description in entities],
        "relationships": [
            {"source": a, "target": b, "description": description, "keywords": ["kin"], "strength": float(strength)}
            for a, b, description, strength in relations
        ],
    }


def make_graph(store: Store, **settings: Any) -> GraphLayer:
    model = ScriptedModel({"extract_facts": extract_triples, "extract_relations": extract_relations})
    return GraphLayer(store, model, EMBEDDER, **settings)


def read_links(store: Store, space: str) -> set[tuple[str, str, float]]:
    rows = read_edges(store, space).rows
    keys = rows[:, :2].astype(int)
    nodes = store.nodes_at(np.unique(keys).tolist())
    return {
        (nodes[a].text, nodes[b].text, weight)
        for (a, b), weight in zip(keys.tolist(), rows[:, 2].tolist(), strict=True)
    }


async def test_entities_facts_and_provenance(store: SqlStore) -> None:
    first, second = "Ada Marsh > kept > the light\nSkerry", "ada marsh > kept > The Light\nTom Hale > is > Tom Hale"
    put_documents(store, first, second)
    assert (await build_layer(make_graph(store), store)).added == 6
    both = [first, second]
    entities = {"ada marsh": both, "the light": both, "skerry": [first], "tom hale": [second]}
    facts = {"ada marsh kept the light": both, "tom hale is tom hale": [second]}
    for layer, ground in ((NAMES.entities, entities), (NAMES.facts, facts)):
        assert find_ground(store, layer) == ground
        assert read_links(store, f"seen-in:{layer}") == {
            (text, passage, 1.0) for text, passages in ground.items() for passage in passages
        }
        columns = read_vectors(store, layer)
        texts = [store.nodes_at([key])[key].text for key in columns.keys.tolist()]
        assert np.allclose(columns.rows, EMBEDDER.embed(texts))
    assert read_links(store, NAMES.ends) == {
        ("ada marsh kept the light", "ada marsh", 0.0),
        ("ada marsh kept the light", "the light", 1.0),
        ("tom hale is tom hale", "tom hale", 0.0),
    }
    assert NAMES.entity("skerry") in {node.id for node in store.nodes(NAMES.entities).values()}


async def test_synonyms_are_those_of_a_plain_comparison_in_any_order(store: SqlStore) -> None:
    words = "north light house keeper of the old stone tower at skerry point".split()
    draw = random.Random(5)
    names = [*sorted({" ".join(draw.sample(words, 4)) for _ in range(60)}), "no", "of"]
    for text in ("\n".join(names[::3]), "\n".join(names)):
        put_text(store, text[:20], text)
        await build_layer(make_graph(store), store)
    rows = EMBEDDER.embed(names).astype(np.float64)
    cosines = np.round(rows @ rows.T, 4)
    expected = set()
    for i, j in np.argwhere(np.triu(cosines, 1) >= 0.8).tolist():
        if min(len(names[i]), len(names[j])) > 2:
            pair = sorted((names[i], names[j]), key=lambda name: NAMES.entity(name))
            expected.add((pair[0], pair[1], cosines[i, j]))
    assert len(expected) > 20
    assert read_links(store, NAMES.synonyms) == expected


async def test_graphs_of_one_call_and_of_two_whose_second_reads_the_entities_exist_side_by_side(
    store: SqlStore,
) -> None:
    put_documents(store, "Ada > met > Tom\nSkerry 7")
    replies = {
        "extract_facts": {"triples": [["Ada", "met", "Tom"]]},
        "extract_entities": {"entities": ["Skerry", 7, ""]},
        "extract_triples": {"entities": ["Tom"], "triples": [["Tom", "was met by", "Ada"]]},
    }
    model = ScriptedModel({role: [reply] for role, reply in replies.items()})
    layers = [GraphLayer(store, model, EMBEDDER, calls=calls) for calls in (1, 2)]
    assert [layer.name for layer in layers] == ["graph:passages-triples", "graph:passages-triples-in-2-calls"]
    await build_layers(layers, store)
    facts = [{node.text for node in store.nodes(layer.names.facts).values()} for layer in layers]
    assert facts == [{"ada met tom"}, {"tom was met by ada"}]
    (second,) = [call.given for call in model.calls if call.role == "extract_triples"]
    assert second.entities == ["Skerry"]
    names = {node.text for node in store.nodes(layers[1].names.entities).values()}
    assert names == {"ada", "tom", "skerry", "7"}


# ---------------------------------------------------------------- relations


async def test_mentions_and_ends_are_those_of_the_current_passages(store: SqlStore) -> None:
    put_documents(store, "ADA / person / keeps the light\nAda > Tom > they met > 3", "Ada / person / is old")
    await build_layer(make_graph(store, style="relations"), store)
    mentions = {node.data["name"]: node.data["description"] for node in store.nodes(RELATIONS.mentions).values()}
    assert mentions == {"ADA": "keeps the light", "Ada": "is old"}
    rows = EMBEDDER.embed(["ADA: keeps the light", "Ada: is old"])
    assert np.allclose(np.sort(read_vectors(store, RELATIONS.mentions).rows, axis=0), np.sort(rows, axis=0))
    # Tom is an end that the reply did not list.
    assert {node.text for node in store.nodes(RELATIONS.entities).values()} == {"ada", "tom"}
    remove_documents(store, "d0")
    assert [node.data["name"] for node in store.nodes(RELATIONS.mentions).values()] == ["Ada"]
    assert {node.text for node in store.nodes(RELATIONS.entities).values()} == {"ada"}


async def test_relationships_are_facts_with_the_description_of_the_passage(store: SqlStore) -> None:
    put_documents(store, "Tom > Ada > they met > 3", "Ada > Tom > they met > 3\nAda > Tom > they wed > 8")
    await build_layer(make_graph(store, style="relations"), store)
    facts = {node.text: node.data for node in store.nodes(RELATIONS.facts).values()}
    ends = {"head": "ada", "tail": "tom", "keywords": ["kin"]}
    assert facts == {
        f"kin: ada, tom. {description}": {**ends, "description": description, "strength": strength}
        for description, strength in (("they met", 3.0), ("they wed", 8.0))
    }
    assert len(read_edges(store, f"seen-in:{RELATIONS.facts}").rows) == 3


# ---------------------------------------------------------------- names of graphs, kinds of entities


@pytest.mark.parametrize("system", ["hgmem", "hipporag2"])
def test_kinds_of_entities_are_stated_or_show_in_their_names(system: str, tmp_path: Path) -> None:
    text = "Ada Marsh kept the light of Hull in 1911. Ada Marsh met Tom Reed. Ada Marsh wrote to Tom Reed on Tuesday."
    with Tome.open(tmp_path / "a.tome", embedder="hash") as tome:
        tome.add(Document(id="d", text=text))
        tome.build(system)
        names = GraphNames.read(next(name for name in tome.store.notes(BUILDS) if name.startswith("graph:")))
        entities = {key: node.text for key, node in tome.store.nodes(names.entities).items()}
        kinds = {entities[key]: kind for key, kind in find_kinds(entities, names, tome.store).items()}
        stated = {node.data["entity"]: node.data["type"] for node in tome.store.nodes(names.mentions).values()}
        assert (kinds["ada marsh"], kinds["tom reed"], tome.memory.entity("Ada Marsh").kind) == ("person",) * 3
    if system == "hgmem":
        places = {name for name, kind in kinds.items() if kind == "place" and stated.get(name)}
        assert {name for name, kind in stated.items() if kind == "geo"} == places
    else:
        assert {kinds[name] for name in kinds if name in ("1911", "tuesday")} == {"number or date"}
