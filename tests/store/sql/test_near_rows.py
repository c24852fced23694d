"""Search by pgvector finds what exact search finds, follows each commit, and never costs a build."""

from __future__ import annotations

import asyncio
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import numpy as np
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conftest import Ran
from tests.postgres_server import run_sql
from tests.store.conftest import OpenStore
from tests.store.contract import add, remove

from tomewise.store.address import find_tome_address
from tomewise.store.nearest import Nearest
from tomewise.store.records import SETTINGS
from tomewise.store.rights import WRITER, work_alone
from tomewise.store.sql import near_rows, near_search
from tomewise.store.sql.arrays import Arrays
from tomewise.store.sql.near_search import NearTable, round_to_half, write_literal
from tomewise.store.sql.sql_store import SqlStore
from tomewise.tome.open_store import copy_tome, delete_tome, move_tome
from tomewise.types import Document

WIDTH = 16
SPACE = "passages"
RNG = np.random.default_rng(7)
ROWS = RNG.standard_normal((4000, WIDTH)).astype(np.float32)
ROWS /= np.linalg.norm(ROWS, axis=1, keepdims=True)
QUERY, QUERIES = ROWS[0] * 0.5 + ROWS[1], ROWS[5:8] + ROWS[8:11]
AGAIN = "the next command that adds or removes makes it"


@pytest.fixture(scope="module")
def own_database(postgres: str) -> Iterator[str]:
    """A database of these tests: an extension is one of a database."""
    if not run_sql(postgres, "SELECT 1 FROM pg_available_extensions WHERE name = 'vector'"):
        pytest.skip("the server has no pgvector")
    run_sql(postgres, "DROP DATABASE IF EXISTS near_rows WITH (FORCE)", "CREATE DATABASE near_rows")
    yield urlunsplit(urlsplit(postgres)._replace(path="/near_rows")).replace("postgresql:/near", "postgresql:///near")
    run_sql(postgres, "DROP DATABASE near_rows WITH (FORCE)")


