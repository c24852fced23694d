"""Metadata: the plain fields of rows, and of the front matter of Markdown."""

from __future__ import annotations

import pytest

from tomewise.errors import ReadingError
from tomewise.reading.metadata import find_unstorable, read_front_matter, select_plain
from tomewise.reading.process import ReaderProcess
from tomewise.reading.read import SourceReader

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


def test_plain_fields_are_kept():
    fields = {"a": "x", "b": 1, "c": 1.5, "d": False, "e": ["x", 2], "f": [], 3: "no name", "g": None, "h": [None]}
    plain = {"a": "x", "b": 1, "c": 1.5, "d": False, "e": ["x", 2], "f": []}
    assert select_plain({**fields, "i": {"j": 1}, "k": [[1]], "l": float("nan"), "m": [float("inf")]}) == plain


def test_front_matter_is_read():
    assert read_front_matter(NOTE) == {"title": "The  keeper", **FIELDS}
    assert read_front_matter("---\na: 1\n...\n") == {"a": 1}


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
        "---\nday: 2024-13-45\n---\n",
        "---\na: " + "[" * 5000 + "\n---\n",
        "---\n" + "x" * 70_000 + ": 1\n---\n",
        "---\n? [a]\n: b\n---\n",
    ],
)
def test_any_other_beginning_is_text(text):
    assert read_front_matter(text) == {}


def test_markdown_has_its_front_matter_as_metadata_and_keeps_its_text(tmp_path):
    for name in ("note.md", "note.txt"):
        (tmp_path / name).write_text(NOTE)
    with ReaderProcess() as process:
        reader = SourceReader(process)
        (note,), (plain,) = (reader.read(tmp_path / name).documents for name in ("note.md", "note.txt"))
    assert (note.title, note.metadata) == ("The keeper", FIELDS)
    assert note.text == plain.text == NOTE
    assert (plain.title, plain.metadata) == ("", {})


def test_characters_that_cannot_be_stored_are_refused(tmp_path):
    assert find_unstorable({"a": "x", "b": ["y", 1, "\0"]}) == "b"
    assert find_unstorable({"a\ud800": 1}) == "a\ud800"
    assert find_unstorable({"a": "x", "b": ["y", 1]}) is None
    (tmp_path / "a.md").write_text('---\nnote: "a\\0b"\n---\ntext')
    with ReaderProcess() as process, pytest.raises(ReadingError, match="'note' in its front matter"):
        SourceReader(process).read(tmp_path / "a.md")
