"""By which names documents are removed: whole ids, paths, titles, folders and patterns, and no parts of them."""

from __future__ import annotations

import json

import pytest

from tomewise.errors import UnknownName, UsageError
from tomewise.tome.exact_names import find_exactly
from tomewise.types import Document

TEXT = "The keeper, Ada Marsh, put out the light at nine."


@pytest.fixture
def shelf(tome, here):
    """Files in folders, a corpus, and rows of one's own with titles."""
    for name in ("notes.txt", "mix/code/a.py", "mix/code/b.py", "mix/code/sub/c.py", "mix/d.md", "wiki/sub/deploy.md"):
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).write_text(f"{TEXT} {name}")
    (here / "rows.jsonl").write_text("\n".join(json.dumps({"id": f"r{n}", "text": f"{TEXT} {n}"}) for n in range(2)))
    tome.add(here)
    titles = {"row-17": "The Boat", "t1": "Twice", "t2": "Twice", "[x]*": "", "n1": "wiki"}
    tome.add(*(Document(id=id, title=title, text=f"{TEXT} {id}") for id, title in titles.items()))
    return tome


def find(tome, name, here):
    """The ids that a name finds, short, and whether it is the name of one."""
    named = find_exactly(name, tome.store)
    return sorted(record.id.removeprefix(f"{here}/") for record in named.records), named.single


@pytest.mark.parametrize("name", ["notes.txt", "./notes.txt", "mix/../notes.txt", "{here}/notes.txt"])
def test_a_path_is_one_document(shelf, here, name):
    assert find(shelf, name.format(here=here), here) == (["notes.txt"], True)


@pytest.mark.parametrize(("name", "id"), [("row-17", "row-17"), ("The Boat", "row-17"), ("r0", "r0"), ("[x]*", "[x]*")])
def test_so_are_an_id_and_a_title(shelf, here, name, id):
    assert find(shelf, name, here) == ([id], True)


@pytest.mark.parametrize(
    ("name", "ids"),
    [
        ("mix/code", ["mix/code/a.py", "mix/code/b.py", "mix/code/sub/c.py"]),
        ("mix/code/", ["mix/code/a.py", "mix/code/b.py", "mix/code/sub/c.py"]),
        ("wiki/sub", ["wiki/sub/deploy.md"]),
        ("mix/code/*", ["mix/code/a.py", "mix/code/b.py", "mix/code/sub/c.py"]),
        ("./mix/code/?.py", ["mix/code/a.py", "mix/code/b.py"]),
        ("wiki/../mix/code/[ab].py", ["mix/code/a.py", "mix/code/b.py"]),
        ("{here}/mix/*.md", ["mix/d.md"]),
        ("*.md", ["mix/d.md", "wiki/sub/deploy.md"]),
        ("*Boat", ["row-17"]),
        ("rows.jsonl", ["r0", "r1"]),
        ("r?", ["r0", "r1"]),
    ],
)
def test_folders_corpora_and_patterns_need_a_question(shelf, here, name, ids):
    assert find(shelf, name.format(here=here), here) == (ids, False)


def test_a_pattern_is_seen_from_the_current_folder(shelf, here, monkeypatch):
    monkeypatch.chdir(here / "mix")
    assert find(shelf, "code/*.py", here)[0] == ["mix/code/a.py", "mix/code/b.py", "mix/code/sub/c.py"]
    assert find(shelf, "../wiki/*", here)[0] == ["wiki/sub/deploy.md"]
    (here / "[m]").mkdir()
    monkeypatch.chdir(here / "[m]")
    with pytest.raises(UnknownName):
        find_exactly("code/*.py", shelf.store)  # the name of the folder is not a pattern


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("not", "'notes.txt'"),
        ("deploy", "'wiki/sub/deploy.md'"),
        ("deploy.md", "'wiki/sub/deploy.md'"),
        ("row-1", "'row-17'"),
    ],
)
def test_a_part_is_suggested_and_removes_nothing(shelf, here, name, meant):
    before = shelf.documents()
    with pytest.raises(UnknownName, match="a part of a name removes nothing") as refused:
        shelf.remove(name)
    assert f"no document {name!r}" in str(refused.value)
    assert f"did you mean {meant}?" in str(refused.value)
    assert shelf.documents() == before
    assert shelf.document(name), "to read it, a part is enough"


def test_what_fits_two_things_is_refused_with_the_list(shelf, here):
    with pytest.raises(UnknownName, match=r"'Twice' fits 2 documents \('t1', 't2'\): give the whole id"):
        shelf.remove("Twice")
    with pytest.raises(UnknownName, match=r"'wiki' fits 2 documents .*'n1'"):
        shelf.remove("wiki")  # a title, and a folder
    with pytest.raises(UsageError, match="empty"):
        shelf.remove(" ")
    with pytest.raises(UnknownName, match="tome show"):
        shelf.remove("*.pdf")


def test_several_go_at_once_from_python(shelf, here):
    report = shelf.remove("mix/code/*")
    assert report.documents == tuple(str(here / "mix/code" / name) for name in ("a.py", "b.py", "sub/c.py"))
    assert (report.document, report.passages, report.derived) == ("mix/code/*", 3, 0)
    record = next(record for record in shelf.documents() if record.id == "[x]*")
    assert shelf.remove(record).documents == ("[x]*",)
    with pytest.raises(UnknownName):
        shelf.remove(record)  # it is gone, and its id is not read as a pattern
    assert "row-17" in [left.id for left in shelf.documents()]
