"""The lengths to which titles, headings, speakers, times and metadata are cut."""

from __future__ import annotations

import pytest

from tomewise.errors import ReadingError
from tomewise.place import read_plain_data
from tomewise.reading.lengths import HEADING, ID, METADATA, SPEAKER, TIME, TITLE, VALUE, cut_document, cut_metadata
from tomewise.tome.tome import Tome
from tomewise.types import Document, Place


def test_what_fits_stays_as_it_is():
    metadata = {"author": "Ada Marsh", "year": 1911, "tags": ["sea", "light"], "none": []}
    marks = ((0, Place(chapter=("One", "Two"), speaker="Ann", time="12:04", page=3)),)
    document = Document(id="d", text="text", title="The Town", metadata=metadata, marks=marks)
    assert cut_document(document) == document
    assert cut_document(document).marks == marks


def test_long_words_are_cut():
    place = Place(chapter=("a " * 9_000, "b"), speaker="s" * 9_000, time="t" * 9_000, row=7)
    document = cut_document(Document(id="d", text="t", title="a " * 9_000, marks=((0, place),)))
    assert document.title == ("a " * TITLE)[:TITLE].strip()
    heading = ("a " * HEADING)[:HEADING].strip()
    cut = Place(chapter=(heading, "b"), speaker="s" * SPEAKER, time="t" * TIME, row=7)
    assert document.marks == ((0, cut),)
    assert read_plain_data({"chapter": ["a"] * 3}).chapter == ("a",) * 3
    deep = cut_document(Document(id="d", text="t", marks=((0, Place(chapter=("a",) * 90)),)))
    assert deep.marks[0][1].chapter == ("a",) * 8


def test_metadata_keeps_what_fits_in_its_order():
    assert cut_metadata({"a": "x" * 9_000, "b": 1}) == {"a": "x" * VALUE, "b": 1}
    many = cut_metadata({f"field {number}": number for number in range(9_000)})
    assert 100 < len(many) < 400
    assert next(iter(many)) == "field 0"
    (pages,) = cut_metadata({"pages": list(range(9_000))}).values()
    assert isinstance(pages, list)
    assert pages == list(range(len(pages)))
    assert len(str(pages)) < METADATA
    assert cut_metadata({"n" * 9_000: 1, "b": 1}) == {}


def test_a_document_from_python_is_cut_too_and_a_long_id_is_refused(here):
    with Tome.open(embedder="hash") as tome:
        tome.add(Document(id="d", text="The rain fell.", title="t" * 9_000, metadata={"a": "x" * 9_000}))
        stored = tome.document("d")
        assert (stored.title, stored.metadata) == ("t" * TITLE, {"a": "x" * VALUE})
        with pytest.raises(ReadingError, match=r"the id of the document 'i+' has 1,001 characters: give it at most"):
            tome.add(Document(id="i" * (ID + 1), text="The rain fell."))
        with pytest.raises(ReadingError, match=r"the metadata of the document 'd' is not plain: .* 64 bits"):
            tome.add(Document(id="d", text="The rain fell.", metadata={"year": 10**9000}))
