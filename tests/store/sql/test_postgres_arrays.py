"""Arrays of a tome in PostgreSQL follow what other machines change, and read no more than that."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.postgres_server import Server
from tests.store.contract import DIMENSIONS, add, assert_arrays_follow, remove, vectors_of

from tomewise.errors import StoreError
from tomewise.store import int8_rows
from tomewise.store.address import find_place
from tomewise.store.lookups import read_edges, read_vectors
from tomewise.store.records import SETTINGS
from tomewise.store.sql import postgres, postgres_arrays
from tomewise.store.sql.mirror import Mirror
from tomewise.store.sql.row_values import Misfit
from tomewise.store.sql.sql_store import SqlStore
from tomewise.types import Document

TEXTS = ["the harbour lay in fog", "a dog sat on the mat", "Ada sold the lamp 潮", "tide and rope"]


@pytest.fixture
def machines(database: str, tmp_path: Path) -> Iterator[Callable[[str, str], SqlStore]]:
    """A function that opens a tome as a machine does, which has a cache folder of its own."""
    opened: list[SqlStore] = []

    def open_as(machine: str, tome: str = "shared", **options: bool) -> SqlStore:
        before = os.environ["TOMEWISE_CACHE"]
        os.environ["TOMEWISE_CACHE"] = str(tmp_path / machine)
        try:
            opened.append(SqlStore.open(find_place(f"{database}#{tome}"), **options))
        finally:
            os.environ["TOMEWISE_CACHE"] = before
        return opened[-1]

    yield open_as
    for store in opened:
        store.close()


def fill(store: SqlStore) -> None:
    add(store, *(Document(id=f"d{number}", text=text) for number, text in enumerate(TEXTS)))


def run_sql(database: str, *statements: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def change_weights(store: SqlStore, weight: float) -> None:
    keys = sorted(read_edges(store, "self:words").rows[:, 0].astype(np.int64).tolist())
    at = np.array(keys, np.int64)
    with store.write() as change:
        change.put_edges("self:words", at, at, np.full(len(at), weight), replace=True)


def change_vectors(store: SqlStore, text: str) -> None:
    keys = read_vectors(store, "passages").keys.tolist()[:1]
    with store.write() as change:
        change.put_vectors("passages", keys, vectors_of([text] * len(keys)), replace=True)


CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["add", "remove", "weigh", "embed", "look", "swap"]), st.integers(0, 3), st.integers(1, 9)
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=CHANGES)
def test_any_changes_elsewhere_are_followed(
    changes: list[tuple[str, int, int]], machines: Callable[..., SqlStore], loads: list[str]
) -> None:
    name = f"h{len(loads)}x{os.urandom(4).hex()}"
    here, there = machines(f"{name}-here", name), machines(f"{name}-there", name)
    fill(here)
    assert_arrays_follow(there)
    loads.clear()
    for kind, document, number in changes:
        if kind == "add":
            add(here, Document(id=f"d{document}", text=f"{number} {TEXTS[document]}"))
        elif kind == "remove":
            remove(here, f"d{document}")
        elif kind == "weigh":
            change_weights(here, number / 10)
        elif kind == "embed":
            change_vectors(here, str(number))
        elif kind == "look":
            assert_arrays_follow(there)
        else:
            here, there = there, here
    for store in (here, there):
        assert_arrays_follow(store)
    assert loads == [], "nothing was read whole"


def test_a_fresh_process_follows_too(machines: Callable[..., SqlStore], loads: list[str]) -> None:
    here = machines("here")
    fill(here)
    machines("there").close()
    assert_arrays_follow(machines("there"))
    add(here, Document(id="more", text="fog and fog"))
    loads.clear()
    again = machines("there")
    assert_arrays_follow(again)
    assert isinstance(read_vectors(again, "passages").stored_rows.base, np.memmap), "its files were brought up to date"
    assert loads == []


def test_a_writer_that_lags_reads_nothing_whole(machines: Callable[..., SqlStore], loads: list[str]) -> None:
    here, there = machines("here"), machines("there")
    fill(here)
    assert_arrays_follow(there)
    add(here, Document(id="more", text="fog and fog"))
    loads.clear()
    add(there, Document(id="other", text="a lamp"))
    assert loads == []
    assert_arrays_follow(there)
    assert_arrays_follow(here)
    assert loads == []


def test_what_cannot_be_written_is_followed_in_memory(
    machines: Callable[..., SqlStore], loads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = machines("here"), machines("there")
    fill(here)
    assert_arrays_follow(there)

    def refuse(*_: object) -> bool:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Mirror, "apply", refuse)
    loads.clear()
    for number in range(3):
        add(here, Document(id=f"more{number}", text=f"fog {number} and fog"))
        remove(here, f"d{number}")
        assert_arrays_follow(there)
    assert loads == []


@pytest.mark.parametrize("lost", ["version", "step"])
def test_a_version_that_is_not_known_is_read_anew(
    machines: Callable[..., SqlStore], database: str, loads: list[str], lost: str
) -> None:
    here, there = machines("here"), machines("there")
    fill(here)
    assert_arrays_follow(there)
    add(here, Document(id="more", text="fog and fog"))
    run_sql(database, "UPDATE shared.versions SET version = version + 1" if lost == "version"
            else "DELETE FROM shared.versions")  # fmt: skip
    loads.clear()
    assert_arrays_follow(there)
    assert "vectors/passages" in loads


def test_a_database_that_was_restored_is_read_anew(
    machines: Callable[..., SqlStore], database: str, postgres_server: Server
) -> None:
    """It gives the keys and steps of what was lost again, to other rows."""
    here, there = machines("here"), machines("there")
    fill(here)
    backup, place = str(postgres_server.folder / "backup.sql"), ("-h", str(postgres_server.folder), "-U", "postgres")
    postgres_server.run("pg_dump", *place, "-n", "shared", "-f", backup, "postgres")
    for number in range(3):
        add(here, Document(id=f"lost{number}", text=f"lost {number} in fog"))
        assert_arrays_follow(there)
    run_sql(postgres_server.url, "DROP SCHEMA shared CASCADE")
    postgres_server.run("psql", *place, "-q", "-v", "ON_ERROR_STOP=1", "-f", backup, "postgres")
    for number in range(3):
        add(here, Document(id=f"new{number}", text=f"another {number} in sun"))
        for store in (here, there):
            assert_arrays_follow(store)
            assert len(store.lexical("sun", 9)) == number + 1


def test_old_versions_are_forgotten(
    machines: Callable[..., SqlStore], database: str, loads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_arrays, "_MOST_VERSIONS", 3)
    monkeypatch.setattr(postgres_arrays, "_FORGET_EVERY", 1)
    here, there = machines("here"), machines("there")
    fill(here)
    assert_arrays_follow(there)
    for number in range(12):
        add(here, Document(id="d0", text=f"{number} in fog"))
    with psycopg.connect(database) as connection:
        counts = connection.execute("SELECT count(*) FROM shared.versions GROUP BY space").fetchall()
        oldest = "(SELECT min(step) FROM shared.versions WHERE versions.space = gone.space)"
        useless = connection.execute(f"SELECT count(*) FROM shared.gone WHERE step <= {oldest}".encode()).fetchone()
    assert max(count for (count,) in counts) == 3
    assert useless == (0,)
    loads.clear()
    assert_arrays_follow(there)
    assert "vectors/passages" in loads
    add(here, Document(id="d0", text="at last in fog"))
    loads.clear()
    assert_arrays_follow(there)
    assert loads == []


def test_a_large_change_leaves_no_marks_and_is_read_anew(
    machines: Callable[..., SqlStore], database: str, loads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_arrays, "_MOST_MARKS", 9)
    monkeypatch.setattr(postgres_arrays, "_FORGET_EVERY", 1)
    here, there = machines("here"), machines("there")
    fill(here)
    assert_arrays_follow(there)
    with psycopg.connect(database, autocommit=True) as connection:
        for number in range(4):
            change_weights(here, number / 10)
            counts = connection.execute("SELECT count(*) FROM shared.gone WHERE space = 'edges/self:words'").fetchone()
            assert counts == (0,)
        for number in range(8):
            change_vectors(here, str(number))
            counts = connection.execute("SELECT count(*) FROM shared.gone WHERE space = 'vectors/passages'").fetchone()
            assert counts is not None
            assert counts[0] <= 9
    loads.clear()
    assert_arrays_follow(there)
    assert loads == ["edges/self:words"]


def test_vectors_of_another_width_are_read_anew(machines: Callable[..., SqlStore]) -> None:
    here, there = machines("here"), machines("there")
    fill(here)
    assert_arrays_follow(there)
    keys = read_vectors(here, "passages").keys.tolist()
    with here.write() as change:
        change.put_note(SETTINGS, "dimensions", "2")
        change.put_vectors("passages", keys, vectors_of([str(key) for key in keys])[:, :2], replace=True)
    for store in (here, there, machines("there")):
        assert_arrays_follow(store)


def test_two_processes_that_follow_write_the_files_once(
    machines: Callable[..., SqlStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there, beside = machines("here"), machines("there"), machines("there")
    fill(here)
    for store in (there, beside):
        assert_arrays_follow(store)
    written: list[int] = []
    write = Mirror.write
    monkeypatch.setattr(Mirror, "write", lambda self, *given: (written.append(1), write(self, *given))[1])
    with there.snapshot() as earlier:
        assert len(earlier.documents()) == 4
        add(here, Document(id="d0", text="another text in fog"))
        for store in (there, beside):
            assert_arrays_follow(store)
        assert len(earlier.arrays(["vectors/passages"])["vectors/passages"].keys) == 8
    assert not written
    assert_arrays_follow(machines("there"))


def test_packed_rows_follow(machines: Callable[..., SqlStore], monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    monkeypatch.setattr(int8_rows, "_LEAST_ROWS", 2)
    here, there = machines("here"), machines("there")
    fill(here)
    for number in range(3):
        add(here, Document(id=f"more{number}", text=f"fog {number} and fog"))
        query = np.ones(DIMENSIONS, np.float32)
        found = [store.nearest("passages", query, 3) for store in (here, there)]
        assert sorted(found[0].keys) == sorted(found[1].keys)
        assert not there.find_damage()


def test_a_step_that_is_rolled_back_is_not_seen(
    machines: Callable[..., SqlStore], loads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files were changed by then."""

    def fail(*_: object) -> None:
        raise RuntimeError("the server is gone")

    here = machines("here")
    fill(here)
    assert_arrays_follow(here)
    with monkeypatch.context() as patch:
        patch.setattr(postgres, "record_step", fail)
        with pytest.raises(RuntimeError, match="the server is gone"):
            remove(here, "d0")
    loads.clear()
    assert_arrays_follow(here)
    add(here, Document(id="more", text="fog"))
    assert_arrays_follow(here)
    assert_arrays_follow(machines("here"))
    assert "vectors/passages" not in loads, "its files are those of the tome again"


