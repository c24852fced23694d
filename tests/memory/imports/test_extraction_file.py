"""Extractions from files: assigned to the passages that contain them, without a call, or refused with the line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.memory.memories import EMBEDDER, build_layer, find_ground, ignore_progress, put_passages

from tomewise.errors import ReadingError, UsageError
from tomewise.memory.graph.graph_layer import GraphLayer
from tomewise.memory.graph.graph_names import GraphNames
from tomewise.memory.imports.extraction_file import read_extractions
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import ScriptedModel

TRIPLES = GraphNames("passages", "triples")
RELATIONS = GraphNames("passages", "relations")


def write_rows(folder: Path, *rows: object) -> Path:
    path = folder / "given.jsonl"
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows), encoding="utf-8")
    return path


def make_graph(store: SqlStore, **settings: Any) -> GraphLayer:
    return GraphLayer(store, ScriptedModel({}), EMBEDDER, **settings)


async def test_triples_go_to_the_passages_that_contain_them(store: SqlStore, tmp_path: Path) -> None:
    first, second = "Ada Marsh kept the light.", "Tom Hale met Ada Marsh."
    for name, texts in (("7", [first, second]), ("8", ["Alone."]), ("9", ["Not covered."])):
        put_passages(store, name, *texts)
    triples = [["Ada Marsh", "kept", "light"], ["Tom Hale", "met", "Ada Marsh"]]
    path = write_rows(
        tmp_path,
        {"id": 7, "entities": ["Skerry", "Tom Hale"], "triples": triples},
        "",
        {"id": "8", "triples": [["he", "was", "alone"], ["two", "parts"]]},
        {"id": 99, "entities": ["x"], "triples": []},
    )
    imported = read_extractions(path, store)
    assert imported.coverage == "covers 3 of 4 passages; 1 of its texts is not in this tome"
    with pytest.raises(UsageError, match="graph:gists-triples, which is read from gists"):
        await make_graph(store, source="gists").import_extractions(imported, ignore_progress)
    report = await make_graph(store).import_extractions(imported, ignore_progress)
    assert report.notes == ("left out or mended: 1 triples not of three parts",)
    assert find_ground(store, TRIPLES.facts) == {
        "ada marsh kept light": [first],
        "tom hale met ada marsh": [second],
        "he was alone": ["Alone."],
    }
    entities = find_ground(store, TRIPLES.entities)
    assert entities["ada marsh"] == [first, second]
    assert entities["skerry"] == [first]  # in none of the passages, so it goes to the first
    assert entities["tom hale"] == [second]
    assert (await make_graph(store).import_extractions(imported, ignore_progress)).added == 0
    model = ScriptedModel({"extract_facts": [{"entities": ["covered now"]}]})
    await build_layer(GraphLayer(store, model, EMBEDDER), store)
    assert [call.given.text for call in model.calls] == ["Not covered."]  # type: ignore[attr-defined]


async def test_relations_go_to_passages_that_were_cut_differently(store: SqlStore, tmp_path: Path) -> None:
    texts = ["Ada Marsh kept the light\nof Skerry all alone.", "Tom Hale came   by boat to Skerry in May.", "The end."]
    put_passages(store, "other", "Something else.")
    put_passages(store, "novel", *texts)
    skerry = {"type": "GEO", "description": "Skerry is reached by boat.<SEP>Skerry has a light."}
    lives = {"description": "Ada lives there.", "keywords": "home, light<SEP>solitude", "weight": 8.0}
    path = write_rows(
        tmp_path,
        {"kind": "passage", "index": 0, "text": "\ufeffAda Marsh kept the light of Skerry all alone. Tom Hale"},
        {"kind": "passage", "index": 1, "text": "Tom Hale came by boat to Skerry in May. The"},
        {"kind": "passage", "index": 2, "text": "Not in there."},
        {"kind": "entity", "name": "SKERRY", **skerry, "passages": [0, 1, 77]},
        {"kind": "entity", "name": "TOM HALE", "type": "PERSON", "description": "A guest.", "passages": [0]},
        {"kind": "relation", "head": "ADA MARSH", "tail": "SKERRY", **lives, "passages": [0]},
    )
    imported = read_extractions(path, store)
    assert imported.coverage == "covers 2 of 4 passages; 1 of its texts is not in this tome"
    with pytest.raises(UsageError, match="relations cannot be imported into graph:passages-triples"):
        await make_graph(store).import_extractions(imported, ignore_progress)
    await make_graph(store, style="relations").import_extractions(imported, ignore_progress)
    entities = find_ground(store, RELATIONS.entities)
    assert entities == {"skerry": texts[:2], "tom hale": [texts[1]], "ada marsh": [texts[0]]}
    mentions = find_ground(store, RELATIONS.mentions)
    assert mentions["SKERRY: Skerry is reached by boat."] == [texts[1]]
    assert mentions["SKERRY: Skerry has a light."] == [texts[0]]
    (fact,) = store.nodes(RELATIONS.facts).values()
    assert (fact.data["keywords"], fact.data["strength"]) == (["home", "light", "solitude"], 8.0)
    assert {node.data["type"] for node in store.nodes(RELATIONS.mentions).values()} >= {"geo"}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "no extractions"),
        (["{"], "line 1: not JSON"),
        (["[1]"], "line 1: .* not an object"),
        ([{"id": 1, "triples": []}, {"id": 2}], "line 2: .*triples"),
        ([{"id": None, "triples": []}], "line 1: `id`"),
        ([{"id": 1, "triples": [], "entities": "x"}], "line 1: `entities`"),
        ([{"kind": "passage", "index": 0, "text": "a"}, {"kind": "edge"}], "line 2: `kind` is 'edge'"),
        ([{"kind": "entity", "name": "a", "type": "b", "description": "c"}], "line 1: `passages`"),
        ([{"id": 2, "triples": [["a", "b", "c"]]}], "about no document of this tome: the ids"),
        ([{"kind": "passage", "index": 0, "text": "Other words."}], "about no document of this tome: the texts"),
    ],
)
def test_bad_files_are_refused_with_the_line(store: SqlStore, tmp_path: Path, rows: list[Any], message: str) -> None:
    put_passages(store, "1", "text")
    with pytest.raises(ReadingError, match=message):
        read_extractions(write_rows(tmp_path, *rows), store)
    with pytest.raises(ReadingError, match="cannot be read"):
        read_extractions(tmp_path / "none.jsonl", store)
