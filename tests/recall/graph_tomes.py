"""Small tomes with a graph: a line `a > r > b` of a text is a triple, any other line the name of an entity."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tomewise.memory.building import build
from tomewise.memory.graph.graph_layer import GraphLayer
from tomewise.memory.graph.graph_names import GraphNames
from tomewise.recall.graph_index import GraphIndex
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import HashEmbedder, ScriptedModel, document_of, put_document
from tomewise.types import Progress

EMBEDDER = HashEmbedder(128)
NAMES = GraphNames("passages", "triples")
GRAPH = NAMES.instance


def quiet(_: Progress) -> None:
    pass


def list_facts(given: Any) -> dict[str, object]:
    lines = [line.split(" > ") for line in given.text.splitlines()]
    names = [line[0] for line in lines if len(line) == 1]
    return {"entities": names, "triples": [line for line in lines if len(line) > 1]}


async def build_store(folder: Path, *texts: str) -> SqlStore:
    """A tome of one document `d<number>` and one passage for each text."""
    return await build_graph(SqlStore.open(folder / "a.tome"), *texts)


async def build_graph(store: SqlStore, *texts: str) -> SqlStore:
    """The store, with one document `d<number>` and one passage for each text."""
    for number, text in enumerate(texts):
        put_document(store, EMBEDDER, document_of(f"d{number}", text))
    await rebuild(store)
    return store


async def rebuild(store: SqlStore, embedder: HashEmbedder = EMBEDDER) -> None:
    layer = GraphLayer(store, ScriptedModel({"extract_facts": list_facts}), embedder)
    await build([layer], store, quiet)


async def add_and_build(store: SqlStore, name: str, text: str) -> None:
    put_document(store, EMBEDDER, document_of(name, text))
    await rebuild(store)


async def remove_and_build(store: SqlStore, name: str) -> None:
    with store.write() as change:
        change.remove_document(name)
    await rebuild(store)


def vertices(store: SqlStore, index: GraphIndex) -> list[str]:
    """What each vertex of the index is: the name of an entity, the id of the document of a passage."""
    entities = store.nodes_at(index.entities.tolist())
    passages = store.passages(index.passages.tolist())
    return [entities[key].text for key in index.entities.tolist()] + [
        passages[key].document for key in index.passages.tolist()
    ]
