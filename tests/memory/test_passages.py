"""Passages are the layer at the ground, which takes in documents. What a removal takes with them is counted."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.memory.memories import EMBEDDER, put_text

from tomewise.memory.passages import LostDocuments, store_documents
from tomewise.reading.splitter import PassageSplitter
from tomewise.store.sql.sql_store import SqlStore
from tomewise.tome.tome import Tome
from tomewise.types import Document


async def test_a_document_that_its_source_lost_and_that_is_found_elsewhere_keeps_its_passages(store: SqlStore) -> None:
    put_text(store, "kept", "The old text.")
    before = store.node_keys("passages")
    found = Document(id="kept", text="The old text.", title=store.document("kept").title, metadata={"year": 1911})
    splitter = PassageSplitter(EMBEDDER.tokenizer, 256)
    await store_documents([LostDocuments(("kept",)), found], store, EMBEDDER, splitter, lambda _: None)
    assert store.node_keys("passages") == before
    assert store.document("kept").metadata == {"year": 1911}


@pytest.mark.parametrize("system", ["comorag", "cogitorag", "graphrag", "cam", "memtree"])
def test_the_count_before_a_removal_is_that_of_the_removal(system: str, tmp_path: Path):
    texts = {
        "light": "Ada Marsh put out the light at nine. Ada Marsh met Tom Reed at the harbour in May.",
        "letter": "The clerk forged the letter in May. Ada Marsh knew nothing of the letter.",
        "boat": "Tom Reed rowed the boat to the harbour. The boat belonged to the clerk.",
    }
    with Tome.open(tmp_path / "a.tome", embedder="hash") as tome:
        tome.add(*(Document(id=id, text=text) for id, text in texts.items()))
        assert tome.store.find_dependants(tome.store.passages(documents=["light"])) == {}
        tome.build(system)
        for document, text in texts.items():
            before = {name: layer["nodes"] for name, layer in tome.store.layers().items()}
            foreseen = tome.store.find_dependants(list(tome.store.passages(documents=[document])))
            assert tome.remove(document).derived == sum(foreseen.values())
            after = {name: layer["nodes"] for name, layer in tome.store.layers().items()}
            lost = {name: count - after.get(name, 0) for name, count in before.items() if name != "passages"}
            assert {name: count for name, count in lost.items() if count} == foreseen
            tome.add(Document(id=document, text=text))
            tome.build(system)
