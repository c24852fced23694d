"""Packed copies of vectors: searches find what they find without them, and the files are made and kept like others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numba  # noqa: F401  (packed rows are used where it is loaded)
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.store.contract import DIMENSIONS, MakeStore, cut_passages, vectors_of

from tomewise.store import int8_rows
from tomewise.store.lookups import read_vectors
from tomewise.store.nearest import DECIMALS, Nearest
from tomewise.store.records import SETTINGS
from tomewise.store.sql import arrays, spaces
from tomewise.store.sql.sql_store import SqlStore
from tomewise.types import Document

SPACE = "passages"


@pytest.fixture(autouse=True)
def pack_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(int8_rows, "_LEAST_ROWS", 1)
    monkeypatch.setattr(spaces, "_CANDIDATE_SHARE", 2.0)


@pytest.fixture
def packings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows were packed, each time that rows were."""
    seen: list[int] = []

    def pack(*given_rows: Any) -> NDArray[np.int8]:
        packed = int8_rows.pack_rows(*given_rows)
        if len(packed):
            seen.append(len(packed))
        return packed

    monkeypatch.setattr(arrays, "pack_rows", pack)
    return seen


def add(store: SqlStore, name: str, rows: Any = None, *, count: int = 40) -> None:
    """Add a document of passages with these vectors, or with some."""
    document = Document(id=name, text="".join(f"{name} {place:9}"[:12].ljust(12) for place in range(count)))
    passages = cut_passages(document)
    with store.write() as change:
        change.put_note(SETTINGS, "dimensions", str(DIMENSIONS))
        keys = change.put_document(document, document.text, passages)
        texts = [passage.text for passage in passages]
        change.put_vectors(SPACE, keys, vectors_of(texts) if rows is None else rows)


def remove(store: SqlStore, name: str) -> None:
    with store.write() as change:
        change.remove_document(name)


def order(found: Nearest) -> list[tuple[float, int]]:
    pairs = zip(found.cosines.tolist(), found.keys.tolist(), strict=True)
    return sorted((-round(cosine, DECIMALS), key) for cosine, key in pairs)


def search_plainly(store: SqlStore, query: Any, limit: int, among: Any = None) -> Nearest:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrays, "are_worth_packing", lambda count: False)
        return store.nearest(SPACE, query, limit, among=among)


def files(store: SqlStore, ending: str) -> list[Path]:
    return sorted(store.cache_folder.glob(f"packed%2Fpassages*{ending}"))


@pytest.fixture(scope="module")
def one_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlStore]:
    store = SqlStore.open(tmp_path_factory.mktemp("packed") / "a.tome")
    yield store
    store.close()


vectors = st.lists(
    st.lists(st.sampled_from([0.0, 0.25, -0.5, 1.0]), min_size=DIMENSIONS, max_size=DIMENSIONS), min_size=1, max_size=9
)


@settings(max_examples=60, deadline=None)
@given(vectors, vectors, st.integers(0, 12), st.data())
def test_searches_find_what_they_find_without_packed_rows(
    one_store: SqlStore, rows: list[list[float]], queries: list[list[float]], limit: int, data: st.DataObject
) -> None:
    store = one_store
    for name in ("one", "two"):
        remove(store, name)
    add(store, "one", np.array(rows, np.float32), count=len(rows))
    store.nearest(SPACE, np.array(queries[0], np.float32), 1)  # makes the copy, which the next document extends
    add(store, "two", np.array(queries, np.float32), count=len(queries))
    if data.draw(st.booleans()):
        remove(store, "one")
    keys = read_vectors(store, SPACE).keys
    among = data.draw(st.none() | st.lists(st.sampled_from(keys.tolist()), unique=True).map(sorted))
    asked = np.array(queries, np.float32)
    for query in (asked[0], asked):
        among_keys = None if among is None else np.array(among, np.int64)
        expected, found = (
            search_plainly(store, query, limit, among_keys),
            store.nearest(SPACE, query, limit, among=among_keys),
        )
        assert order(found) == order(expected)
        assert found.lowest == pytest.approx(expected.lowest, abs=1e-6)
    close = store.alike(SPACE, asked, 0.5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrays, "are_worth_packing", lambda count: False)
        plain = store.alike(SPACE, asked, 0.5)
    assert set(zip(close.new, close.neighbours, close.cosines, strict=True)) == set(
        zip(plain.new, plain.neighbours, plain.cosines, strict=True)
    )


