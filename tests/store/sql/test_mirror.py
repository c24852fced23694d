"""The files with arrays beside a tome: mapped if they have the database's version, ignored otherwise."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.store.conftest import OpenStore
from tests.store.contract import add, assert_arrays_follow, remove, vectors_of

from tomewise.store.beside import FolderBeside
from tomewise.store.lookups import read_edges, read_vectors
from tomewise.store.sql import mirror
from tomewise.store.sql.arrays import Arrays
from tomewise.store.sql.mirror import encode_header
from tomewise.store.sql.sql_store import SqlStore
from tomewise.types import Document

ONE = Document(id="one", text="a cat sat on a mat and slept")
TWO = Document(id="two", text="a dog sat on the cat")


def find_file(store: SqlStore, ending: str) -> Path:
    (path,) = store.cache_folder.glob(f"vectors%2Fpassages*{ending}")
    return path


def is_mapped(store: SqlStore) -> bool:
    return isinstance(read_vectors(store, "passages").stored_rows.base, np.memmap)


def test_a_fresh_process_maps_the_files(open_store: OpenStore, loads: list[str]) -> None:
    store = open_store("test.tome")
    add(store, ONE, TWO)
    remove(store, "one")
    again = open_store("test.tome")
    assert_arrays_follow(again)
    assert is_mapped(again)
    assert read_vectors(again, "passages") is read_vectors(again, "passages"), "warm arrays are kept"
    assert loads == []


def change_bytes(ending: str, change: Callable[[bytes], bytes]) -> Callable[[SqlStore], None]:
    def damage(store: SqlStore) -> None:
        path = find_file(store, ending)
        path.write_bytes(change(path.read_bytes()))

    return damage


def change_header(change: Callable[[dict[str, Any]], Any]) -> Callable[[SqlStore], None]:
    """Write a header as a stranger may, with a checksum that is right."""
    return change_bytes("json", lambda content: encode_header(change(json.loads(content.split(b"\n")[0]))))


def omit_size(header: dict[str, Any]) -> dict[str, Any]:
    del header["parts"]["keys"]["size"]
    return header


DAMAGES: dict[str, Callable[[SqlStore], None]] = {
    "no folder": lambda store: shutil.rmtree(store.cache_folder),
    "no rows": lambda store: find_file(store, "rows").unlink(),
    "cut rows": change_bytes("rows", lambda content: content[:-5]),
    "zeros for rows": change_bytes("rows", lambda content: bytes(len(content))),
    "another key": change_bytes("keys", lambda content: b"\x63" + content[1:]),
    "empty header": change_bytes("json", lambda content: b""),
    "torn header": change_bytes("json", lambda content: content.replace(b'"width": 4', b'"width": 2')),
    "odd header": change_header(lambda header: ["no", "header"]),
    "header without a size": change_header(omit_size),
    "another tome": change_header(lambda header: {**header, "tome": "another"}),
    "another version": change_header(lambda header: {**header, "version": 7}),
}


@pytest.mark.parametrize("kind", DAMAGES)
def test_damaged_files_are_ignored_and_repaired(kind: str, open_store: OpenStore, loads: list[str]) -> None:
    store = open_store("test.tome")
    add(store, ONE)
    expected = read_vectors(store, "passages").rows.tolist()
    DAMAGES[kind](store)
    for reader in (open_store("test.tome"), open_store("test.tome")):
        assert read_vectors(reader, "passages").rows.tolist() == expected
        assert loads == ["vectors/passages"], "the second reader finds them repaired"
    assert is_mapped(reader)
    DAMAGES[kind](store)
    add(store, TWO)
    remove(store, "one")
    for each in (store, open_store("test.tome")):
        assert_arrays_follow(each)


def test_bytes_that_a_killed_writer_left_behind_are_cut_off(open_store: OpenStore, loads: list[str]) -> None:
    store = open_store("test.tome")
    add(store, ONE)
    for ending in ("rows", "keys", "dead"):
        with find_file(store, ending).open("ab") as file:
            file.write(b"half a row")
    add(store, TWO)
    assert_arrays_follow(open_store("test.tome"))
    assert loads == []


def test_a_writer_killed_before_its_commit(
    store: SqlStore, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(store, ONE)
    apply_deltas = Arrays.apply_deltas

    def stop_after_apply(*given: Any) -> None:
        apply_deltas(*given)
        raise SystemExit("killed")

    with monkeypatch.context() as patch:
        patch.setattr(Arrays, "apply_deltas", stop_after_apply)
        with pytest.raises(SystemExit):
            add(store, TWO)
    assert [record.id for record in store.documents()] == ["one"]
    assert_arrays_follow(store)
    assert_arrays_follow(open_store("test.tome"))
    add(store, TWO)
    assert_arrays_follow(open_store("test.tome"))


def test_a_full_disk_breaks_the_files_but_not_the_transaction(
    store: SqlStore, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(store, ONE)
    open_file = FolderBeside.open

    def fill_disk(folder: FolderBeside, name: str, *, to_change: bool = False) -> Any:
        if to_change:
            raise OSError(28, "No space left on device")
        return open_file(folder, name)

    with monkeypatch.context() as patch:
        patch.setattr(FolderBeside, "open", fill_disk)
        add(store, TWO)
        assert_arrays_follow(store)
    assert_arrays_follow(open_store("test.tome"))


def test_files_of_a_later_state_are_ignored_after_a_copy_is_restored(store: SqlStore, open_store: OpenStore) -> None:
    add(store, ONE)
    store.close()
    copy = store.path.read_bytes()
    later = open_store("test.tome")
    add(later, TWO)
    later.close()
    store.path.write_bytes(copy)
    restored = open_store("test.tome")
    add(restored, Document(id="three", text="as many changes as before"))
    assert_arrays_follow(restored)
    assert_arrays_follow(open_store("test.tome"))


def test_readers_and_a_writer_in_threads(open_store: OpenStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirror, "DEAD_LEAST", 1)  # so that files are written again all the time
    writer, reader = open_store("test.tome"), open_store("test.tome")
    add(writer, ONE)
    expected = dict(
        zip(writer.node_keys("passages"), vectors_of([p.text for p in writer.passages().values()]), strict=True)
    )

    def read(store: SqlStore) -> int:
        for _ in range(40):
            columns = read_vectors(store, "passages")
            rows = dict(zip(columns.keys.tolist(), columns.rows, strict=True))
            assert all(np.array_equal(rows[key], row) for key, row in expected.items())
        return 1

    with ThreadPoolExecutor(4) as pool:
        reading = [pool.submit(read, store) for store in (writer, reader, reader)]
        for number in range(8):
            add(writer, TWO)
            assert number < 8
        assert [done.result() for done in reading] == [1, 1, 1]
    assert_arrays_follow(reader)


def test_dead_rows_are_cleared_away_in_time(store: SqlStore, monkeypatch: pytest.MonkeyPatch, loads: list[str]) -> None:
    monkeypatch.setattr(mirror, "DEAD_LEAST", 4)
    add(store, *(Document(id=str(number), text="twelve signs") for number in range(12)))
    for number in range(11):
        remove(store, str(number))
        assert len(read_vectors(store, "passages").stored_keys) <= 12
        assert_arrays_follow(store)
    assert len(read_vectors(store, "passages").stored_keys) < 8
    assert find_file(store, "rows"), "files of earlier generations are gone"
    assert loads == []


def test_names_that_look_alike_do_not_share_files(store: SqlStore) -> None:
    names = ["a:b", "a_b", "a/b", "a.b", "a.b.c", "A:B", "../a", "*", "a%3Ab"]
    add(store, ONE)
    keys = np.array(store.node_keys("passages"))
    for number, name in enumerate(names):
        with store.write() as change:
            change.put_edges(name, keys[:1], keys[1:2], np.array([float(number)]))
    assert [read_edges(store, name).rows[0, 2] for name in names] == list(range(len(names)))
    assert all(path.parent == store.cache_folder for path in store.cache_folder.rglob("*"))
