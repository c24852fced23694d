"""The names under which documents go out: relative to the folder that was given to `add`, and unique."""

from __future__ import annotations

import re
from pathlib import PurePosixPath, PureWindowsPath

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tomewise import Document, Tome
from tomewise.tome.document_names import DocumentNames

PARTS = st.sampled_from(["a", "b", "a.txt", "b.txt", "..", ".", "", "C:", "x\\y", "\\", "é", "a~1"])
PATHS = st.tuples(st.sampled_from(["/", "//", "C:\\", "d:/", "\\\\host\\"]), st.lists(PARTS, max_size=4)).map(
    lambda pair: pair[0] + ("\\" if "\\" in pair[0] else "/").join(pair[1])
)
ROWS = st.tuples(PATHS, st.sampled_from(["#1", "#2", "#a/b"])).map("".join)
PLAIN = st.lists(st.sampled_from(["a", "b", "a.txt", "b.txt", "document"]), min_size=1, max_size=3).map("/".join)
FOLDERS = st.sampled_from(["", "/", "/a", "/a/b", "/b", "/a.txt", "//a"])


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
        ({"/home/notes/a.txt": ""}, {"a.txt"}),
        ({"/x/notes/a.txt": "/x/notes", "/y/notes/a.txt": "/y/notes"}, {"x/notes/a.txt", "y/notes/a.txt"}),
        (
            {"/x/n/a.txt": "/x", "/y/n/a.txt": "/y", "/z/b.txt": "/z"},
            {"x/n/a.txt", "y/n/a.txt", "b.txt"},
        ),
        ({"/x/a.txt": "/x", "a.txt": ""}, {"x/a.txt", "a.txt"}),
        ({"/notes/rows.jsonl#1": "/notes", "/notes/rows.jsonl#2": "/notes"}, {"rows.jsonl#1", "rows.jsonl#2"}),
        ({"C:\\notes\\a.txt": ""}, {"a.txt"}),
    ],
)
def test_a_name_is_relative_to_the_folder_or_the_shortest_ending_of_its_own(folders, expected):
    names = DocumentNames({id: id.split("#")[0] for id in folders}, folders)
    assert {names.name(id) for id in folders} == expected


def test_messages_and_plain_data_hold_no_folder():
    names = DocumentNames(dict.fromkeys(["/home/J\xf6rg/notes/sub/a.txt"], "/home/J\xf6rg/notes/sub/a.txt"), {})
    folder, id = "/home/J\xf6rg/notes/sub", "/home/J\xf6rg/notes/sub/a.txt"
    for message in (f"no {id!a} in {folder}", f"{id}, line 3: bad", f"{folder}/b.txt is new", f"{folder!a}/"):
        assert "/home" not in names.clean(message), message
    assert names.clean(f"{id}: bad") == "a.txt: bad"
    assert names.clean("either/or, /homes, https://host/x") == "either/or, /homes, https://host/x"
    assert names.rename({"document": id, "text": f"see {id}"}) == {"document": "a.txt", "text": f"see {id}"}
    assert names.rename({"document": "/gone/b.txt"}) == {"document": "b.txt"}


def test_a_tome_keeps_the_folder_that_was_given(tmp_path):
    notes = tmp_path / "notes"
    (notes / "sub").mkdir(parents=True)
    (notes / "sub" / "a.txt").write_text("The keeper forged the letter.")
    (notes / "rows.jsonl").write_text('{"text": "One row."}\n{"id": "named", "text": "Another row."}\n')
    with Tome.open(tmp_path / "m.tome", embedder="hash") as tome:

        def list_names():
            names = tome.document_names.read()
            return {names.name(record.id) for record in tome.documents()}

        tome.add(notes / "sub" / "a.txt", notes / "rows.jsonl", Document(id="mine", text="A text."))
        assert list_names() == {"a.txt", "rows.jsonl#1", "named", "mine"}
        before = list(tome.export())
        assert not tome.add(notes).added
        assert list_names() == {"sub/a.txt", "rows.jsonl#1", "named", "mine"}, "the last addition counts"
        assert list(tome.export()) == before, "names are no part of the memory"
        (notes / "sub").rename(notes / "new")
        assert len(tome.add(notes, sync=True).moved) == 1
        assert list_names() == {"new/a.txt", "rows.jsonl#1", "named", "mine"}
        tome.remove(str(notes / "new" / "a.txt"))
        assert list_names() == {"rows.jsonl#1", "named", "mine"}


def test_names_are_chosen_once_for_each_state_of_the_tome(tmp_path):
    with Tome.open(tmp_path / "m.tome", embedder="hash") as tome, Tome.open(tmp_path / "m.tome") as again:
        tome.add(Document(id="/x/a.txt", text="A text."))
        names = tome.document_names.read()
        tome.ask("What is this?", system="naive")
        assert tome.document_names.read() is names
        again.add(Document(id="/y/a.txt", text="Another text."))
        assert tome.document_names.read().name("/x/a.txt") == "x/a.txt"