def test_a_search_packs_once_and_later_changes_alone(open_store: MakeStore, packings: list[int]) -> None:
    store = open_store("a.tome")  # type: ignore[call-arg]
    add(store, "one")
    query = np.ones(DIMENSIONS, np.float32)
    assert not files(store, "rows"), "nothing is packed before a search"
    packings.clear()
    store.nearest(SPACE, query, 3)
    store.nearest(SPACE, query, 3)
    assert packings == [40]
    packings.clear()
    add(store, "two", count=3)
    remove(store, "one")
    again = open_store("a.tome")  # type: ignore[call-arg]
    assert order(again.nearest(SPACE, query, 2)) == order(search_plainly(store, query, 2))
    assert packings == [3]
    found = again._arrays.find_packed(f"vectors/{SPACE}", read_vectors(again, SPACE))  # type: ignore[arg-type]
    assert found is not None
    assert isinstance(found.stored_rows.base, np.memmap)


@pytest.mark.parametrize("ending", ["rows", "keys", "json"])
def test_a_damaged_copy_is_made_again(open_store: MakeStore, ending: str, packings: list[int]) -> None:
    store = open_store("a.tome")  # type: ignore[call-arg]
    add(store, "one")
    query = np.ones(DIMENSIONS, np.float32)
    expected = order(store.nearest(SPACE, query, 3))
    path = files(store, ending)[0]
    path.write_bytes(bytes(path.stat().st_size))
    packings.clear()
    assert order(open_store("a.tome").nearest(SPACE, query, 3)) == expected  # type: ignore[call-arg]
    assert packings == [40]
    assert order(open_store("a.tome").nearest(SPACE, query, 3)) == expected  # type: ignore[call-arg]
    assert packings == [40], "the next reader finds it whole"


def test_where_no_copy_can_be_written_all_rows_are_read(store: SqlStore, packings: list[int]) -> None:
    add(store, "one")
    query = np.ones(DIMENSIONS, np.float32)
    read_vectors(store, SPACE)
    reader = SqlStore.open(store.path, read_only=True)
    assert order(reader.nearest(SPACE, query, 3)) == order(search_plainly(store, query, 3))
    reader.close()
    assert not files(store, "rows")
    assert packings == []


