"""Searches find what a plain comparison finds, with packed copies of vectors and without; copies are kept whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba  # noqa: F401  (packed rows are used where it is loaded)
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.store.conftest import OpenStore
from tests.store.contract import DIMENSIONS, cut_passages, vectors_of

from tomewise.store import int8_rows
from tomewise.store.lookups import read_vectors
from tomewise.store.nearest import DECIMALS, Nearest
from tomewise.store.records import SETTINGS
from tomewise.store.sql import arrays, spaces
from tomewise.store.sql.mirror import Mirror
from tomewise.store.sql.sql_store import SqlStore
from tomewise.types import Document

SPACE = "passages"
QUERY = np.ones(DIMENSIONS, np.float32)


@pytest.fixture(autouse=True)
def pack_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(int8_rows, "LEAST_ROWS", 1)
    monkeypatch.setattr(spaces, "CANDIDATE_SHARE", 2.0)


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


def search_plainly(store: SqlStore, query: Any, limit: int) -> Nearest:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrays, "are_worth_packing", lambda count: False)
        return store.nearest(SPACE, query, limit)


def list_files(store: SqlStore, ending: str) -> list[Path]:
    return sorted(store.cache_folder.glob(f"packed%2Fpassages*{ending}"))


@pytest.fixture(scope="module")
def one_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlStore]:
    store = SqlStore.open(tmp_path_factory.mktemp("packed") / "a.tome")
    yield store
    store.close()


vectors = st.lists(
    st.lists(st.sampled_from([0.0, 0.25, -0.5, 1.0]), min_size=DIMENSIONS, max_size=DIMENSIONS), min_size=1, max_size=9
)


@settings(max_examples=35, deadline=None)
@given(vectors, vectors, st.integers(0, 12), st.booleans(), st.data())
def test_searches_find_what_a_plain_comparison_finds(
    one_store: SqlStore,
    rows: list[list[float]],
    queries: list[list[float]],
    limit: int,
    is_packed: bool,
    data: st.DataObject,
) -> None:
    store = one_store
    for name in ("one", "two"):
        remove(store, name)
    add(store, "one", np.array(rows, np.float32), count=len(rows))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrays, "are_worth_packing", lambda count: is_packed)
        store.nearest(SPACE, np.array(queries[0], np.float32), 1)  # makes the copy, which the next document extends
        add(store, "two", np.array(queries, np.float32), count=len(queries))
        if data.draw(st.booleans()):
            remove(store, "one")
        if data.draw(st.booleans()):  # so that a key has dead rows and a live one
            with store.write() as change:
                keys = store.node_keys(SPACE)[:2]
                change.put_vectors(SPACE, keys, np.array(rows + queries, np.float32)[-len(keys) :], replace=True)
        table = read_vectors(store, SPACE)
        among = data.draw(st.none() | st.lists(st.sampled_from(table.keys.tolist()), unique=True).map(sorted))
        among_keys = None if among is None else np.array(among, np.int64)
        is_wanted = np.ones(len(table.keys), bool) if among is None else np.isin(table.keys, among)
        keys, products = table.keys[is_wanted], table.rows[is_wanted] @ np.array(queries, np.float32).T
        asked = np.array(queries, np.float32)
        for query, cosines in ((asked[0], products[:, 0]), (asked, products.max(axis=1))):
            found = store.nearest(SPACE, query, limit, among=among_keys)
            least = np.sort(cosines)[-limit:][:1] if limit else np.inf
            best = cosines >= least if len(cosines) else np.zeros(0, bool)
            assert order(found) == order(Nearest(keys[best], cosines[best], 0.0))
            assert found.lowest == pytest.approx(cosines.min() if len(cosines) else 0.0, abs=1e-6)
        found_keys, scores = store.scores(SPACE, asked[0], among=among_keys)
        assert (found_keys.tolist(), scores.tolist()) == (keys.tolist(), products[:, 0].tolist())
        close = store.alike(SPACE, asked, 0.5)
        whole = table.rows @ asked.T
        expected = {(new, table.keys[row], whole[row, new]) for row, new in np.argwhere(whole >= 0.5).tolist()}
        assert set(zip(close.new, close.neighbours, close.cosines, strict=True)) == expected


def test_a_search_packs_once_and_later_changes_alone(open_store: OpenStore, packings: list[int]) -> None:
    store = open_store("a.tome")
    add(store, "one")
    assert (list_files(store, "rows"), packings) == ([], []), "nothing is packed before a search"
    for _ in range(2):
        store.nearest(SPACE, QUERY, 3)
    assert packings == [40]
    packings.clear()
    add(store, "two", count=3)
    remove(store, "one")
    again = open_store("a.tome")
    assert order(again.nearest(SPACE, QUERY, 2)) == order(search_plainly(store, QUERY, 2))
    assert packings == [3]


def check_repair(open_store: OpenStore, packings: list[int]) -> None:
    """The next reader makes the copy again, and the one after finds it whole."""
    packings.clear()
    for _ in range(2):
        again = open_store("a.tome")
        assert order(again.nearest(SPACE, QUERY, 3)) == order(search_plainly(again, QUERY, 3))
        assert packings == [40]


def overwrite(ending: str) -> Callable[[SqlStore], None]:
    def damage(store: SqlStore) -> None:
        path = list_files(store, ending)[0]
        path.write_bytes(bytes(path.stat().st_size))

    return damage


def forge(store: SqlStore, change: Callable[[NDArray[np.int8]], None]) -> None:
    """Write packed rows as a stranger may: with checksums that are right."""
    found = read_vectors(store, SPACE)
    packed = int8_rows.pack_rows(found.rows)
    change(packed)
    mirror = Mirror(store.dialect.cache, f"packed/{SPACE}", store.note(SETTINGS, "identity"), np.dtype(np.int8))
    mirror.write(found.version, found.keys, packed)


def set_words(word: float) -> Callable[[SqlStore], None]:
    def change(packed: NDArray[np.int8]) -> None:
        packed[5, -12:] = np.full(3, word, np.float32).view(np.int8)

    return lambda store: forge(store, change)


@pytest.mark.parametrize(
    "damage",
    [*map(overwrite, ("rows", "keys", "json")), *map(set_words, (np.nan, np.inf, -1.0))],
    ids=["rows", "keys", "header", "no number", "infinite", "negative"],
)
def test_a_damaged_copy_is_made_again(
    open_store: OpenStore, damage: Callable[[SqlStore], None], packings: list[int]
) -> None:
    store = open_store("a.tome")
    add(store, "one")
    store.nearest(SPACE, QUERY, 3)
    damage(store)
    check_repair(open_store, packings)


def test_who_looks_for_damage_finds_a_wrong_copy(open_store: OpenStore) -> None:
    store = open_store("a.tome")
    add(store, "one")
    forge(store, lambda packed: packed[5].fill(0))  # with bounds that are possible, and wrong
    again = open_store("a.tome")
    again.nearest(SPACE, QUERY, 3)
    assert "held arrays of something else" in again.find_damage()
    assert order(again.nearest(SPACE, QUERY, 3)) == order(search_plainly(again, QUERY, 3))
    assert again.find_damage() == ""


def test_a_full_disk_is_tried_once(store: SqlStore, packings: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    add(store, "one")
    expected = order(search_plainly(store, QUERY, 3))

    def fail(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(Mirror, "write", fail)
    assert [order(store.nearest(SPACE, QUERY, 3)) for _ in range(2)] == [expected, expected]
    assert packings == [40]


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
    rounding = random.uniform(-1, 1, 400) * float(int8_rows.bound_rounding(query)) / 2
    monkeypatch.setattr(spaces, "CANDIDATE_SHARE", 1.0)
    monkeypatch.setattr(
        spaces, "multiply_rows", lambda rows, query: (rows @ query + rounding[: len(rows)]).astype(np.float32)
    )
    add(store, "one", rows, count=400)
    plain, packed = search_plainly(store, query, limit), store.nearest(SPACE, query, limit)
    exact = (rows.astype(np.float64) @ query.astype(np.float64)).astype(np.float32)
    assert order(plain) == order(packed)
    assert plain.keys.tolist() == packed.keys.tolist()
    assert plain.lowest == packed.lowest == exact.min()
