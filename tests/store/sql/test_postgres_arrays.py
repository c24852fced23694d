"""Arrays of a tome in PostgreSQL follow what other machines change, and read no more than that."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.postgres_server import Server, run_sql
from tests.store.conftest import OpenStore
from tests.store.contract import add, assert_arrays_follow, remove, vectors_of

from tomewise.errors import StoreError
from tomewise.store.lookups import read_edges, read_vectors
from tomewise.store.sql import postgres_arrays, postgres_rows
from tomewise.store.sql.mirror import Mirror
from tomewise.store.sql.row_values import Misfit
from tomewise.store.sql.sql_store import SqlStore
from tomewise.types import Document

TEXTS = ["the harbour lay in fog", "a dog sat on the mat", "Ada sold the lamp 潮", "tide and rope"]


@pytest.fixture
def here(make: OpenStore) -> SqlStore:
    """A tome with some documents, as one machine has it open."""
    store = make("shared", machine="here")
    add(store, *(Document(id=f"d{number}", text=text) for number, text in enumerate(TEXTS)))
    return store


@pytest.fixture
def there(here: SqlStore, make: OpenStore) -> SqlStore:
    """The same tome on another machine, which has read its arrays."""
    store = make("shared", machine="there")
    assert_arrays_follow(store)
    return store


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


def check_follows(store: SqlStore) -> None:
    """Arrays and words are those of the database."""
    assert_arrays_follow(store)
    texts = [passage.text for passage in store.passages().values()]
    assert len(store.lexical("tide lamp fog", 99)) == sum(any(w in t for w in ("tide", "lamp", "fog")) for t in texts)


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=CHANGES)
def test_any_changes_elsewhere_are_followed(
    changes: list[tuple[str, int, int]], here: SqlStore, there: SqlStore, loads: list[str]
) -> None:
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
            check_follows(there)
        else:
            here, there = there, here
    for store in (here, there):
        check_follows(store)
    assert loads == [], "nothing was read whole"


def test_a_fresh_process_follows_too(here: SqlStore, there: SqlStore, make: OpenStore, loads: list[str]) -> None:
    there.close()
    add(here, Document(id="more", text="fog and fog"))
    loads.clear()
    again = make("shared", machine="there")
    assert_arrays_follow(again)
    assert isinstance(read_vectors(again, "passages").stored_rows.base, np.memmap), "its files were brought up to date"
    assert loads == []


def test_what_cannot_be_written_is_followed_in_memory(
    here: SqlStore, there: SqlStore, loads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
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
    here: SqlStore, there: SqlStore, database: str, loads: list[str], lost: str
) -> None:
    add(here, Document(id="more", text="fog and fog"))
    run_sql(database, "UPDATE shared.versions SET version = version + 1" if lost == "version"
            else "DELETE FROM shared.versions")  # fmt: skip
    loads.clear()
    assert_arrays_follow(there)
    assert "vectors/passages" in loads


def test_a_database_that_was_restored_is_read_anew(
    here: SqlStore, there: SqlStore, database: str, postgres_server: Server
) -> None:
    """It gives the keys and steps of what was lost again, to other rows."""
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
    here: SqlStore, there: SqlStore, database: str, loads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_rows, "MOST_VERSIONS", 3)
    monkeypatch.setattr(postgres_rows, "FORGET_EVERY", 1)
    for number in range(12):
        add(here, Document(id="d0", text=f"{number} in fog"))
    counts = run_sql(database, "SELECT count(*) FROM shared.versions GROUP BY space")
    assert max(count for (count,) in counts) == 3
    oldest = "(SELECT min(step) FROM shared.versions WHERE versions.space = gone.space)"
    assert run_sql(database, f"SELECT count(*) FROM shared.gone WHERE step <= {oldest}") == [(0,)], "the others"
    loads.clear()
    assert_arrays_follow(there)
    assert "vectors/passages" in loads
    add(here, Document(id="d0", text="at last in fog"))
    loads.clear()
    assert_arrays_follow(there)
    assert loads == []


def test_a_large_change_leaves_no_marks_and_is_read_anew(
    here: SqlStore, there: SqlStore, database: str, loads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_rows, "MOST_MARKS", 9)
    monkeypatch.setattr(postgres_rows, "FORGET_EVERY", 1)
    marks = "SELECT count(*) FROM shared.gone WHERE space = "
    for number in range(4):
        change_weights(here, number / 10)
        assert run_sql(database, f"{marks} 'edges/self:words'") == [(0,)]
    for number in range(8):
        change_vectors(here, str(number))
        assert run_sql(database, f"{marks} 'vectors/passages'") <= [(9,)]
    loads.clear()
    assert_arrays_follow(there)
    assert loads == ["edges/self:words"]


def test_a_step_that_is_rolled_back_is_not_seen(
    here: SqlStore, make: OpenStore, loads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files were changed by then."""

    def fail(*_: object) -> None:
        raise RuntimeError("the server is gone")

    assert_arrays_follow(here)
    with monkeypatch.context() as patch:
        patch.setattr(postgres_rows.PostgresTransaction, "record_step", fail)
        with pytest.raises(RuntimeError, match="the server is gone"):
            remove(here, "d0")
    loads.clear()
    assert_arrays_follow(here)
    add(here, Document(id="more", text="fog"))
    assert_arrays_follow(here)
    assert_arrays_follow(make("shared", machine="here"))
    assert "vectors/passages" not in loads, "its files are those of the tome again"


@pytest.mark.parametrize("table", ["vectors", "edges"])
def test_rows_that_do_not_fit_are_damage(here: SqlStore, there: SqlStore, database: str, table: str) -> None:
    add(here, Document(id="more", text="fog and fog"))
    with here.read() as transaction:
        step = transaction.run("SELECT step FROM tomewise").scalar()
    wrong = {"vectors": "vector = vector || '\\x00000000'", "edges": "a = 999999"}[table]
    last = f"(SELECT max(key) FROM shared.{table} WHERE step = {step})"
    run_sql(database, f"UPDATE shared.{table} SET {wrong} WHERE key = {last}")
    with pytest.raises(StoreError, match=f"the row .* of the table {table}") as caught:
        assert_arrays_follow(there)
    assert isinstance(caught.value.__cause__, Misfit)


def test_many_rows_travel_whole(here: SqlStore, there: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over the bounds of pages and of what is sent at a time, and with equal edges among them."""
    monkeypatch.setattr(postgres_arrays, "PAGE_BYTES", 200)
    monkeypatch.setattr(postgres_arrays, "WRITE_BYTES", 500)
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
