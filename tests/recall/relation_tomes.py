"""Small tomes with a graph of relations: `a ~ b ~ words` is a relationship, `a = words` an entity."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tomewise.memory.building import build
from tomewise.memory.graph.graph_layer import GraphLayer
from tomewise.memory.graph.graph_names import GraphNames
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import HashEmbedder, ScriptedModel, put_document
from tomewise.types import Document

EMBEDDER = HashEmbedder(256)
NAMES = GraphNames("passages", "relations")


def list_relations(given: Any) -> dict[str, object]:
    lines = given.text.splitlines()
    entities = [line.split(" = ") for line in lines if " = " in line]
    pairs = [line.split(" ~ ") for line in lines if " ~ " in line]
    return {
        "entities": [{"name": name, "type": "person", "description": words} for name, words in entities],
        "relationships": [
            {"source": source, "target": target, "description": words} for source, target, words in pairs
        ],
    }


async def build_store(folder: Path, *texts: str) -> SqlStore:
    """A tome of one document `d<number>`, with its number as metadata, and one passage for each text."""
    return await build_relations(SqlStore.open(folder / "a.tome"), *texts)


async def build_relations(store: SqlStore, *texts: str) -> SqlStore:
    """The store, with one document `d<number>`, with its number as metadata, and one passage for each text."""
    for number, text in enumerate(texts):
        put_document(store, EMBEDDER, Document(id=f"d{number}", text=text, metadata={"number": number}))
    layer = GraphLayer(store, ScriptedModel({"extract_relations": list_relations}), EMBEDDER, style="relations")
    await build([layer], store, lambda _: None)
    return store
