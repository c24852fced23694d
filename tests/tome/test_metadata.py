"""Metadata: stated by sources and by users, kept, searched by, and handed out with evidence."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tomewise import Document, Tome
from tomewise.errors import ReadingError, StoreError, UsageError
from tomewise.store.lookups import read_setting
from tomewise.store.records import SETTINGS
from tomewise.testing.scripted import ScriptedModel
from tomewise.tome.questions import complete_evidence

LOG = "The keeper, Ada Marsh, put out the light at nine."
LETTER = "The doctor forged a letter. Nobody asked him why."


@pytest.fixture
def tome(here):
    model = ScriptedModel({"answer": lambda given: {"answer": given.evidence[0].text, "supported": "full"}})
    (here / "wiki" / "old").mkdir(parents=True)
    (here / "wiki" / "log.md").write_text(f"---\nyear: 1911\n---\n{LOG}")
    (here / "wiki" / "old" / "letter.txt").write_text(LETTER)
    with Tome.open(here / "a.tome", embedder="hash", model=model) as opened:
        yield opened


def read_metadata(tome):
    return {record.id.rsplit("/", 1)[-1]: dict(record.metadata) for record in tome.documents()}


def test_evidence_has_the_metadata_of_its_document(tome):
    tome.add("wiki")
    (found,) = tome.search("put out the light", limit=1)
    assert found.metadata == {"year": 1911}
    answer = tome.ask("Who put out the light?", system="naive")
    assert [dict(piece.metadata) for piece in answer.evidence] == [{"year": 1911}, {}]
    found = tome.search("put out the light", limit=2)
    whole = replace(found[0], layer="tree", sources=tuple(piece.id for piece in found))
    assert [piece.metadata for piece in complete_evidence([whole], tome.store)] == [{}], (
        "of several documents it has none"
    )


def test_stated_fields_are_kept_for_what_is_added_later(tome, here):
    tome.add("wiki", metadata={"project": "harbour", "year": 1912})
    assert list(read_metadata(tome).values()) == [{"project": "harbour", "year": 1912}] * 2
    (here / "wiki" / "new.txt").write_text("Tom Hale rowed to the island.")
    report = tome.add("wiki", sync=True)
    assert (len(report.added), len(report.unchanged)) == (1, 2)
    assert read_metadata(tome)["new.txt"]["project"] == "harbour"
    tome.add("wiki/old", metadata={"project": "letters"})
    tome.add("wiki")
    projects = {name: fields["project"] for name, fields in read_metadata(tome).items()}
    assert projects == {"log.md": "harbour", "letter.txt": "letters", "new.txt": "harbour"}
    tome.add("wiki", metadata={"year": ""})
    assert read_metadata(tome)["log.md"] == {"project": "harbour", "year": 1911}, "the file's own shows again"


def test_a_change_of_metadata_keeps_what_was_made_of_the_text(here, tome):
    tome.close()
    with Tome.open(here / "a.tome") as opened:
        opened.add("wiki")
        opened.build(layers="gists")
        before = sorted(opened.store.nodes("gists"))
        assert len(before) == 2
        report = opened.add("wiki", metadata={"project": "harbour"})
        assert (len(report.replaced), report.passages) == (2, 0)
        assert sorted(opened.store.nodes("gists")) == before
        assert opened.build(layers="gists").layers[0].added == 0
        assert len(opened.within(where=["project=harbour"]).search("light", limit=9)) == 2
        assert opened.add("wiki").unchanged == report.replaced


def test_removed_documents_take_their_stated_fields_along(tome):
    before = list(tome.memory.export())
    tome.add("wiki", metadata={"project": "harbour"})
    tome.remove("wiki")
    assert [line for line in tome.memory.export() if '"fields"' not in line] == before
    assert read_setting(tome.store, "fields") == "{}"
    tome.add("wiki")
    assert "project" not in read_metadata(tome)["log.md"]


def test_a_title_for_several_documents_is_refused_and_nothing_stated_is_kept(tome, here):
    with pytest.raises(UsageError, match="one title cannot be that of several"):
        tome.add("wiki", metadata={"title": "Both"})
    (here / "rows.jsonl").write_text('{"text": "a"}\n{"text": "b"}\n')
    with pytest.raises(ReadingError, match="holds 2 documents, and one title is given"):
        tome.add("rows.jsonl", metadata={"title": "Both", "year": 1900})
    tome.add("wiki", "rows.jsonl")
    assert read_setting(tome.store, "fields") in (None, "", "{}")


def test_a_moved_file_takes_its_stated_fields_along(tome, here):
    tome.add("wiki")
    tome.add("wiki/old/letter.txt", metadata={"title": "The Letter", "project": "harbour"})
    (here / "wiki" / "old" / "letter.txt").rename(here / "wiki" / "moved.txt")
    report = tome.add("wiki", sync=True)
    assert (len(report.moved), report.removed, report.passages) == (1, (), 0)
    for _ in range(2):
        assert read_metadata(tome)["moved.txt"] == {"project": "harbour"}
        assert "The Letter" in {record.title for record in tome.documents()}
        assert tome.add("wiki", sync=True).replaced == ()
    assert "old/letter.txt" not in read_setting(tome.store, "fields")


def test_a_document_from_a_program_gets_the_fields_too_and_odd_ones_are_refused(tome):
    tome.add(Document(id="d", text=LOG, metadata={"year": 1911}), metadata={"project": "harbour"})
    assert read_metadata(tome) == {"d": {"project": "harbour", "year": 1911}}
    for fields in ({"a": {}}, {1: "x"}, {"a": None}, {"": "x"}, {"a": "\0"}, ["a"]):
        with pytest.raises(UsageError, match="metadata"):
            tome.add("wiki", metadata=fields)


def test_damaged_fields_are_named(tome):
    tome.add("wiki")
    for value in ("[]", '{"a": 1}', "x", '{"/a": {"b": {}}}'):
        with tome.store.write() as change:
            change.put_note(SETTINGS, "fields", value)
        with pytest.raises(StoreError, match="the row 'fields' of the table meta"):
            tome.add("wiki")


def test_folders_and_patterns_narrow_as_they_remove(tome):
    tome.add("wiki")

    def find(*names):
        return sorted(piece.text for piece in tome.within(*names).search("keeper letter", limit=9))

    assert find("wiki") == sorted([LOG, LETTER])
    assert find("wiki/old") == find("*.txt") == find("wiki/*.txt") == [LETTER]
    assert find("log.md", "wiki/old") == sorted([LOG, LETTER])
    assert find("lette") == [LETTER], "a part of an id narrows, and removes nothing"