@pytest.fixture
def database(own_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The database with pgvector, and nothing else of another test."""
    monkeypatch.setenv("TOMEWISE_CACHE", str(tmp_path / "cache"))
    run_sql(own_database, "CREATE EXTENSION vector")
    yield own_database
    run_sql(own_database, "DROP EXTENSION IF EXISTS vector CASCADE")
    for (schema,) in run_sql(own_database, "SELECT quote_ident(nspname) FROM pg_namespace WHERE oid > 16383 "
                             "AND nspname !~ '^pg_'"):  # fmt: skip
        run_sql(own_database, f"DROP SCHEMA {schema} CASCADE")


@pytest.fixture(name="make")
def make_indexed(make: OpenStore) -> OpenStore:
    """A function that opens tomes by name; spaces of more than 50 vectors are searched by an index."""
    return lambda name=None, **options: make(name, **{"exact_rows": 50, **options})


@pytest.fixture
def store(make: OpenStore) -> SqlStore:
    return make("a")


@pytest.fixture(name="filled")
def fill_store(store: SqlStore) -> SqlStore:
    """A tome of 100 vectors, under the keys from 1."""
    put(store, ROWS[:100])
    return store


def put(store: SqlStore, rows: np.ndarray, first: int = 1, *, space: str = SPACE, replace: bool = False) -> None:
    with store.write() as change:
        change.put_note(SETTINGS, "dimensions", str(rows.shape[1]))
        change.put_vectors(space, np.arange(first, first + len(rows)), rows, replace=replace)


def find_table(store: SqlStore, space: str = SPACE) -> NearTable | None:
    near = store.dialect.near
    assert near is not None
    with store.read() as transaction:
        return near.find_table(transaction, space)


def assert_equal(found: Nearest, expected: Nearest) -> None:
    order, wanted = np.argsort(found.keys), np.argsort(expected.keys)
    assert found.keys[order].tolist() == expected.keys[wanted].tolist()
    assert np.allclose(found.cosines[order], expected.cosines[wanted], atol=1e-6)
    assert abs(found.lowest - expected.lowest) < 1e-5


def assert_follows(store: SqlStore, space: str = SPACE) -> None:
    """The table has the vectors of the space in float16, and is searched."""
    table = find_table(store, space)
    assert table is not None
    with store.read() as transaction:
        query = "SELECT key, vector FROM vectors WHERE space = %s ORDER BY key"
        stored = transaction.run(query, (space,)).all()
        kept = transaction.run(f"SELECT key, vector::text FROM {table.name} ORDER BY key").all()
    assert [key for key, _ in kept] == [key for key, _ in stored]
    assert table.rows == len(stored)
    halves = [round_to_half(np.frombuffer(vector, np.float32)) for _, vector in stored]
    assert np.array_equal(np.array([np.fromstring(text[1:-1], sep=",") for _, text in kept], np.float16), halves)


@pytest.mark.parametrize("limit", [1, 5, 40, 500])
@pytest.mark.parametrize("queries", [QUERY, QUERIES], ids=["one", "several"])
def test_finds_what_exact_search_finds(make: OpenStore, store: SqlStore, queries: np.ndarray, limit: int) -> None:
    put(store, np.concatenate((ROWS[:300], ROWS[:40])))  # some twice: they tie
    assert find_table(store) is not None
    found, expected = (each.nearest(SPACE, queries, limit) for each in (store, make("a", exact_rows=0)))
    assert_equal(found, expected) if queries.ndim == 1 else assert_equal(found, Nearest(
        expected.keys, expected.cosines, found.lowest))  # fmt: skip
    assert found.lowest - expected.lowest < 0.3


@pytest.mark.parametrize("few", [0, 10_000], ids=["index", "each row"])
def test_a_scope_is_searched_alone(make: OpenStore, store: SqlStore, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(near_search, "FEW_ROWS", few)
    exact = make("a", exact_rows=0)
    put(store, ROWS[:600])
    far = np.argsort(ROWS[:600] @ QUERY)[:30] + 1  # the rows that the index reaches last
    for among in (np.arange(1, 600, 3), np.sort(far), np.array([7]), np.array([9000]), np.empty(0, np.int64)):
        assert_equal(store.nearest(SPACE, QUERY, 10, among=among), exact.nearest(SPACE, QUERY, 10, among=among))


def test_more_ties_than_an_index_gives(store: SqlStore) -> None:
    put(store, np.concatenate((np.repeat(ROWS[:1], 300, axis=0), ROWS[1:100])))
    assert len(store.nearest(SPACE, ROWS[0], 5).keys) == 300


STEPS = st.lists(
    st.tuples(st.sampled_from(["add", "remove", "replace", "bulk"]), st.integers(1, 150), st.integers(1, 12)),
    min_size=1, max_size=6,
)  # fmt: skip


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_follows_any_changes(steps: list[tuple[str, int, int]], make: OpenStore) -> None:
    store = make()
    put(store, ROWS[:150])
    first = 1000
    for kind, at, count in steps:
        with store.write() as change:
            if kind == "remove":
                change.remove_nodes(range(at, at + count))
            elif kind == "replace":
                change.put_vectors(SPACE, np.arange(at, at + count), ROWS[at + 7 : at + 7 + count], replace=True)
            else:
                size = count if kind == "add" else 50 * count
                change.put_vectors(SPACE, np.arange(first, first + size), ROWS[:size])
                first += size
        assert_follows(store)


def test_tables_come_and_go_with_the_size(store: SqlStore, database: str) -> None:
    put(store, ROWS[:50])
    assert find_table(store) is None
    put(store, ROWS[50:60], 51)
    assert_follows(store)
    with store.write() as change:
        change.remove_nodes(range(1, 21))
    assert find_table(store) is None, "40 vectors are compared exactly"
    assert len(list_tables(database)) == 1
    with store.write() as change:
        change.remove_nodes(range(21, 40))
    assert list_tables(database) == []
    put(store, ROWS[100:200], 101)
    assert_follows(store)


def list_tables(database: str) -> list[str]:
    query = "SELECT relname FROM pg_class WHERE relname LIKE 'near\\_%' AND relkind = 'r' AND relname <> 'near_spaces'"
    return [str(name) for (name,) in run_sql(database, query)]


def test_an_index_is_made_once_after_a_load(store: SqlStore, database: str) -> None:
    with work_alone(store, "add"):
        for start in range(0, 200, 40):
            put(store, ROWS[start : start + 40], start + 1)
            assert list_tables(database) == []
    assert_follows(store)
    (table,) = list_tables(database)
    with work_alone(store, "add"):
        for start in range(200, 400, 20):
            put(store, ROWS[start : start + 20], start + 1)
            assert_follows(store)
    assert list_tables(database) == [table], "rows were added to the same index"


async def test_an_event_loop_does_not_wait_for_an_index(
    make: OpenStore, store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_go = threading.Event()
    make_index = store.dialect.tend_indexes
    monkeypatch.setattr(store.dialect, "tend_indexes", lambda: may_go.wait(60) and make_index())
    with work_alone(store, "add"):
        await asyncio.to_thread(put, store, ROWS[:100])
    assert find_table(store) is None
    may_go.set()
    await asyncio.to_thread(store.close)  # waits for it
    assert_follows(make("a"))


def test_several_spaces_and_tomes_are_apart(make: OpenStore) -> None:
    first, second = make("a"), make("b")
    put(first, ROWS[:100])
    put(first, ROWS[200:300], space="o'dd %s \" space")
    put(second, ROWS[100:200])
    for store, space, rows in ((first, SPACE, ROWS[:100]), (first, "o'dd %s \" space", ROWS[200:300]),
                               (second, SPACE, ROWS[100:200])):  # fmt: skip
        assert_follows(store, space)
        assert store.nearest(space, rows[3], 1).keys.tolist() == [4]
    search = first.describe_search()
    assert search is not None
    assert search.approximate == {SPACE: 100, "o'dd %s \" space": 100}


def test_the_index_is_used(make: OpenStore, store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    put(store, ROWS)
    table, half = find_table(store), round_to_half(QUERY)
    assert table is not None
    assert half is not None
    with store.read() as transaction:
        transaction.run("SET LOCAL enable_seqscan = off")
        query, values = table.write_query([write_literal(half)] * 2, 50, by_index=True)
        plan = "\n".join(transaction.run(f"EXPLAIN {query}", tuple(values)).scalars())
    assert plan.count(f"Index Scan using {table.name}_index") == 2, plan
    with monkeypatch.context() as patch:
        patch.setattr(Arrays, "columns", pytest.fail)  # arrays are not read
        found = store.nearest(SPACE, QUERY, 20)
    expected = make("a", exact_rows=0).nearest(SPACE, QUERY, 20)
    assert len(set(found.keys.tolist()) & set(expected.keys.tolist())) >= 19
    with store.read() as transaction:
        moment = table.search(transaction.driver, QUERY, 20, None)
        assert moment is not None
        assert_equal(moment, found)
        setting = transaction.run("SELECT current_setting('enable_seqscan')").scalar()
    assert setting == "on", "settings end with the search"


# ---------------------------------------------------------------- what keeps search exact


def assert_exact(store: SqlStore, reason: str = AGAIN) -> None:
    assert find_table(store) is None
    search = store.describe_search()
    assert search is not None
    assert (search.approximate, list(search.exact)) == ({}, [SPACE])
    assert reason in search.because
    assert store.nearest(SPACE, ROWS[3], 1).keys.tolist() == [4]


def test_without_the_extension(store: SqlStore, database: str) -> None:
    run_sql(database, "DROP EXTENSION vector")
    put(store, ROWS[:100])
    assert_exact(store, "`CREATE EXTENSION vector`")
    run_sql(database, "CREATE EXTENSION vector")
    assert_exact(store)
    put(store, ROWS[100:101], 101)
    assert_follows(store)
    run_sql(database, "DROP EXTENSION vector CASCADE")
    assert_exact(store, "`CREATE EXTENSION vector`")
    put(store, ROWS[101:102], 102)
    run_sql(database, "CREATE EXTENSION vector")
    put(store, ROWS[102:103], 103)
    assert_follows(store)


def test_rights(make: OpenStore, store: SqlStore, database: str) -> None:
    run_sql(database, "DROP EXTENSION vector", "CREATE SCHEMA hidden", "CREATE EXTENSION vector SCHEMA hidden")
    run_sql(database, "CREATE ROLE vera LOGIN", "GRANT CREATE ON DATABASE near_rows TO vera")
    if "user=postgres" not in database:
        pytest.skip("the address names no user")
    own = make("own", user="vera")
    put(own, ROWS[:100])
    assert_exact(own, '`GRANT USAGE ON SCHEMA "hidden" TO` you')
    run_sql(database, "GRANT USAGE ON SCHEMA hidden TO vera")
    put(own, ROWS[100:101], 101)
    assert_follows(own)
    own.close()
    put(store, ROWS[:40])
    grant = "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA a TO vera"
    run_sql(database, "GRANT USAGE ON SCHEMA a TO vera", grant)
    put(store, ROWS[40:100], 41)
    guest = make("a", user="vera")
    assert_exact(guest, 'its owner runs `GRANT SELECT ON ALL TABLES IN SCHEMA "a" TO` you again')
    put(guest, ROWS[100:101], 101)  # it may not change the table, which is then out of date
    assert_exact(store)
    put(store, ROWS[101:102], 102)
    assert_follows(store)
    run_sql(database, grant)
    put(guest, ROWS[102:103], 103)
    assert_follows(guest)
    guest.close()
    run_sql(database, "DROP OWNED BY vera", "DROP ROLE vera")


def fill_disk(*_: object) -> bytes:
    raise psycopg.errors.DiskFull("no space left on device")


def lose_connection(*_: object) -> bytes:
    raise psycopg.OperationalError("the connection was lost")


@pytest.mark.parametrize(
    ("place", "fault", "warning", "is_tried_again"),
    [
        ("LINKS", 1, "the index of passages could not be made", False),  # fewer than pgvector takes
        ("write_columns", fill_disk, "tables .* could not be made .*no space left", False),
        ("write_columns", lose_connection, "could not be made .*the connection was lost", True),
    ],
    ids=["refused", "full disk", "lost connection"],
)
def test_an_index_that_fails_loses_nothing(
    make: OpenStore, store: SqlStore, place: str, fault: object, warning: str, is_tried_again: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """What may pass is tried again by the next write, anything else by the next process; either says so once."""
    with monkeypatch.context() as patched:
        patched.setattr(near_rows, place, fault)
        with pytest.warns(UserWarning, match=f"all was written, but .*{warning}"):
            put(store, ROWS[:100])
        if place == "write_columns" and not is_tried_again:
            put(store, ROWS[100:101], 101)  # without a second line
    assert_exact(store)
    put(store, ROWS[101:102], 102)
    if is_tried_again:
        return assert_follows(store)
    assert find_table(store) is None, "one try in one process"
    later = make("a")
    put(later, ROWS[102:103], 103)
    return assert_follows(later)


TOO_LARGE = "pgvector holds up to 4,000 numbers"


@pytest.mark.parametrize(
    "rows",
    [ROWS[:100] * 1e6, np.ones((60, 4001), np.float32), np.ones((51, 20_000), np.float32)],
    ids=["numbers", "width", "great width"],
)
def test_vectors_that_float16_cannot_hold_are_searched_exactly_and_that_is_said_once(
    make: OpenStore, store: SqlStore, rows: np.ndarray
) -> None:
    with pytest.warns(UserWarning, match=f"are searched exactly: {TOO_LARGE}"):
        put(store, rows)
    assert find_table(store) is None
    assert len(store.nearest(SPACE, rows[3] / np.linalg.norm(rows[3]), 1).keys)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        put(store, rows[:1], 101)
        put(make("a"), rows[1:2], 102)
    search = store.describe_search()
    assert search is not None
    assert f"{TOO_LARGE} in each, of up to 65,504" in search.because


def test_a_row_that_float16_cannot_hold_ends_the_search_by_index(filled: SqlStore) -> None:
    with pytest.warns(UserWarning, match="pgvector holds up to"):
        put(filled, ROWS[100:101] * 1e6, 101)
    assert find_table(filled) is None
    assert filled.nearest(SPACE, ROWS[100], 1).keys.tolist() == [101]


@pytest.mark.parametrize(
    "statements",
    [
        ("DELETE FROM a.vectors WHERE key = 5", "UPDATE a.spaces SET version = 1"),  # by another program
        ("UPDATE a.near_spaces SET name = 'near_x; DROP TABLE vectors'",),
    ],
    ids=["vectors", "name"],
)
def test_a_table_that_is_not_of_what_is_there_is_not_used(
    filled: SqlStore, database: str, statements: tuple[str, ...]
) -> None:
    before = list_tables(database)
    run_sql(database, *statements)
    assert_exact(filled, "no index of what it holds now")
    put(filled, ROWS[100:101], 101)
    assert_follows(filled)
    assert list_tables(database) != before


def test_a_moment_before_the_table_was_made_anew(make: OpenStore, filled: SqlStore) -> None:
    writer = make("a")
    with filled.snapshot() as moment:
        assert len(moment.layers()) == 0
        put(writer, ROWS[100:200], 101)  # so many that the table is made anew
        assert moment.nearest(SPACE, ROWS[3], 1).keys.tolist() == [4]
        assert moment.nearest(SPACE, ROWS[150], 1).keys.tolist() != [151]
    assert filled.nearest(SPACE, ROWS[150], 1).keys.tolist() == [151]


# ---------------------------------------------------------------- whole tomes


def test_tomes_are_copied_renamed_and_deleted(make: OpenStore, store: SqlStore, database: str, tmp_path: Path) -> None:
    add(store, *(Document(id=f"d{n}", text=" ".join(f"{n} {word} fog" for word in range(9))) for n in range(12)))
    with store.write() as change:
        for name, value in {"embedder": "hash", "passage_tokens": "64", "overlap": "0"}.items():
            change.put_note(SETTINGS, name, value)
    store.save_trace(asked="now", question="Who?", record={})
    copy_tome(find_tome_address(f"{database}#a"), tmp_path / "a.tome")
    copy_tome(tmp_path / "a.tome", find_tome_address(f"{database}#b"), exact_rows=50)
    move_tome(find_tome_address(f"{database}#b"), find_tome_address(f"{database}#c"))
    moved = make("c")
    assert list(moved.dump()) == list(store.dump())
    assert moved.save_trace(asked="now", question="When?", record={}) == 2
    add(moved, Document(id="late", text="a new key for each passage"))
    remove(moved, "d3")
    assert_follows(moved)
    for each in (moved, store):
        each.close()
        delete_tome(find_tome_address(each.address))
    assert list_tables(database) == []


def test_the_command_says_how_it_searches(
    command: Callable[..., Ran], database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_sql(database, "DROP EXTENSION vector")
    Path("a.txt").write_text(" ".join(f"In year {n} Ada Marsh kept the lighthouse." for n in range(90)))
    tome = f"{database}#novels"
    assert command("add", "a.txt", "-m", tome, "--passage-tokens", "32").code == 0
    assert "exactly" not in command("show", "-m", tome).out, "a small tome has no line"
    monkeypatch.setenv("TOMEWISE_EXACT_ROWS", "10")
    assert "searched exactly: passages" in " ".join(command("show", "-m", tome).out.split())
    run_sql(database, "CREATE EXTENSION vector")
    assert command("copy", tome, f"{database}#copy").code == 0
    assert '"approximate":{"passages":' in command("show", "-m", f"{database}#copy", "--json").out.replace(" ", "")


def test_a_writer_does_not_wait_for_an_index_that_is_being_made(filled: SqlStore, database: str) -> None:
    table = find_table(filled)
    assert table is not None
    with filled.hold(WRITER, "somebody writes"), psycopg.connect(database) as making:
        making.execute(f"LOCK TABLE a.{table.name} IN SHARE MODE".encode())  # as CREATE INDEX does
        begun = time.perf_counter()
        put(filled, ROWS[100:101], 101)
        assert time.perf_counter() - begun < 30, "it did not wait for the lock"
    put(filled, ROWS[101:102], 102)
    assert_follows(filled)