def test_a_full_disk_is_tried_once(store: SqlStore, packings: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    add(store, "one")
    query = np.ones(DIMENSIONS, np.float32)
    expected = order(search_plainly(store, query, 3))

    def fail(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(arrays.Mirror, "write", fail)
    packings.clear()
    assert [order(store.nearest(SPACE, query, 3)) for _ in range(2)] == [expected, expected]
    assert packings == [40]


def test_nothing_is_packed_where_there_is_no_copy(store: SqlStore, packings: list[int]) -> None:
    add(store, "one")
    add(store, "two")
    assert packings == []


def test_a_copy_that_cannot_be_written_leaves_the_vectors_to_be_written(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(store, "one")
    store.nearest(SPACE, np.ones(DIMENSIONS, np.float32), 3)
    apply = arrays.Mirror.apply

    def fail(mirror: arrays.Mirror, *change: Any) -> bool:
        if mirror._stem.startswith("packed"):
            raise OSError("no space left on device")
        return apply(mirror, *change)

    monkeypatch.setattr(arrays.Mirror, "apply", fail)
    add(store, "two")
    version = store.versions([f"vectors/{SPACE}"])[f"vectors/{SPACE}"]
    assert store._arrays._make_mirror(f"vectors/{SPACE}").has(version)
    assert not store._arrays._make_mirror(f"packed/{SPACE}").has(version)


def test_a_tome_to_be_read_alone_is_asked_once_to_write_a_copy(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(store, "one")
    reader = SqlStore.open(store.path, read_only=True)
    packed: list[str] = []
    pack = arrays.Arrays._pack
    monkeypatch.setattr(
        arrays.Arrays, "_pack", lambda self, space, found: packed.append(space) or pack(self, space, found)
    )
    for _ in range(2):
        reader.nearest(SPACE, np.ones(DIMENSIONS, np.float32), 3)
    reader.close()
    assert packed == [f"vectors/{SPACE}"]


def forge(store: SqlStore, rows: NDArray[np.int8]) -> None:
    """Write packed rows as a stranger may: with checksums that are right."""
    found = read_vectors(store, SPACE)
    store._arrays._make_mirror(f"packed/{SPACE}").write(found.version, found.keys, rows)


@pytest.mark.parametrize("word", [np.nan, np.inf, -1.0])
def test_a_copy_whose_numbers_give_no_bounds_is_made_again(
    open_store: MakeStore, word: float, packings: list[int]
) -> None:
    store = open_store("a.tome")  # type: ignore[call-arg]
    add(store, "one")
    query = np.ones(DIMENSIONS, np.float32)
    packed = int8_rows.pack_rows(read_vectors(store, SPACE).rows)
    packed[5, -12:] = np.full(3, word, np.float32).view(np.int8)
    forge(store, packed)  # type: ignore[arg-type]
    packings.clear()
    again = open_store("a.tome")  # type: ignore[call-arg]
    assert order(again.nearest(SPACE, query, 3)) == order(search_plainly(store, query, 3))  # type: ignore[arg-type]
    assert packings == [40]


def test_bounds_that_are_no_numbers_rule_out_nothing() -> None:
    lower, upper = np.zeros(50, np.float32), np.ones(50, np.float32)
    lower[3] = upper[3] = np.nan
    assert int8_rows.find_candidates((lower, upper), 2).tolist() == list(range(50))


def test_who_looks_for_damage_finds_a_wrong_copy(open_store: MakeStore) -> None:
    store = open_store("a.tome")  # type: ignore[call-arg]
    add(store, "one")
    packed = int8_rows.pack_rows(read_vectors(store, SPACE).rows)
    packed[5] = 0  # with bounds that are possible, and wrong
    forge(store, packed)  # type: ignore[arg-type]
    query = np.ones(DIMENSIONS, np.float32)
    again = open_store("a.tome")  # type: ignore[call-arg]
    again.nearest(SPACE, query, 3)
    assert "held arrays of something else" in again.find_damage()
    assert order(again.nearest(SPACE, query, 3)) == order(search_plainly(again, query, 3))  # type: ignore[arg-type]
    assert again.find_damage() == ""


def test_who_looks_for_damage_deletes_what_was_kept(store: SqlStore) -> None:
    add(store, "one")
    versions = store.versions([f"vectors/{SPACE}"])
    store.keep("walk", versions, np.ones(9, np.int8))
    assert store.find_kept("walk", versions) is not None
    assert store.find_damage() == ""
    assert store.find_kept("walk", versions) is None
    assert not list(store.cache_folder.glob("kept*"))


@pytest.mark.parametrize("limit", [1, 5])
def test_the_best_are_the_same_without_packed_rows_at_the_edge_of_a_tie(
    store: SqlStore, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cosines around the width of a tie apart: products in float32 round some of them to the other side."""
    random = np.random.default_rng(7)
    query = random.standard_normal(DIMENSIONS).astype(np.float32)
    query /= np.linalg.norm(query)
    rows = query + random.standard_normal((400, DIMENSIONS)).astype(np.float32) * np.float32(3e-4)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rows[40:] = random.standard_normal((360, DIMENSIONS))
    rows[40:] /= np.linalg.norm(rows[40:], axis=1, keepdims=True)
    monkeypatch.setattr(spaces, "_CANDIDATE_SHARE", 1.0)
    monkeypatch.setattr(
        spaces, "_multiply", lambda rows, query: (rows @ query + rounding[: len(rows)]).astype(np.float32)
    )
    add(store, "one", rows, count=400)
    rounding = random.uniform(-1, 1, 400) * float(int8_rows.bound_rounding(query)) / 2
    plain, packed = search_plainly(store, query, limit), store.nearest(SPACE, query, limit)
    exact = (rows.astype(np.float64) @ query.astype(np.float64)).astype(np.float32)
    assert order(plain) == order(packed)
    assert plain.keys.tolist() == packed.keys.tolist()
    assert plain.lowest == packed.lowest == exact.min()
