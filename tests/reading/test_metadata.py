"""Metadata: the plain fields of rows, and of the front matter of Markdown; and the lengths to which it is cut."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import pytest

from tomewise.errors import ReadingError
from tomewise.reading import metadata as limits
from tomewise.reading.metadata import cut_document, find_unstorable, read_front_matter, select_plain
from tomewise.reading.process import ReaderProcess
from tomewise.reading.read import SourceReader
from tomewise.reading.splitter import PassageSplitter
from tomewise.tome.tome import Tome
from tomewise.types import Document, Place

NOTE = """---
title:  The  keeper
author: Ada Marsh
year: 1911
finished: true
tags: [sea, light]
day: 2024-03-05
deep: {a: 1}
nothing:
---
The light went out.
"""
FIELDS = {"author": "Ada Marsh", "year": 1911, "finished": True, "tags": ["sea", "light"], "day": "2024-03-05"}


@pytest.fixture(scope="module")
def reader():
    with ReaderProcess() as process:
        yield SourceReader(process)


def test_plain_fields_are_kept():
    plain = {"a": "x", "b": 1, "c": 1.5, "d": False, "e": ["x", 2], "f": [], "n": 2**63 - 1}
    infinite = {"l": float("nan"), "m": [float("inf")], "o": 2**63, "p": [10**5000]}
    assert select_plain({**plain, 3: "no name", "g": None, "h": [None], "i": {"j": 1}, "k": [[1]], **infinite}) == plain


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("1911", 1911),
        ("-3", -3),
        ("1.50", 1.5),
        ("1.5e3", 1500.0),
        ("yes", True),
        ('"yes"', "yes"),
        ("'1911'", "1911"),
        ("9" * 18, int("9" * 18)),
        *((word, word) for word in ("2024-03-05", "2024-13-45", "2024-03-05 10:00:00", "0755", "0xff", "0b11")),
        *((word, word) for word in ("1_000", "1:30", "1:59:59.5", ".inf", ".nan", "9" * 30, "1e5", "<<")),
    ],
)  # fmt: skip
def test_a_word_is_a_number_only_where_it_plainly_is(written, value):
    found, _ = read_front_matter(f"---\na: {written}\nb: [{written}]\n---\n")
    assert found == {"a": value, "b": [value]}
    assert isinstance(found["a"], type(value))


LONG = 60_000
BOMBS = {
    "merge keys": "a0: &a0 {x: 1}\n" + "".join(f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}\n" for n in range(1, 40)),
    "aliases": f"a: &a {'x' * 30_000}\n" + "".join(f"k{n}: [*a, *a, *a]\n" for n in range(900)),
    "hexadecimal": f"year: 0x{'f' * LONG}\n",
    "sexagesimal": f"time: 1{':59' * (LONG // 3)}\n",
    "decimal": f"year: {'9' * LONG}\n",
    "tagged": f'year: !!int "0x{"f" * LONG}"\n',
    "deep flow": f"a: {'[' * LONG}\n",
    "deep block": "- " * (LONG // 2),
    "deep keys": "? " * (LONG // 2),
    "wide": f"a: [{'[],' * (LONG // 3)}]\n",
    "blanks": f"a:{' ' * LONG}x\n",
    "quotation": f"a: '{LONG * 'x'}",
    "lines": "a: " + "x\n  " * (LONG // 4),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_front_matter_that_unfolds_takes_a_second_and_no_room(bomb, here):
    for name, front in (("a.md", BOMBS[bomb]), ("b.md", "title: Rain\n")):
        (here / name).write_text(f"---\n{front}---\nThe rain fell.\n")
    started = time.thread_time()
    found, _ = read_front_matter((here / "a.md").read_text())
    assert time.thread_time() - started < 10  # a tenth of a second, and at most one
    assert len(str(found)) < 2 * LONG
    with Tome.open(embedder="hash") as tome:
        report = tome.add(here)
        assert len(report.added) == 2
        assert not any(path.endswith(".md") for path in report.skipped or ())
        assert len(json.dumps(tome.document("a.md").metadata)) < 4_100


@pytest.mark.parametrize(
    "text",
    [
        "No front matter.",
        "---\nA rule, then text.\n---\n",
        "---\na: [\n---\n",
        "---\na: 1\nno end",
        "text\n---\na: 1\n---\n",
        "---\na: !!int x\n---\n",
        "---\na: !!python/object/apply:os.getcwd []\n---\n",
        "---\na: &a [x]\nb: *a\n---\n",
        "---\na1: &a1 {b: 1}\nc:\n  <<: *a1\n---\n",
        "---\na: !!str x\n---\n",
        "---\na: " + "[" * 5000 + "\n---\n",
        "---\n" + "x" * 70_000 + ": 1\n---\n",
        "---\n? [a]\n: b\n---\n",
    ],
)
def test_any_other_beginning_is_text(text):
    assert read_front_matter(text) == ({}, 0)


def test_markdown_has_its_front_matter_as_metadata_and_keeps_its_text(reader, tmp_path):
    for name in ("note.md", "note.txt"):
        (tmp_path / name).write_text(NOTE)
    (note,), (plain,) = (reader.read(tmp_path / name).documents for name in ("note.md", "note.txt"))
    assert (note.title, note.metadata) == ("The keeper", FIELDS)
    assert note.text == plain.text == NOTE
    assert (plain.title, plain.metadata) == ("", {})
    assert read_front_matter("---\na: 1\n...\n") == ({"a": 1}, 12)


def test_characters_that_cannot_be_stored_are_refused(reader, tmp_path):
    assert find_unstorable({"a": "x", "b": ["y", 1, "\0"]}) == "b"
    assert find_unstorable({"a\ud800": 1}) == "a\ud800"
    assert find_unstorable({"a": "x", "b": ["y", 1]}) is None
    (tmp_path / "a.md").write_text('---\nnote: "a\\0b"\n---\ntext')
    with pytest.raises(ReadingError, match="'note' in its front matter"):
        reader.read(tmp_path / "a.md")


def test_front_matter_is_in_no_passage(reader, tmp_path, minilm):
    (tmp_path / "note.md").write_text("---\ntitle: Rain\n# a comment\n---\n# One\n\nThe rain fell.\n")
    (tmp_path / "bare.md").write_text("---\ntitle: Rain\n---\n")
    (note,), (bare,) = (reader.read(tmp_path / name).documents for name in ("note.md", "bare.md"))
    splitter = PassageSplitter(minilm, max_tokens=64)
    (passage,) = splitter.split(note)
    assert passage.text == "# One\n\nThe rain fell."
    assert note.text[passage.start : passage.end] == passage.text
    assert passage.place.chapter == ("One",)
    for document in (bare, replace(bare, body=-1)):
        assert [passage.text for passage in splitter.split(document)] == ["---\ntitle: Rain\n---"]
    assert list(splitter.split(replace(bare, body=99))) == []


def test_what_fits_stays_as_it_is_and_long_words_are_cut():
    metadata = {"author": "Ada Marsh", "year": 1911, "tags": ["sea", "light"], "none": []}
    marks = ((0, Place(chapter=("One", "Two"), speaker="Ann", time="12:04", page=3)),)
    document = Document(id="d", text="text", title="The Town", metadata=metadata, marks=marks)
    assert cut_document(document) == document
    place = Place(chapter=("a " * 9_000, *"bcdefghij"), speaker="s" * 9_000, time="t" * 9_000, row=7)
    document = cut_document(Document(id="d", text="t", title="a " * 9_000, marks=((0, place),)))
    assert document.title == ("a " * limits.TITLE)[: limits.TITLE].strip()
    heading = ("a " * limits.HEADING)[: limits.HEADING].strip()
    cut = Place(chapter=(heading, *"bcdefgh"), speaker="s" * limits.SPEAKER, time="t" * limits.TIME, row=7)
    assert document.marks == ((0, cut),)


def test_a_document_from_python_is_cut_too_and_a_long_id_is_refused(here):
    with Tome.open(embedder="hash") as tome:
        tome.add(Document(id="d", text="The rain fell.", title="t" * 9_000, metadata={"a": "x" * 9_000}))
        stored = tome.document("d")
        assert (stored.title, stored.metadata) == ("t" * limits.TITLE, {"a": "x" * limits.VALUE})
        with pytest.raises(ReadingError, match=r"the id of the document 'i+' has 1,001 characters: give it at most"):
            tome.add(Document(id="i" * (limits.ID + 1), text="The rain fell."))
        with pytest.raises(ReadingError, match=r"the metadata of the document 'd' is not plain: .* 64 bits"):
            tome.add(Document(id="d", text="The rain fell.", metadata={"year": 10**9000}))
