"""Extractions from files: assigned to the passages that contain them, without a call, or refused with the line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tomewise.errors import ReadingError, UsageError
from tomewise.memory.building import build
from tomewise.memory.gists import GistsLayer
from tomewise.memory.graph.graph_layer import GraphLayer
from tomewise.memory.graph.graph_names import GraphNames
from tomewise.memory.imports.extraction_file import ImportsExtractions, read_extractions
from tomewise.memory.passages import PassagesLayer
from tomewise.reading.splitter import PassageSplitter
from tomewise.store.lookups import read_sources
from tomewise.store.records import SETTINGS
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import HashEmbedder, ScriptedModel
from tomewise.types import Document, Passage, Progress, content_id

EMBEDDER = HashEmbedder(32)
TRIPLES = GraphNames("passages", "triples")
RELATIONS = GraphNames("passages", "relations")
DATA = Path(__file__).resolve().parents[2] / ".." / "shared" / "data"


def quiet(_: Progress) -> None:
    pass


def open_store(folder: Path, documents: dict[str, list[str]]) -> SqlStore:
    """Open a store with these documents; line ends separate the passages of a document."""
    store = SqlStore.open(folder / "a.tome")
    with store.write() as change:
        change.put_note(SETTINGS, "dimensions", str(EMBEDDER.dimensions))
        for name, texts in documents.items():
            passages, start = [], 0
            for position, text in enumerate(texts):
                spot = {"document": name, "position": position, "start": start, "end": start + len(text)}
                passages.append(Passage(id=content_id("p", *spot.values()), text=text, **spot))  # type: ignore[arg-type]
                start += len(text) + 1
            change.put_document(Document(id=name, text="\n".join(texts)), "digest", passages)
    return store


def write_rows(folder: Path, *rows: object) -> Path:
    path = folder / "given.jsonl"
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows), encoding="utf-8")
    return path


def read_texts(store: SqlStore, layer: str) -> dict[str, set[str]]:
    nodes = store.nodes(layer)
    passages = store.passages()
    return {
        nodes[key].text: {passages[source].text for source in sources}
        for key, sources in read_sources(store, nodes, layer).items()
    }


async def test_triples_go_to_the_passages_that_contain_them(tmp_path: Path) -> None:
    first, second = "Ada Marsh kept the light.", "Tom Hale met Ada Marsh."
    store = open_store(tmp_path, {"7": [first, second], "8": ["Alone."], "9": ["Not covered."]})
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
    layer = GraphLayer(store, ScriptedModel({}), EMBEDDER)
    report = await layer.import_extractions(imported, quiet)
    assert report.notes == ("left out or mended: 1 triples not of three parts",)
    assert read_texts(store, TRIPLES.facts) == {
        "ada marsh kept light": {first},
        "tom hale met ada marsh": {second},
        "he was alone": {"Alone."},
    }
    entities = read_texts(store, TRIPLES.entities)
    assert entities["ada marsh"] == {first, second}
    assert entities["skerry"] == {first}  # in none of the passages, so it goes to the first
    assert entities["tom hale"] == {second}
    again = await layer.import_extractions(imported, quiet)
    assert again.added == 0
    model = ScriptedModel({"extract_facts": [{"entities": ["covered now"]}]})
    await build([GraphLayer(store, model, EMBEDDER)], store, quiet)
    assert [call.given.text for call in model.calls] == ["Not covered."]  # type: ignore[attr-defined]


@pytest.mark.parametrize("source", ["gists", "summaries"])
async def test_triples_of_passages_are_not_imported_into_graphs_of_other_layers(tmp_path: Path, source: str) -> None:
    store = open_store(tmp_path, {"7": ["Ada Marsh kept the light."]})
    imported = read_extractions(write_rows(tmp_path, {"id": 7, "triples": [["Ada", "kept", "light"]]}), store)
    layer = GraphLayer(store, ScriptedModel({}), EMBEDDER, source=source)
    with pytest.raises(UsageError, match=f"graph:{source}-triples, which is read from {source}"):
        await layer.import_extractions(imported, quiet)
    assert store.nodes(layer.names.facts) == {}


async def test_relations_go_to_passages_that_were_cut_differently(tmp_path: Path) -> None:
    texts = ["Ada Marsh kept the light\nof Skerry all alone.", "Tom Hale came   by boat to Skerry in May.", "The end."]
    store = open_store(tmp_path, {"other": ["Something else."], "novel": texts})
    path = write_rows(
        tmp_path,
        {"kind": "passage", "index": 0, "text": "\ufeffAda Marsh kept the light of Skerry all alone. Tom Hale"},
        {"kind": "passage", "index": 1, "text": "Tom Hale came by boat to Skerry in May. The"},
        {"kind": "passage", "index": 2, "text": "Not in there."},
        {
            "kind": "entity",
            "name": "SKERRY",
            "type": "GEO",
            "description": "Skerry is reached by boat.<SEP>Skerry has a light.",
            "passages": [0, 1, 77],
        },
        {"kind": "entity", "name": "TOM HALE", "type": "PERSON", "description": "A guest.", "passages": [0]},
        {
            "kind": "relation",
            "head": "ADA MARSH",
            "tail": "SKERRY",
            "description": "Ada lives there.",
            "keywords": "home, light<SEP>solitude",
            "weight": 8.0,
            "passages": [0],
        },
    )
    imported = read_extractions(path, store)
    assert imported.coverage == "covers 2 of 4 passages; 1 of its texts is not in this tome"
    with pytest.raises(UsageError, match="relations cannot be imported into graph:passages-triples"):
        await GraphLayer(store, ScriptedModel({}), EMBEDDER).import_extractions(imported, quiet)
    await GraphLayer(store, ScriptedModel({}), EMBEDDER, style="relations").import_extractions(imported, quiet)
    entities = read_texts(store, RELATIONS.entities)
    assert entities == {"skerry": set(texts[:2]), "tom hale": {texts[1]}, "ada marsh": {texts[0]}}
    mentions = read_texts(store, RELATIONS.mentions)
    assert mentions["SKERRY: Skerry is reached by boat."] == {texts[1]}
    assert mentions["SKERRY: Skerry has a light."] == {texts[0]}
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
def test_bad_files_are_refused_with_the_line(tmp_path: Path, rows: list[Any], message: str) -> None:
    with pytest.raises(ReadingError, match=message):
        read_extractions(write_rows(tmp_path, *rows), open_store(tmp_path, {"1": ["text"]}))


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ReadingError, match="cannot be read"):
        read_extractions(tmp_path / "none.jsonl", open_store(tmp_path, {"1": ["text"]}))


async def test_the_published_triples_of_musique_cover_their_corpus(tmp_path: Path) -> None:
    folder = DATA / "musique"
    if not folder.is_dir():
        pytest.skip("needs shared/data/musique, which is absent")
    rows = [json.loads(line) for line in (folder / "corpus.jsonl").read_text(encoding="utf-8").splitlines()[:150]]
    store = SqlStore.open(tmp_path / "a.tome")
    with store.write() as change:
        change.put_note(SETTINGS, "dimensions", "32")
    layer = PassagesLayer(store, EMBEDDER, PassageSplitter(EMBEDDER.tokenizer, 256))
    documents = [Document(id=str(row["id"]), text=row["text"], title=row["title"]) for row in rows]
    assert [taken async for taken in layer.add(documents)]
    imported = read_extractions(folder / "openie.jsonl", store)
    assert len(imported.extractions) == imported.passages >= 150
    assert imported.unmatched == imported.rows - 150
    report = await GraphLayer(store, ScriptedModel({}), EMBEDDER).import_extractions(imported, quiet)
    assert report.failed == {}
    assert any("triples not of three parts" in note for note in report.notes)
    facts = {node.text for node in store.nodes(TRIPLES.facts).values()}
    assert "journal of mathematical physics published by american institute of physics" in facts


def test_only_graphs_take_extractions(tmp_path: Path) -> None:
    store, model = open_store(tmp_path, {}), ScriptedModel({})
    assert isinstance(GraphLayer(store, model, EMBEDDER), ImportsExtractions)
    assert not isinstance(GistsLayer(store, model), ImportsExtractions)


async def test_the_published_relations_of_a_novel_cover_it(tmp_path: Path) -> None:
    folder = DATA / "novels"
    if not folder.is_dir():
        pytest.skip("needs shared/data/novels, which is absent")
    store = SqlStore.open(tmp_path / "a.tome")
    with store.write() as change:
        change.put_note(SETTINGS, "dimensions", "32")
    layer = PassagesLayer(store, EMBEDDER, PassageSplitter(EMBEDDER.tokenizer, 256))
    text = (folder / "gods_of_mars.txt").read_text(encoding="utf-8")
    assert [taken async for taken in layer.add([Document(id="novel", text=text)])]
    imported = read_extractions(folder / "gods_of_mars_graph.jsonl", store)
    assert imported.unmatched == 0
    assert len(imported.extractions) >= 0.99 * imported.passages
    names = {name for extraction in imported.extractions.values() for name in extraction.entities}
    assert len(names) >= 1250
