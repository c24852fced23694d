"""A memory in step with a folder: files that are gone, moved, copied, or changed."""

from __future__ import annotations

import os
import sys

import pytest
from tests.texts import prose

from tomewise import Document, Tome
from tomewise.embedding.hash import HashEmbedder
from tomewise.errors import ReadingError, UsageError
from tomewise.language.extractive import ExtractiveModel
from tomewise.testing.scripted import ScriptedModel


@pytest.fixture
def notes(here, monkeypatch):
    monkeypatch.setitem(sys.modules, "umap", None)  # it takes seconds to import
    folder = here / "notes"
    (folder / "old").mkdir(parents=True)
    for number in range(3):
        (folder / "old" / f"n{number}.txt").write_text(prose(number, 30))
    return folder


def test_sync_forgets_what_is_gone_and_no_other_documents(here, notes, tome):
    tome.add(notes, Document(id="row", text="A text without a file."))
    (here / "out.txt").write_text("A file outside of the folder.")
    tome.add(here / "out.txt")
    os.remove(here / "out.txt")
    os.remove(notes / "old" / "n1.txt")
    assert tome.add(notes).removed == (), "without sync, nothing is forgotten"
    report = tome.add(notes, sync=True)
    assert [name.rsplit("/")[-1] for name in report.removed] == ["n1.txt"]
    assert len(report.unchanged) == 2
    assert {"row", str(here / "out.txt")} < {record.id for record in tome.documents()}


def test_a_moved_file_keeps_its_memory_and_repeats_no_call(notes, here):
    embedder = HashEmbedder()
    model = ScriptedModel({}, others=ExtractiveModel(embedder))
    with Tome.open(here / "a.tome", embedder=embedder, model=model, settings={"passage_tokens": 64}) as tome:
        tome.add(notes)
        tome.build("raptor")
        tome.ask("Who burned the letter?", system="raptor")
        nodes, calls = set(tome.store.node_keys("tree")), len(model.calls)
        assert nodes
        assert calls
        os.rename(notes / "old", notes / "new")
        os.rename(notes / "new" / "n0.txt", notes / "new" / "renamed.txt")
        report = tome.add(notes, sync=True)
        assert (len(report.moved), report.removed, report.unchanged, report.passages) == (3, (), (), 0)
        names = [record.id.rsplit("/notes/")[-1] for record in tome.documents()]
        assert names == ["new/n1.txt", "new/n2.txt", "new/renamed.txt"]
        assert set(tome.store.node_keys("tree")) == nodes
        assert all(not layer.added for layer in tome.build("raptor").layers)
        assert len(model.calls) == calls
        answer = tome.ask("Who burned the letter?", system="raptor")
        assert all("/notes/new/" in citation.document for citation in answer.quotes)
        ids = {passage.id for passage in tome.store.passages().values()}
        assert set(tome.store.find(list(ids))) == ids
        assert tome.add(notes, sync=True).unchanged


def test_a_copy_at_the_former_place_is_a_document_of_its_own(notes, here):
    with (
        Tome.open(here / "a.tome", embedder="hash", settings={"passage_tokens": 64}) as tome,
        Tome.open(here / "b.tome", embedder="hash", settings={"passage_tokens": 64}) as fresh,
    ):
        tome.add(notes)
        tome.build("raptor")
        file, text = notes / "old" / "n0.txt", (notes / "old" / "n0.txt").read_text()
        os.rename(file, notes / "n0.txt")
        tome.add(notes, sync=True)
        file.write_text(text)
        assert [name.rsplit("/notes/")[-1] for name in tome.add(notes, sync=True).added] == ["old/n0.txt"]
        tome.build("raptor")
        tome.remove(str(notes / "n0.txt"))
        tome.build("raptor")
        fresh.add(notes / "old")
        fresh.build("raptor")
        texts = [sorted(node.text for node in made.store.nodes("tree").values()) for made in (fresh, tome)]
    assert texts[0]
    assert texts[0] == texts[1]


def test_rows_of_a_corpus_that_moved_keep_their_ids(here, tome):
    folder = here / "data"
    folder.mkdir()
    kept = '{"id": "1", "text": "Ada Marsh kept the light."}\n'
    (folder / "a.jsonl").write_text(kept + '{"id": "2", "text": "Tom sailed."}\n')
    tome.add(folder)
    (folder / "b.jsonl").write_text(kept + '{"id": "3", "text": "New."}\n')
    with pytest.raises(ReadingError):
        tome.add(folder / "b.jsonl")
    os.remove(folder / "a.jsonl")
    report = tome.add(folder, sync=True)
    assert (report.moved, report.added, report.removed) == (("1",), ("3",), ("2",))


def test_only_folders_are_synced(here, tome):
    (here / "a.txt").write_text("A text.")
    for source in (here / "a.txt", here / "nowhere", Document(id="d", text="A text.")):
        with pytest.raises(UsageError, match="not a folder"):
            tome.add(source, sync=True)
