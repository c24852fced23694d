"""Relations: what a passage says of an entity is kept by passage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tomewise.errors import BadReply
from tomewise.fallbacks import REPLY_SKIPPED, count_fallbacks
from tomewise.language.roles import PassageIn, RelationsOut
from tomewise.memory.building import build
from tomewise.memory.graph.graph_layer import GraphLayer
from tomewise.memory.graph.graph_names import GraphNames
from tomewise.memory.graph.relations import clean_relations, glean_relations
from tomewise.store.lookups import find_keys, read_edges, read_vectors
from tomewise.store.sql.sql_store import SqlStore
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


def make_model() -> ScriptedModel:
    return ScriptedModel({"extract_relations": extract_relations})


def open_store(folder: Path, *texts: str) -> SqlStore:
    store = SqlStore.open(folder / "a.tome")
    for number, text in enumerate(texts):
        put_document(store, EMBEDDER, document_of(f"d{number}", text))
    return store


async def test_mentions_are_those_of_the_current_passages(tmp_path: Path) -> None:
    store = open_store(tmp_path, "ADA / person / keeps the light\nAda > Tom > they met > 3", "Ada / person / is old")
    await build([GraphLayer(store, make_model(), EMBEDDER, style="relations")], store, quiet)
    mentions = {node.data["name"]: node.data["description"] for node in store.nodes(NAMES.mentions).values()}
    assert mentions == {"ADA": "keeps the light", "Ada": "is old"}
    assert find_keys(store, [NAMES.entity("tom")])  # an end that the reply did not list
    with store.write() as change:
        change.remove_document("d0")
    assert [node.data["name"] for node in store.nodes(NAMES.mentions).values()] == ["Ada"]
    assert find_keys(store, [NAMES.entity("tom")]) == {}


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
    assert len(read_edges(store, f"seen-in:{NAMES.facts}").rows) == 3


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
    assert np.allclose(read_vectors(store, NAMES.mentions).rows, EMBEDDER.embed(["Ada: keeps the light"]))


async def test_gleanings_read_what_was_missed_until_nothing_is_new():
    asked = []

    def glean(given):
        asked.append((given.entities, given.pairs))
        found = {"entities": [{"name": "Una"}], "relationships": [{"source": "Ada", "target": "Una"}]}
        return found if len(asked) == 1 else {}

    first = {"entities": [{"name": "Ada"}, {"name": "Tom"}], "relationships": [{"source": "Ada", "target": "Tom"}]}
    model = ScriptedModel({"extract_relations": lambda _: first, "glean_relations": glean})
    (read,) = await glean_relations(model, [PassageIn(text="Ada, Tom and Una met.")], 1, gleanings=3)
    assert asked == [(["Ada", "Tom"], ["Ada, Tom"]), (["Ada", "Tom", "Una"], ["Ada, Tom", "Ada, Una"])]
    assert {(fact.head, fact.tail) for fact in read.facts} == {("ada", "tom"), ("ada", "una")}


async def test_a_gleaning_that_fails_leaves_what_was_read():
    def fail(given):
        raise BadReply("nothing")

    first = {"entities": [{"name": "Ada"}], "relationships": []}
    model = ScriptedModel({"extract_relations": lambda _: first, "glean_relations": fail})
    with count_fallbacks() as counts:
        (read,) = await glean_relations(model, [PassageIn(text="Ada met Una.")], 1, gleanings=2)
    assert read.entities == ("ada",)
    assert counts == {REPLY_SKIPPED: 1}
