"""Tomes with damaged rows and files: an answer, or one StoreError that names table, row and remedy."""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
from collections.abc import Callable
from operator import methodcaller
from pathlib import Path
from typing import Any

import pytest
from tests.damages import DOCUMENTS, QUESTION, damage_at_random, make_tome, open_loose, use_damaged

from tomewise.errors import ReadingError, StoreError
from tomewise.tome.tome import Tome
from tomewise.types import Document

LATE = Document(id="late", text="Zoe Quill forged the Vellum Codex in Bruges.")
_SHARE = 20  # damages in one test


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a sound tome."""
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "umap", None)  # it takes seconds to import
        make_tome(folder)
    return folder


@pytest.fixture
def path(whole: Path, here: Path) -> Path:
    shutil.copytree(whole, here, dirs_exist_ok=True)
    return here / "a.tome"


def run(path: Path, statement: str, *values: Any) -> None:
    with open_loose(path) as file:
        assert file.execute(statement, values).rowcount >= 1


@pytest.mark.parametrize("share", range(10))
def test_two_hundred_damages_end_with_an_answer_or_one_error(
    whole: Path, tmp_path: Path, share: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "umap", None)
    problems = [
        f"{number}: {problem}"
        for number in range(share * _SHARE, (share + 1) * _SHARE)
        if (problem := use_damaged(whole, tmp_path, random.Random(f"tests {number}"), damage_at_random))
    ]
    assert problems == []


def export(tome: Tome) -> object:
    return list(tome.memory.export())


def ask(tome: Tome) -> object:
    return tome.ask(QUESTION, system="comorag")


def search(tome: Tome) -> object:
    return tome.search("Tom Hale")


def add(tome: Tome) -> object:
    return tome.add(LATE)


list_documents = methodcaller("documents")
# A statement, what is done with the tome then, and the row that the message names.
ROWS: list[tuple[str, Callable[[Tome], object], str]] = [
    ("UPDATE documents SET metadata = '[' WHERE id = 'd1'", list_documents, "'2' of the table documents"),
    ("UPDATE documents SET title = x'ff00' WHERE id = 'd1'", list_documents, "'2' of the table documents"),
    ("UPDATE documents SET text = CAST(x'ff41' AS TEXT) WHERE id = 'd1'", export, "'2' of the table documents"),
    ("UPDATE nodes SET data = '5' WHERE key = 1", export, "'1' of the table nodes"),
    ("UPDATE nodes SET start = 'x' WHERE key = 1", search, "'1' of the table nodes"),
    ("UPDATE nodes SET start = NULL WHERE key = 1", search, "'1' of the table nodes"),
    ("DELETE FROM nodes WHERE key = 1", export, ".* of the table"),
    ("UPDATE edges SET a = 'x' WHERE key = 1", export, "'1' of the table edges"),
    ("UPDATE edges SET weight = NULL WHERE key = 1", export, "'1' of the table edges"),
    ("UPDATE edges SET a = 4611686018427387904 WHERE key = 1", export, "'1' of the table edges"),
    ("UPDATE intake SET node = 99999 WHERE node = 1", export, "'99999' of the table intake"),
    ("UPDATE builds SET record = 'x' WHERE layer = 'gists'", ask, "'gists' .*tome build --again 'gists'"),
    (
        "UPDATE builds SET record = json_set(record, '$.writes', 5) WHERE layer = 'gists'",
        ask,
        "'gists' of the table builds",
    ),
    ("UPDATE sqlite_sequence SET seq = 1 WHERE name = 'nodes'", add, ".* of the table sqlite_sequence"),
]


@pytest.mark.parametrize(("statement", "use", "row"), ROWS, ids=[row[0][:60] for row in ROWS])
def test_a_damaged_row_is_named(path: Path, statement: str, use: Callable[[Tome], object], row: str) -> None:
    run(path, statement)
    with Tome.open(path) as tome, pytest.raises(StoreError, match=f"a.tome is damaged: the row {row}"):
        use(tome)


@pytest.mark.parametrize("vector", [b"abc", b"", b"\0" * 4, b"\xff" * 128, "text", None])
def test_a_damaged_vector_is_named(path: Path, vector: object) -> None:
    run(path, "UPDATE vectors SET vector = ? WHERE space = 'passages' AND key = 1", vector)
    shutil.rmtree(path.with_name("a.tome-cache"))
    with (
        Tome.open(path) as tome,
        pytest.raises(StoreError, match=r"the row .*1.* of the table vectors .*; restore it"),
    ):
        tome.search("the map", system="naive")


@pytest.mark.parametrize("key", ["identity", "passage_tokens", "overlap", "dimensions"])
@pytest.mark.parametrize("value", ["x", "-1", "9" * 99, "../../x", b"\xff"])
def test_a_damaged_setting_is_named_when_the_tome_is_opened(path: Path, key: str, value: object) -> None:
    run(path, "UPDATE meta SET value = ? WHERE key = ?", value, key)
    with pytest.raises(StoreError, match=f"the row '{key}' of the table meta"):
        Tome.open(path)


@pytest.mark.parametrize(("size", "overlap"), [(5, 0), (64, 64)])
def test_sizes_of_passages_that_are_impossible_are_damage(path: Path, size: int, overlap: int) -> None:
    run(path, "UPDATE meta SET value = ? WHERE key = 'passage_tokens'", str(size))
    run(path, "UPDATE meta SET value = ? WHERE key = 'overlap'", str(overlap))
    with Tome.open(path) as tome:
        assert tome.search("the map", system="naive")
        with pytest.raises(StoreError, match="is damaged: the rows 'passage_tokens' and 'overlap' of the table meta"):
            tome.add(LATE)


def test_an_embedder_that_nobody_knows_is_an_error_of_the_tome(path: Path) -> None:
    run(path, "UPDATE meta SET value = 'hsh:32' WHERE key = 'embedder'")
    with pytest.raises(StoreError, match="an embedder that is not known here"):
        Tome.open(path)


@pytest.mark.parametrize("record", ["x", "[]", "{}", b"\xff", None, '{"system": 5}'])
def test_a_damaged_session_stops_nobody_elses_work(path: Path, record: object) -> None:
    run(path, "UPDATE sessions SET record = ? WHERE name = 'comorag'", record)
    with Tome.open(path) as tome:
        tome.add(LATE)
        tome.remove("d3")
        assert tome.sessions["new"].ask(QUESTION, system="hybrid").session
        with pytest.warns(
            UserWarning, match="row 'comorag' of the table sessions .*tome sessions '?comorag'? --delete"
        ):
            assert [record.name for record in tome.sessions] == ["hgmem", "new"]
        with pytest.raises(StoreError, match="'comorag'"):
            tome.sessions["comorag"].ask(QUESTION)
        del tome.sessions["comorag"]
        assert list(tome.memory.export())


@pytest.mark.parametrize("record", ["x", "[]", "{}", b"\xff", None, '{"answer": 5, "events": [{"shared": [[9, 1]]}]}'])
def test_a_damaged_trace_stops_nobody_elses_work(path: Path, record: object) -> None:
    run(path, "UPDATE traces SET record = ? WHERE key = 2", record)
    with Tome.open(path) as tome:
        with pytest.warns(UserWarning, match="row '?2'? of the table traces .*tome log '?2'? --delete"):
            numbers = [trace.number for trace in tome.traces.latest()]
        assert 2 not in numbers
        assert {1, 3} <= set(numbers)
        with pytest.raises(StoreError, match="table traces"):
            tome.traces[2]
        del tome.traces[2]
        assert len(tome.traces.latest()) == len(numbers)


def test_a_damaged_reply_is_asked_for_again(path: Path) -> None:
    run(path, "UPDATE calls SET reply = x'ff'")
    with Tome.open(path) as tome:
        assert tome.ask(QUESTION, system="comorag").evidence


def test_an_error_at_a_sound_tome_is_not_called_damage(path: Path) -> None:
    def fail(_: object) -> None:
        raise TypeError("on purpose")

    with Tome.open(path) as tome:
        assert tome.store.find_damage() == ""
        with pytest.raises(TypeError, match="on purpose"):
            tome.ask(QUESTION, on_event=fail)


# ---------------------------------------------------------------- fork, and hostile ids


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_parent_and_child_of_a_fork_both_write_after_it(path: Path) -> None:
    with Tome.open(path) as tome:
        tome.ask(QUESTION)
        child = os.fork()
        if not child:
            code = 1
            try:
                with Tome.open(path) as own:
                    own.add(LATE)
                    own.remove("d0")
                    code = 0
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        tome.add(Document(id="parent", text="Sam Reed hid the coin."))
        assert tome.search("Who forged the Vellum Codex?", system="naive")[0].text == LATE.text
        assert {record.id for record in tome.documents()} == {"d1", "d2", "d3", "late", "parent"}
        assert tome.store.find_damage() == ""


HOSTILE_IDS = [
    *("../../.bashrc", "/etc/passwd", "a\nb", "\x1b]52;c;eA==\x07", "\u202ecod.txt", "a\u2028b", "a\x85b", "\x9b31m"),
    *("-rf", "$(touch PWNED)", "%2e%2e", "a" * 1000, "'; DROP TABLE nodes; --", "\U000e0041"),
]


def test_hostile_ids_go_through_an_export_one_line_each_and_name_no_file(here: Path) -> None:
    given = [
        Document(id=name, title=name, text=text.text) for name, text in zip(HOSTILE_IDS, DOCUMENTS * 4, strict=False)
    ]
    with Tome.open(here / "a.tome", embedder="hash") as tome:
        tome.add(*given)
        tome.ask(QUESTION, system="hybrid")
        lines = list(tome.memory.export())
        for document in given:
            tome.remove(document.id)
    assert all(line.isprintable() or "\U000e0041" in line for line in lines)
    assert len("\n".join(lines).splitlines()) == len(lines)
    rows = [json.loads(line) for line in lines]
    assert {row["id"] for row in rows if row["kind"] == "document"} == set(HOSTILE_IDS)
    files = [file.name for file in here.rglob("*")]
    assert all(name.startswith(("a.tome", "vectors%2F", "edges%2F", "writer.lock")) for name in files)


@pytest.mark.parametrize("name", ["\ud800", "a\0b"])
def test_an_id_that_no_file_can_hold_is_refused(here: Path, name: str) -> None:
    with Tome.open(here / "a.tome", embedder="hash") as tome, pytest.raises(ReadingError, match="replace it"):
        tome.add(Document(id=name, text="text"))
