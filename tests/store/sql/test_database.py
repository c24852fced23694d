"""Opening files that are tomes and files that are not; one writer, many readers."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.store.conftest import OpenStore
from tests.store.contract import add

from tomewise.errors import Locked, StoreError
from tomewise.store.lookups import read_vectors
from tomewise.store.rights import work_alone
from tomewise.store.sql import database
from tomewise.store.sql.schema import FORMAT
from tomewise.store.sql.sql_store import SqlStore
from tomewise.types import Document

ONE = Document(id="one", text="a cat sat on a mat")


def open_and_fail(path: Path, *, create: bool = True) -> str:
    with pytest.raises(StoreError) as caught:
        SqlStore.open(path, create=create)
    assert str(path) in str(caught.value) or str(path.parent) in str(caught.value)
    return str(caught.value)


def test_missing_files_are_made_only_when_wanted(tmp_path: Path) -> None:
    assert "add something first" in open_and_fail(tmp_path / "none.tome", create=False)
    assert not (tmp_path / "none.tome").exists()
    assert "make it first" in open_and_fail(tmp_path / "no" / "none.tome")
    assert "is a folder" in open_and_fail(tmp_path)


def test_empty_files_are_new_tomes(tmp_path: Path) -> None:
    (tmp_path / "empty.tome").touch()
    assert "found no tome" in open_and_fail(tmp_path / "empty.tome", create=False)
    store = SqlStore.open(tmp_path / "empty.tome")
    assert store.documents() == []
    store.close()


@pytest.mark.parametrize("content", [b"x", b"%PDF-1.7 and so on", b"\x00" * 5000])
def test_other_files_are_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "some.pdf"
    path.write_bytes(content)
    assert "is not a tome" in open_and_fail(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    "damage",
    [
        *(lambda whole, share=share: whole[: int(len(whole) * share)] for share in (0.02, 0.5, 0.9)),
        lambda whole: b"SQLite format 3\x00" + b"\x07" * 10_000,
        lambda whole: whole[:16384] + os.urandom(len(whole) - 16384),  # met when the tome is read
    ],
    ids=["2 percent", "half", "most", "header alone", "garbage in pages"],
)
def test_files_cut_or_scribbled_on_are_named_damaged(store: SqlStore, damage: Callable[[bytes], bytes]) -> None:
    add(store, ONE)
    store.close()
    store.path.write_bytes(damage(store.path.read_bytes()))
    with pytest.raises(StoreError, match=r"test\.tome .*damaged"):
        SqlStore.open(store.path).documents()


@pytest.mark.parametrize(
    ("version", "message"),
    [
        (FORMAT + 1, rf"by a newer Tomewise \(format {FORMAT + 1}, .*pip install -U"),
        (FORMAT - 1, r"by an earlier Tomewise \(format \d+, .*: add its documents to a new tome"),
    ],
)
def test_tomes_of_another_format_are_refused_with_the_remedy(store: SqlStore, version: int, message: str) -> None:
    store.close()
    with closing(sqlite3.connect(store.path)) as file:
        file.execute(f"PRAGMA user_version = {version}")
    with pytest.raises(StoreError, match=message):
        SqlStore.open(store.path)


def test_paths_may_hold_anything(tmp_path: Path) -> None:
    path = tmp_path / "what? 100% #1 é.tome"
    store = SqlStore.open(path)
    add(store, ONE)
    store.close()
    assert path.exists()
    again = SqlStore.open(path, create=False)
    assert again.document("one") == ONE
    again.close()


# ---------------------------------------------------------------- one writer


@pytest.mark.parametrize("kind", ["IMMEDIATE", "EXCLUSIVE"])
def test_a_second_writer_gets_an_error_and_readers_continue(
    kind: str, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.1)
    store = open_store("test.tome")
    add(store, ONE)
    writer = sqlite3.connect(store.path, isolation_level=None)
    writer.execute(f"BEGIN {kind}")
    try:
        with pytest.raises(Locked, match="another program"):
            add(store, Document(id="two", text="a dog sat"))
        assert [record.id for record in store.documents()] == ["one"]
        assert open_store("test.tome").document("one") == ONE
        assert len(read_vectors(store, "passages").keys) == 2
    finally:
        writer.execute("ROLLBACK")
        writer.close()
    add(store, Document(id="two", text="a dog sat"))
    assert len(store.documents()) == 2


def test_one_process_of_all_is_exclusive_until_it_is_killed(store: SqlStore) -> None:
    add(store, ONE)
    script = """
import sys
from pathlib import Path
from tomewise.errors import Locked
from tomewise.store.rights import work_alone
from tomewise.store.sql.sql_store import SqlStore
store = SqlStore.open(Path(sys.argv[1]))
try:
    with work_alone(store, "add"):
        print("mine", flush=True)
        sys.stdin.read()
except Locked:
    print("locked", len(store.documents()))
"""
    command = [sys.executable, "-c", script, str(store.path)]
    with work_alone(store, "add"):
        assert subprocess.run(command, input="", text=True, capture_output=True, check=True).stdout == "locked 1\n"
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "mine\n"
        with pytest.raises(Locked), work_alone(store, "add"):
            pass
        owner.kill()
    with work_alone(store, "add"):  # the lock of a killed process is free
        assert len(store.documents()) == 1
