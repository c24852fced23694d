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
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.patience import SOON
from tests.store.contract import DIMENSIONS, MakeStore, add, assert_arrays_follow, remove, vectors_of

from tomewise.beside import FolderBeside
from tomewise.store.lookups import read_edges, read_vectors
from tomewise.store.records import SETTINGS
from tomewise.store.sql import mirror
from tomewise.store.sql.mirror import Changes, Columns, Delta, Mirror
from tomewise.store.sql.sql_store import SqlStore
from tomewise.types import Document, Node

ONE = Document(id="one", text="a cat sat on a mat and slept")
TWO = Document(id="two", text="a dog sat on the cat")


def folder_in(place: Path) -> FolderBeside:
    """The folder of the caches of a tome at that place."""
    place.joinpath("a.tome").touch()
    return FolderBeside(place / "a.tome", "-cache", mirror.FILE_NAMES)


def files(store: SqlStore, ending: str) -> list[Path]:
    return sorted(store.cache_folder.glob(f"vectors%2Fpassages*{ending}"))


def is_mapped(rows: np.ndarray) -> bool:
    return isinstance(rows.base, np.memmap)


def test_a_fresh_process_maps_the_files(open_store: MakeStore, loads: list[str]) -> None:
    store = open_store("test.tome")
    add(store, ONE, TWO)
    remove(store, "one")
    again = open_store("test.tome")
    assert_arrays_follow(again)
    assert is_mapped(read_vectors(again, "passages").stored_rows)
    assert loads == []


def test_warm_arrays_are_kept(store: SqlStore) -> None:
    add(store, ONE)
    assert read_vectors(store, "passages") is read_vectors(store, "passages")


def test_an_empty_space_is_empty(store: SqlStore) -> None:
    assert read_vectors(store, "passages").rows.shape == (0, 0)
    assert read_edges(store, "none").rows.shape == (0, 3)
    add(store, ONE)
    assert read_vectors(store, "none").rows.shape == (0, DIMENSIONS)
    with store.write() as change:
        change.put_note(SETTINGS, "dimensions", "")
    assert read_vectors(store, "none either").rows.shape == (0, DIMENSIONS), "as wide as any other"
    assert store.versions(["vectors/none", "edges/none"]) == {"vectors/none": 0, "edges/none": 0}
    remove(store, "one")
    assert read_vectors(store, "passages").rows.shape == (0, DIMENSIONS)
    assert read_edges(store, "seen-in:words").rows.shape == (0, 3)


def header_of(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_bytes().split(b"\n")[0]))


def delete_folder(store: SqlStore) -> None:
    shutil.rmtree(store.cache_folder)


def delete_rows(store: SqlStore) -> None:
    files(store, "rows")[0].unlink()


def cut_rows(store: SqlStore) -> None:
    path = files(store, "rows")[0]
    path.write_bytes(path.read_bytes()[:-5])


def zero_rows(store: SqlStore) -> None:
    path = files(store, "rows")[0]
    path.write_bytes(bytes(path.stat().st_size))


def flip_a_key(store: SqlStore) -> None:
    path = files(store, "keys")[0]
    path.write_bytes(b"\x63" + path.read_bytes()[1:])


def empty_header(store: SqlStore) -> None:
    files(store, "json")[0].write_text("")


def odd_header(store: SqlStore) -> None:
    files(store, "json")[0].write_bytes(mirror.encode_header(["no", "header"]))  # type: ignore[arg-type]


def torn_header(store: SqlStore) -> None:
    path = files(store, "json")[0]
    path.write_bytes(path.read_bytes().replace(b'"width": 4', b'"width": 2'))


def poor_header(store: SqlStore) -> None:
    path = files(store, "json")[0]
    header = header_of(path)
    del header["parts"]["keys"]["size"]
    path.write_bytes(mirror.encode_header(header))


def another_tome(store: SqlStore) -> None:
    path = files(store, "json")[0]
    path.write_bytes(mirror.encode_header({**header_of(path), "tome": "another"}))


def another_version(store: SqlStore) -> None:
    path = files(store, "json")[0]
    path.write_bytes(mirror.encode_header({**header_of(path), "version": 7}))


