"""The names of documents: those under which they go out, and those by which they are found and removed."""

from __future__ import annotations

import json
import re
from pathlib import PurePosixPath, PureWindowsPath

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.tome.paid_tome import pretend_paid

from tomewise import Document, Tome
from tomewise.errors import UnknownName, UsageError
from tomewise.tome.document_names import DocumentNames, find_exactly

# ---------------------------------------------------------------- relative to the folder that was given, and unique

PARTS = st.sampled_from(["a", "b", "a.txt", "b.txt", "..", ".", "", "C:", "x\\y", "\\", "é", "a~1"])
PATHS = st.tuples(st.sampled_from(["/", "//", "C:\\", "d:/", "\\\\host\\"]), st.lists(PARTS, max_size=4)).map(
    lambda pair: pair[0] + ("\\" if "\\" in pair[0] else "/").join(pair[1])
)
ROWS = st.tuples(PATHS, st.sampled_from(["#1", "#2", "#a/b"])).map("".join)
PLAIN = st.lists(st.sampled_from(["a", "b", "a.txt", "b.txt", "document"]), min_size=1, max_size=3).map("/".join)
FOLDERS = st.sampled_from(["", "/", "/a", "/a/b", "/b", "/a.txt", "//a"])


@settings(max_examples=60)
@given(st.dictionaries(PATHS | ROWS | PLAIN, FOLDERS, max_size=8), st.randoms())
@example({"/a": "/a", "/a/b": "/a/b", "/": "/", "//": "", "/..": "", "C:\\": ""}, None)
@example({"/a/x": "/a", "/b/a/x": "/b", "/c/a/x": "/c", "a/x": "", "x": ""}, None)
def test_names_are_unique_and_lead_back(folders, random):
    sources = {id: re.split("#", id)[0] for id in folders}
    names = DocumentNames(sources, folders)
    shown = {id: names.name(id) for id in folders}
    assert len(set(shown.values())) == len(folders)
    for id, name in shown.items():
        assert names.find(name) == names.find(id) == id
        assert not PurePosixPath(name).is_absolute()
        assert not PureWindowsPath(name).is_absolute()
        assert re.split(r"[/\\]", name)[0] not in ("..", "")
    order = sorted(folders)
    if random:
        random.shuffle(order)
    again = DocumentNames({id: sources[id] for id in order}, {id: folders[id] for id in order})
    assert {id: again.name(id) for id in folders} == shown


@pytest.mark.parametrize(
    ("folders", "expected"),
    [
        ({"/home/notes/sub/a.txt": "/home/notes", "row-1": ""}, {"sub/a.txt", "row-1"}),
        ({"/x/notes/a.txt": "/x/notes", "/y/notes/a.txt": "/y/notes"}, {"x/notes/a.txt", "y/notes/a.txt"}),
        ({"/x/n/a.txt": "/x", "/y/n/a.txt": "/y", "/z/b.txt": "/z"}, {"x/n/a.txt", "y/n/a.txt", "b.txt"}),
        ({"/x/a.txt": "/x", "a.txt": ""}, {"x/a.txt", "a.txt"}),
        ({"/notes/rows.jsonl#1": "/notes", "/notes/rows.jsonl#2": "/notes"}, {"rows.jsonl#1", "rows.jsonl#2"}),
        ({"C:\\notes\\a.txt": ""}, {"a.txt"}),
    ],
)
def test_a_name_is_relative_to_the_folder_or_the_shortest_ending_of_its_own(folders, expected):
    names = DocumentNames({id: id.split("#")[0] for id in folders}, folders)
    assert {names.name(id) for id in folders} == expected


def test_messages_and_plain_data_hold_no_folder():
    folder, id = "/home/J\xf6rg/notes/sub", "/home/J\xf6rg/notes/sub/a.txt"
    names = DocumentNames({id: id}, {})
    for message in (f"no {id!a} in {folder}", f"{id}, line 3: bad", f"{folder}/b.txt is new", f"{folder!a}/"):
        assert "/home" not in names.clean(message), message
    assert names.clean(f"{id}: bad") == "a.txt: bad"
    assert names.clean("either/or, /homes, https://host/x") == "either/or, /homes, https://host/x"
    assert names.hide({"document": id, "text": id, "source": id}) == {
        "document": "a.txt",
        "text": id,
        "source": "a.txt",
    }
    assert names.hide({"document": "/gone/b.txt"}) == {"document": "b.txt"}
    report = {
        "metadata": {"source": "Reuters/AP", "document": "/vol/7"},
        "links": [{"source": "and/or", "target": "b/c"}],
    }
    assert names.hide(report) == report


def test_a_tome_keeps_the_folder_that_was_given(tmp_path):
    notes = tmp_path / "notes"
    (notes / "sub").mkdir(parents=True)
    (notes / "sub" / "a.txt").write_text("The keeper forged the letter.")
    (notes / "rows.jsonl").write_text('{"text": "One row."}\n{"id": "named", "text": "Another row."}\n')
    others = {"rows.jsonl#1", "named", "mine"}
    with Tome.open(tmp_path / "m.tome", embedder="hash") as tome:

        def list_names():
            names = tome.documents.names.read()
            return {names.name(record.id) for record in tome.documents()}

        tome.add(notes / "sub" / "a.txt", notes / "rows.jsonl", Document(id="mine", text="A text."))
        assert list_names() == {"a.txt", *others}
        before = list(tome.memory.export())
        assert not tome.add(notes).added
        assert list_names() == {"sub/a.txt", *others}, "the last addition counts"
        assert list(tome.memory.export()) == before, "names are no part of the memory"
        (notes / "sub").rename(notes / "new")
        assert len(tome.add(notes, sync=True).moved) == 1
        assert list_names() == {"new/a.txt", *others}
        tome.remove(str(notes / "new" / "a.txt"))
        assert list_names() == others