@pytest.mark.parametrize("table", ["vectors", "edges"])
def test_rows_that_do_not_fit_are_damage(machines: Callable[..., SqlStore], database: str, table: str) -> None:
    here, there = machines("here"), machines("there")
    fill(here)
    assert_arrays_follow(there)
    add(here, Document(id="more", text="fog and fog"))
    with here.read() as connection:
        step = connection.exec_driver_sql("SELECT step FROM tomewise").scalar()
    wrong = {"vectors": "vector = vector || '\\x00000000'", "edges": "a = 999999"}[table]
    last = f"(SELECT max(key) FROM shared.{table} WHERE step = {step})"
    run_sql(database, f"UPDATE shared.{table} SET {wrong} WHERE key = {last}")
    with pytest.raises(StoreError, match=f"the table {table} holds") as caught:
        assert_arrays_follow(there)
    assert isinstance(caught.value.__cause__, Misfit)


def test_many_rows_travel_whole(machines: Callable[..., SqlStore], monkeypatch: pytest.MonkeyPatch) -> None:
    """Over the bounds of pages and of what is sent at a time, and with equal edges among them."""
    monkeypatch.setattr(postgres_arrays, "_PAGE_BYTES", 200)
    monkeypatch.setattr(postgres_arrays, "_WRITE_BYTES", 500)
    here, there = machines("here"), machines("there")
    fill(here)
    keys = np.array(sorted(here.node_keys("words")), np.int64)
    pairs = np.stack(np.meshgrid(keys, keys), axis=-1).reshape(-1, 2)
    pairs = np.concatenate([pairs, pairs[::3]])
    weights = np.arange(len(pairs)) / 7
    with here.write() as change:
        change.put_edges("near:words", pairs[:, 0], pairs[:, 1], weights)
        change.put_edges("near:words", pairs[:, 0], pairs[:, 1], weights + 1)
        change.put_vectors("words", keys.tolist(), vectors_of([str(key) for key in keys]))
    for store in (here, there):
        assert_arrays_follow(store)
        found = read_edges(store, "near:words")
        assert len(found.keys) == len(keys) ** 2
        expected = dict(zip(map(tuple, pairs[::-1].tolist()), weights[::-1].tolist(), strict=True))
        assert {(int(a), int(b)): weight for a, b, weight in found.rows.tolist()} == expected