DAMAGES = [
    delete_folder,
    delete_rows,
    cut_rows,
    zero_rows,
    flip_a_key,
    empty_header,
    odd_header,
    torn_header,
    poor_header,
    another_tome,
    another_version,
]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_damaged_files_are_ignored_and_repaired(
    damage: Callable[[SqlStore], None], open_store: MakeStore, loads: list[str]
) -> None:
    store = open_store("test.tome")
    add(store, ONE)
    expected = read_vectors(store, "passages").rows.tolist()
    damage(store)
    again = open_store("test.tome")
    assert read_vectors(again, "passages").rows.tolist() == expected
    assert loads == ["vectors/passages"]
    third = open_store("test.tome")
    assert is_mapped(read_vectors(third, "passages").stored_rows), "the second reader finds them repaired"
    assert read_vectors(third, "passages").rows.tolist() == expected
    assert loads == ["vectors/passages"]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_damaged_files_do_not_stop_a_writer(damage: Callable[[SqlStore], None], open_store: MakeStore) -> None:
    store = open_store("test.tome")
    add(store, ONE)
    damage(store)
    add(store, TWO)
    remove(store, "one")
    assert_arrays_follow(store)
    assert_arrays_follow(open_store("test.tome"))


def test_bytes_that_a_killed_writer_left_behind_are_cut_off(open_store: MakeStore, loads: list[str]) -> None:
    store = open_store("test.tome")
    add(store, ONE)
    for ending in ("rows", "keys", "dead"):
        with files(store, ending)[0].open("ab") as file:
            file.write(b"half a row")
    add(store, TWO)
    assert_arrays_follow(open_store("test.tome"))
    assert loads == []


