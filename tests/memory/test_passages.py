"""Passages are a layer: the one at the ground, which takes in documents. What a removal takes with them is counted."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.memory.memories import EMBEDDER, put_text

from tomewise.memory.building import build
from tomewise.memory.graph.graph_layer import GraphLayer
from tomewise.memory.passages import LostDocuments, PassagesLayer
from tomewise.reading.splitter import PassageSplitter
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import ScriptedModel
from tomewise.tome.tome import Tome
from tomewise.types import Change, Document, Layer, Progress


async def test_passages_are_a_layer(store: SqlStore) -> None:
    put_text(store, "kept", "The old text.")
    documents = [Document(id="new", text="One text."), LostDocuments(("kept",))]
    layer = PassagesLayer(store, EMBEDDER, PassageSplitter(EMBEDDER.tokenizer, 256), documents)
    assert isinstance(layer, Layer)
    assert (await layer.estimate(Change())).calls == 0
    progress: list[Progress] = []
    report = await layer.update(Change(), progress.append)
    assert (report.layer, report.added, report.removed) == ("passages", 1, 1)
    assert [(taken.document, taken.outcome) for taken in layer.outcomes] == [("kept", "removed"), ("new", "added")]
    assert [passage.text for passage in store.passages().values()] == ["One text."]
    assert progress
    model = ScriptedModel({"extract_facts": lambda _: {"entities": ["One"], "triples": [["One", "is", "text"]]}})
    graph = GraphLayer(store, model, EMBEDDER)
    reports = await build([graph, layer], store, progress.append)  # nothing lies below passages: they are up to date
    assert {report.layer: report.added for report in reports} == {"passages": 0, graph.name: 3}


async def test_a_document_that_its_source_lost_and_that_is_found_elsewhere_keeps_its_passages(store: SqlStore) -> None:
    put_text(store, "kept", "The old text.")
    before = store.node_keys("passages")
    found = Document(id="kept", text="The old text.", title=store.document("kept").title, metadata={"year": 1911})
    splitter = PassageSplitter(EMBEDDER.tokenizer, 256)
    layer = PassagesLayer(store, EMBEDDER, splitter, [LostDocuments(("kept",)), found])
    await layer.update(Change(), lambda _: None)
    assert store.node_keys("passages") == before
    assert store.document("kept").metadata == {"year": 1911}


@pytest.mark.parametrize("system", ["comorag", "cogitorag", "hgmem", "graphrag", "cam", "memtree", "read_agent"])
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
