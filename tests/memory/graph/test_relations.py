"""Relations: descriptions are kept by passage, merged when read, and summarised when they are long."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tomewise.errors import BadReply
from tomewise.language.cached import Cached
from tomewise.language.prompts import Prompts
from tomewise.language.roles import DescriptionsIn, RelationsOut
from tomewise.memory.building import build
from tomewise.memory.graph.descriptions import SUMMARISED_FROM, describe_entities
from tomewise.memory.graph.graph_layer import GraphLayer
from tomewise.memory.graph.graph_names import GraphNames
from tomewise.memory.graph.relations import clean_relations
from tomewise.memory.imports.extraction_file import Imported
from tomewise.store.export import export
from tomewise.store.sqlite.sqlite_store import SqliteStore
from tomewise.testing import HashEmbedder, ScriptedModel, document_of, put_document
from tomewise.types import Progress

EMBEDDER = HashEmbedder(32)
NAMES = GraphNames("passages", "relations")


def quiet(_: Progress) -> None:
    pass


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


def merge_texts(given: DescriptionsIn) -> dict[str, str]:
    return {"summary": f"{given.name}, described in {len(given.descriptions)} ways"}


def make_model() -> ScriptedModel:
    return ScriptedModel({"extract_relations": extract_relations, "merge_descriptions": merge_texts})


def open_store(folder: Path, *texts: str) -> SqliteStore:
    store = SqliteStore.open(folder / "a.tome")
    for number, text in enumerate(texts):
        put_document(store, EMBEDDER, document_of(f"d{number}", text))
    return store


def describe(store: SqliteStore, name: str) -> tuple[str, str, str]:
    (key,) = store.keys_of([NAMES.entity(name)]).values()
    (found,) = describe_entities(store, NAMES, [key]).values()
    return found.name, found.type, found.text


async def test_descriptions_are_merged_from_the_current_passages(tmp_path: Path) -> None:
    store = open_store(
        tmp_path,
        "ADA / person / keeps the light\nAda > Tom > they met > 3",
        "Ada / person / is old",
        "Ada / ROLE / keeps the light",
    )
    await build([GraphLayer(store, make_model(), EMBEDDER, style="relations")], store, quiet)
    assert describe(store, "ada") == ("Ada", "person", "is old\nkeeps the light")
    assert store.keys_of([NAMES.entity("tom")])  # an end that the reply did not list
    with store.write() as change:
        change.remove_document("d1")
    assert describe(store, "ada") == ("ADA", "person", "keeps the light")
    with store.write() as change:
        change.remove_document("d0")
    assert describe(store, "ada") == ("Ada", "role", "keeps the light")
    assert store.keys_of([NAMES.entity("tom")]) == {}


async def test_relationships_are_facts_with_the_description_of_the_passage(tmp_path: Path) -> None:
    store = open_store(tmp_path, "Tom > Ada > they met > 3", "Ada > Tom > they met > 3\nAda > Tom > they wed > 8")
    await build([GraphLayer(store, make_model(), EMBEDDER, style="relations")], store, quiet)
    facts = {node.text: node.data for node in store.nodes(NAMES.facts).values()}
    assert facts == {
        f"kin: ada, tom. {description}": {
            "head": "ada",
            "tail": "tom",
            "description": description,
            "keywords": ["kin"],
            "strength": strength,
        }
        for description, strength in (("they met", 3.0), ("they wed", 8.0))
    }
    assert len(store.edges(f"seen-in:{NAMES.facts}").rows) == 3


async def test_a_summary_of_long_descriptions_goes_with_any_of_its_mentions(tmp_path: Path) -> None:
    texts = [f"Ada / person / {number} {'long ' * 190}" for number in range(3)]
    assert 2 * len(texts[0]) < SUMMARISED_FROM <= 3 * len(texts[0]) - 60
    store = open_store(tmp_path, *texts[:2])
    model = Cached(make_model(), Prompts(), store.calls)
    layer = GraphLayer(store, model, EMBEDDER, style="relations")
    await build([layer], store, quiet)
    short = list(export(store))
    assert describe(store, "ada")[2].count("\n") == 1
    put_document(store, EMBEDDER, document_of("d2", texts[2]))
    await build([layer], store, quiet)
    assert describe(store, "ada")[2] == "Ada, described in 3 ways"
    put_document(store, EMBEDDER, document_of("d3", texts[2].replace("2", "3")))
    await build([layer], store, quiet)
    assert describe(store, "ada")[2] == "Ada, described in 4 ways"
    assert len(store.nodes(NAMES.descriptions)) == 1
    with store.write() as change:
        change.remove_document("d3")
    assert describe(store, "ada")[2].count("\n") == 2  # correct at once, but long
    await build([layer], store, quiet)
    assert describe(store, "ada")[2] == "Ada, described in 3 ways"
    with store.write() as change:
        change.remove_document("d2")
    await build([layer], store, quiet)
    assert list(export(store)) == short


async def test_an_import_follows_removals_too(tmp_path: Path) -> None:
    store = open_store(tmp_path, *(f"Ada / person / {number} {'long ' * 190}" for number in range(4)))
    layer = GraphLayer(store, make_model(), EMBEDDER, style="relations")
    await build([layer], store, quiet)
    with store.write() as change:
        change.remove_document("d3")
    (key,) = put_document(store, EMBEDDER, document_of("new", "Tom / person / rows"))
    tom = clean_relations(RelationsOut.model_validate({"entities": [{"name": "Tom", "description": "rows"}]}))
    await layer.import_extractions(Imported("relations", {key: tom}, passages=4, rows=1, unmatched=0), quiet)
    assert describe(store, "ada")[2] == "Ada, described in 3 ways"


async def test_a_failed_summary_is_reported_and_the_descriptions_stay(tmp_path: Path) -> None:
    store = open_store(tmp_path, *(f"Ada / person / {number} {'long ' * 190}" for number in range(3)))
    model = ScriptedModel({"extract_relations": extract_relations, "merge_descriptions": lambda _: BadReply("no JSON")})
    (report,) = await build([GraphLayer(store, model, EMBEDDER, style="relations")], store, quiet)
    assert report.notes == ("not summed up: 'ada': no JSON",)
    assert describe(store, "ada")[2].count("\n") == 2
    assert report.failed == {}


async def test_descriptions_too_long_for_one_call_are_summarised_in_rounds(tmp_path: Path) -> None:
    store = open_store(tmp_path, *(f"Ada / person / {number:02} {'long ' * 380}" for number in range(20)))
    model = make_model()
    await build([GraphLayer(store, model, EMBEDDER, style="relations")], store, quiet)
    asked = [call.given for call in model.calls if call.role == "merge_descriptions"]
    assert all(sum(map(len, given.descriptions)) <= 24_000 for given in asked)  # type: ignore[attr-defined]
    assert len(asked) == 3
    assert describe(store, "ada")[2] == "Ada, described in 2 ways"


def test_dirty_replies_are_cleaned_and_counted() -> None:
    raw = RelationsOut.model_validate(
        {
            "entities": [
                {"name": ""},
                {"name": "x" * 2000},
                {"name": "Ada", "description": "a\0\nb"},
                {"name": "ADA", "type": "Person", "description": "c" * 5000},
            ],
            "relationships": [
                {"source": "Ada", "target": ""},
                {"source": "Ada", "target": "ada"},
                {"source": "Zoe", "target": "Ada", "keywords": [" b ", "", "a"]},
            ],
        }
    )
    found = clean_relations(raw)
    assert found.entities == ("ada", "zoe")
    (mention,) = found.mentions
    assert (mention.name, mention.type, mention.description) == ("Ada", "person", "a b\n" + "c" * 2000)
    assert [fact.text for fact in found.facts] == ["a, b: ada, zoe"]
    assert found.faults == {
        "empty names": 2,
        "names over 200 characters": 1,
        "relationships of a thing with itself": 1,
    }


async def test_mentions_are_embedded_with_their_descriptions(tmp_path: Path) -> None:
    store = open_store(tmp_path, "Ada / person / keeps the light")
    await build([GraphLayer(store, make_model(), EMBEDDER, style="relations")], store, quiet)
    assert np.allclose(store.vectors(NAMES.mentions).rows, EMBEDDER.embed(["Ada: keeps the light"]))