def test_a_writer_killed_before_its_commit(
    store: SqlStore, open_store: MakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(store, ONE)

    def stop_after_apply(*_: object) -> None:
        apply_deltas(*_)
        raise SystemExit("killed")

    apply_deltas = store._arrays.apply_deltas
    with monkeypatch.context() as patch:
        patch.setattr(store._arrays, "apply_deltas", stop_after_apply)
        with pytest.raises(SystemExit):
            add(store, TWO)
    assert [record.id for record in store.documents()] == ["one"]
    assert_arrays_follow(store)
    assert_arrays_follow(open_store("test.tome"))
    add(store, TWO)
    assert_arrays_follow(open_store("test.tome"))


def test_a_full_disk_breaks_the_files_but_not_the_transaction(
    store: SqlStore, open_store: MakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(store, ONE)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Mirror, "_append", full)
        add(store, TWO)
        assert_arrays_follow(store)
    assert_arrays_follow(open_store("test.tome"))


def test_files_of_a_later_state_are_ignored_after_a_copy_is_restored(store: SqlStore, open_store: MakeStore) -> None:
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


def test_another_store_on_the_file_sees_each_change(open_store: MakeStore, loads: list[str]) -> None:
    writer, reader = open_store("test.tome"), open_store("test.tome")
    for number in range(4):
        add(writer, Document(id=str(number), text=f"number {number} says so"))
        assert_arrays_follow(reader)
    columns = read_vectors(reader, "passages")
    rows = columns.rows.tolist()
    add(reader, ONE)
    remove(reader, "0")
    assert_arrays_follow(writer)
    assert columns.rows.tolist() == rows, "arrays that were read do not change"
    assert loads == []


def test_readers_and_a_writer_in_threads(open_store: MakeStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirror, "_DEAD_LEAST", 1)  # so that files are written again all the time
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


def test_reading_goes_on_during_a_long_transaction(store: SqlStore) -> None:
    add(store, ONE)
    with ThreadPoolExecutor(1) as pool, store.write() as change:
        change.remove_document("one")
        assert len(pool.submit(read_vectors, store, "passages").result(timeout=SOON).keys) == 3


def test_dead_rows_are_cleared_away_in_time(store: SqlStore, monkeypatch: pytest.MonkeyPatch, loads: list[str]) -> None:
    monkeypatch.setattr(mirror, "_DEAD_LEAST", 4)
    add(store, *(Document(id=str(number), text="twelve signs") for number in range(12)))
    for number in range(11):
        remove(store, str(number))
        assert len(read_vectors(store, "passages").stored_keys) <= 12
        assert_arrays_follow(store)
    assert len(read_vectors(store, "passages").stored_keys) < 8
    assert len(files(store, "rows")) == 1, "files of earlier generations are gone"
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


# ---------------------------------------------------------------- changes and columns


def test_columns_are_in_the_order_of_keys_and_without_the_dead() -> None:
    live = np.array([True, False, True, True])
    columns = Columns(1, np.array([5, 6, 9, 2]), np.arange(8.0).reshape(4, 2), live)
    assert columns.keys.tolist() == [2, 5, 9]
    assert columns.rows.tolist() == [[6, 7], [0, 1], [4, 5]]
    whole = Columns(1, np.array([5, 6]), np.ones((2, 2)))
    assert whole.rows is whole.stored_rows, "nothing is copied if that is not needed"


STEPS = st.lists(st.tuples(st.booleans(), st.sets(st.integers(0, 9), min_size=1)), max_size=6)


@settings(max_examples=60, deadline=None)
@given(st.lists(STEPS, max_size=5))
def test_a_mirror_holds_what_a_dictionary_would(tmp_path_factory: pytest.TempPathFactory, history: list[Any]) -> None:
    files = Mirror(folder_in(tmp_path_factory.mktemp("mirror")), "vectors/x", "tome", np.dtype(np.float32))
    files.write(1, np.empty(0, np.int64), np.empty((0, 1)))
    truth: dict[int, float] = {}
    value = 0.0
    for version, steps in enumerate(history, start=1):
        changes = Changes()
        for adds, keys in steps:
            if adds:
                fresh = sorted(keys - set(truth))
                value += 1
                changes.add(np.array(fresh, np.int64), np.full((len(fresh), 1), value, np.float32))
                truth |= dict.fromkeys(fresh, value)
            else:
                removed = sorted(keys & set(truth))
                changes.remove(removed)
                truth = {key: kept_value for key, kept_value in truth.items() if key not in removed}
        assert files.apply(changes.make_delta(), version, version + 1)
    columns = files.read(len(history) + 1)
    assert columns is not None
    assert dict(zip(columns.keys.tolist(), columns.rows[:, 0].tolist(), strict=True)) == truth
    assert files.read(len(history) + 2) is None


def test_a_mirror_follows_only_from_what_it_holds(tmp_path: Path) -> None:
    files = Mirror(folder_in(tmp_path), "vectors/x", "tome", np.dtype(np.float32))
    delta = Delta(np.array([1]), np.ones((1, 2)), np.empty(0, np.int64))
    assert not files.apply(delta, 3, 4)
    files.write(3, np.array([0]), np.zeros((1, 2)))
    assert not files.apply(delta, 4, 5)
    assert not files.apply(Delta(np.array([1]), np.ones((1, 3)), np.empty(0, np.int64)), 3, 4), "another width"
    assert files.apply(delta, 3, 4)
    assert Mirror(folder_in(tmp_path), "vectors/x", "other", np.dtype(np.float32)).read(4) is None


def test_vectors_may_be_replaced_under_their_keys(store: SqlStore, open_store: MakeStore) -> None:
    add(store, ONE)
    with store.write() as change:
        made = change.put_nodes([Node(id=f"e{n}", layer="e", text="", sources=()) for n in range(4)])
        keys = list(made.values())
        change.put_vectors("e", keys[::-1], vectors_of(["d", "c", "b", "a"]))
    with store.write() as change:
        change.put_vectors("e", keys[1:3], vectors_of(["new", "newer"]), replace=True)
    for opened in (store, open_store("test.tome")):
        assert read_vectors(opened, "e").rows.tolist() == vectors_of(["a", "new", "newer", "d"]).tolist()
        assert_arrays_follow(opened)
    with pytest.raises(ValueError, match="one key for each"), store.write() as change:
        change.put_vectors("e", keys, vectors_of(["a"]))


def test_released_rows_are_read_again(tmp_path: Path) -> None:
    rows = np.arange(4096 * 256, dtype=np.float32).reshape(4096, 256)  # 4 MB
    files = Mirror(folder_in(tmp_path), "vectors/passages", "t", np.dtype(np.float32))
    files.write(1, np.arange(4096), rows)
    columns = files.read(1)
    assert columns is not None
    assert columns.stored_rows.sum() == rows.sum()
    (file,) = tmp_path.glob("*/*.rows")
    before = _read_mapped_kilobytes(file)
    columns.release_memory()
    assert _read_mapped_kilobytes(file) < before or before == 0  # 0: the system does not report it
    assert np.array_equal(columns.stored_rows, rows)
    Columns(1, np.arange(2), rows[:2]).release_memory()  # not mapped: stays


def _read_mapped_kilobytes(file: Path) -> int:
    """The kilobytes of the rows' file that are in this process's memory; 0 if the system does not report it."""
    try:
        lines = iter(Path("/proc/self/smaps").read_text().splitlines())
    except OSError:
        return 0
    for line in lines:
        if line.endswith(file.name):
            return next(int(more.split()[1]) for more in lines if more.startswith("Rss:"))
    return 0