# ---------------------------------------------------------------- whole ids, paths, titles, folders and patterns

TEXT = "The keeper, Ada Marsh, put out the light at nine."
CODE = ["mix/code/a.py", "mix/code/b.py", "mix/code/sub/c.py"]


@pytest.fixture
def shelf(tome, here):
    """Files in folders, a corpus, and rows of one's own with titles."""
    for name in ("notes.txt", *CODE, "mix/d.md", "wiki/sub/deploy.md"):
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).write_text(f"{TEXT} {name}")
    (here / "rows.jsonl").write_text("\n".join(json.dumps({"id": f"r{n}", "text": f"{TEXT} {n}"}) for n in range(2)))
    tome.add(here)
    titles = {"row-17": "The Boat", "t1": "Twice", "t2": "Twice", "[x]*": "", "n1": "wiki"}
    tome.add(*(Document(id=id, title=title, text=f"{TEXT} {id}") for id, title in titles.items()))
    return tome


def find(tome, name, here):
    """The ids that a name finds, short, and whether it is the name of one."""
    named = find_exactly(name.format(here=here), tome.store)
    return sorted(record.id.removeprefix(f"{here}/") for record in named.records), named.single


def test_a_path_an_id_and_a_title_name_one_document(shelf, here):
    for name in ("notes.txt", "./notes.txt", "mix/../notes.txt", "{here}/notes.txt"):
        assert find(shelf, name, here) == (["notes.txt"], True), name
    for name, id in (("row-17", "row-17"), ("The Boat", "row-17"), ("r0", "r0"), ("[x]*", "[x]*")):
        assert find(shelf, name, here) == ([id], True), name


def test_folders_corpora_and_patterns_need_a_question(shelf, here):
    for name, ids in {
        "mix/code": CODE,
        "wiki/sub": ["wiki/sub/deploy.md"],
        "mix/code/*": CODE,
        "./mix/code/?.py": CODE[:2],
        "{here}/mix/*.md": ["mix/d.md"],
        "*.md": ["mix/d.md", "wiki/sub/deploy.md"],
        "*Boat": ["row-17"],
        "rows.jsonl": ["r0", "r1"],
        "r?": ["r0", "r1"],
    }.items():
        assert find(shelf, name, here) == (ids, False), name


def test_a_pattern_is_seen_from_the_current_folder(shelf, here, monkeypatch):
    monkeypatch.chdir(here / "mix")
    assert find(shelf, "code/*.py", here)[0] == CODE
    assert find(shelf, "../wiki/*", here)[0] == ["wiki/sub/deploy.md"]
    (here / "[m]").mkdir()
    monkeypatch.chdir(here / "[m]")
    with pytest.raises(UnknownName):
        find_exactly("code/*.py", shelf.store)  # the name of the folder is not a pattern


def test_what_removes_nothing_is_refused_with_what_may_be_meant(shelf):
    before = shelf.documents()
    part = "a part of a name removes nothing"
    for name, kind, *words in (
        ("otes", UnknownName, "no document 'otes'", "did you mean 'notes.txt'?", part),
        ("deploy.md", UnknownName, "no document 'deploy.md'", "did you mean 'wiki/sub/deploy.md'?", part),
        ("Twice", UnknownName, "'Twice' fits 2 documents ('t1', 't2'): give the whole id"),
        ("wiki", UnknownName, "'wiki' fits 2 documents ", "'n1'"),  # a title, and a folder
        ("*.pdf", UnknownName, "tome show"),
        (" ", UsageError, "empty"),
    ):
        with pytest.raises(kind) as refused:
            shelf.remove(name)
        assert [word for word in words if word not in str(refused.value)] == []
    assert shelf.documents() == before


def test_several_go_at_once_from_python(shelf, here):
    report = shelf.remove("mix/code/*")
    assert report.documents == tuple(str(here / name) for name in CODE)
    assert (report.document, report.passages, report.derived) == ("mix/code/*", 3, 0)
    record = next(record for record in shelf.documents() if record.id == "[x]*")
    assert shelf.remove(record).documents == ("[x]*",)
    with pytest.raises(UnknownName):
        shelf.remove(record)  # it is gone, and its id is not read as a pattern


# ---------------------------------------------------------------- what a removal takes along


@pytest.fixture(name="built")
def build_tome(here):
    texts = {
        "light": "Ada Marsh put out the light at nine. Ada Marsh met Tom Reed at the harbour in May.",
        "boat": "Tom Reed rowed the boat to the harbour. The boat belonged to the clerk.",
    }
    with Tome.open(here / "a.tome", embedder="hash") as tome:
        tome.add(*(Document(id=id, text=text) for id, text in texts.items()))
        tome.build("comorag")
    return here / "a.tome"


def test_what_will_go_is_what_then_went_and_the_extractive_model_is_free(built):
    with Tome.open(built) as tome:
        foresight = tome.documents.foresee_removal("light", "boat")
        assert foresight.paid == {}
        report = tome.remove("*")
        assert (foresight.passages, foresight.derived) == (report.passages, report.derived)


def test_what_another_model_made_was_paid_for_in_all_layers_that_it_wrote_and_no_free_build_hides_it(built):
    pretend_paid(built, "openai:test, extractive")
    with Tome.open(built) as tome:
        foresight = tome.documents.foresee_removal("light")
        assert foresight.paid == {"openai:test": foresight.derived}
        assert {"facts:passages-triples", "entities:passages-triples"} <= foresight.layers.keys()
        tome.add(Document(id="more", text="Mary Lane sold the boat to Tom Reed in June."))
        tome.build("comorag")
        assert list(tome.documents.foresee_removal("light").paid) == ["openai:test"]
