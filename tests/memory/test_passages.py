"""Passages are a layer: the one at the ground, which takes in documents."""

from __future__ import annotations

from pathlib import Path

from tomewise.memory.building import build
from tomewise.memory.graph.graph_layer import GraphLayer
from tomewise.memory.passages import LostDocuments, PassagesLayer
from tomewise.reading.splitter import PassageSplitter
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import HashEmbedder, ScriptedModel, document_of, put_document
from tomewise.types import Change, Document, Layer, Progress

EMBEDDER = HashEmbedder(32)


async def test_passages_are_a_layer(tmp_path: Path) -> None:
    store = SqlStore.open(tmp_path / "a.tome")
    put_document(store, EMBEDDER, document_of("kept", "The old text."))
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
