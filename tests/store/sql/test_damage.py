"""What is damaged in the file of a tome is found and named: the row, the table, what is wrong, and the remedy."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import select
from tests.store.contract import MakeStore, add

from tomewise.errors import StoreError
from tomewise.memory.build_records import record_build
from tomewise.store.lookups import read_vectors
from tomewise.store.records import SESSIONS, SETTINGS
from tomewise.store.sql.damage import (
    SEQUENCE_CONTRADICTIONS,
    find_contradiction,
    find_damaged_index,
    find_damaged_row,
    name_damage,
)
from tomewise.store.sql.schema import TABLES, nodes
from tomewise.store.sql.sql_store import SqlStore
from tomewise.types import Document

ONE = Document(id="one", text="a cat sat on a mat and slept")


@pytest.fixture
def path(store: SqlStore) -> Path:
    add(store, ONE)
    with store.write() as change:
        change.put_note(SESSIONS, "s", {"a": 1})
        record_build(change, "gists", {"model": "m"})
    store.save_trace(asked="", question="", record={})
    return store.path


def run(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as file, file:
        assert file.execute(statement).rowcount == 1


def test_a_sound_file_has_no_damage(path: Path, store: SqlStore) -> None:
    with store.read() as connection:
        assert find_damaged_row(connection, TABLES.tables.values()) == ""
        assert find_contradiction(connection, SEQUENCE_CONTRADICTIONS) == ""
        assert find_damaged_index(connection) == ""
    assert store.find_damage() == ""


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        (
            "UPDATE nodes SET text = x'00' WHERE key = 1",
            "the row '1' of the table nodes has 1 bytes where a text belongs",
        ),
        ("UPDATE nodes SET level = 'x' WHERE key = 2", "the row '2' of the table nodes has 'x' where a whole number"),
        ("UPDATE nodes SET text = CAST(x'ff' AS TEXT) WHERE key = 1", "the row '1' of the table nodes has 1 bytes"),
        ("UPDATE sessions SET record = '5'", "the row 's' of the table sessions .* `tome sessions 's' --delete`"),
        ("UPDATE traces SET record = '['", "the row '1' of the table traces .* `tome log '1' --delete`"),
        ("UPDATE builds SET record = ''", "the row 'gists' of the table builds .* `tome build --again 'gists'`"),
        ("UPDATE spaces SET version = 'x' WHERE space = 'vectors/passages'", "the row 'vectors/passages' of the table"),
        ("UPDATE nodes SET document = 7 WHERE key = 1", "the row 1 of the table nodes has a document that is not"),
        ('UPDATE nodes SET start = 9, "end" = 3 WHERE key = 1', "the row 1 of the table nodes has no place"),
        ("UPDATE vectors SET key = 99 WHERE key = 1", "the row 99 of the table vectors has a node that is not there"),
        (
            "UPDATE vectors SET vector = zeroblob(8) WHERE key = 1",
            "the row 1 of the table vectors has a vector of another",
        ),
        ("UPDATE sqlite_sequence SET seq = 0 WHERE name = 'nodes'", "the row 'nodes' of the table sqlite_sequence"),
        (
            "UPDATE lexical_data SET block = x'0001' WHERE id = (SELECT max(id) FROM lexical_data)",
            "the table lexical, the full-text index",
        ),
    ],
)
def test_damage_is_found(path: Path, store: SqlStore, statement: str, found: str) -> None:
    with store.write() as change:
        change.put_note(SETTINGS, "dimensions", "4")
    run(path, statement)
    problem = store.find_damage()
    assert problem.startswith(f"{path} is damaged: ")
    with pytest.raises(StoreError, match=found):
        raise StoreError(problem)


def test_a_value_that_does_not_fit_is_named_where_it_is_read(path: Path, store: SqlStore) -> None:
    run(path, "UPDATE nodes SET text = CAST(x'ff41' AS TEXT) WHERE key = 2")
    with (
        store.read() as connection,
        pytest.raises(StoreError, match="the row '2' of the table nodes"),
        name_damage(connection, path),
    ):
        connection.execute(select(nodes.c.text)).all()


def test_strange_arrays_in_memory_are_made_again(path: Path, store: SqlStore, open_store: MakeStore) -> None:
    columns = read_vectors(store, "passages")
    run(path, "UPDATE vectors SET vector = (SELECT vector FROM vectors WHERE key = 3) WHERE key = 1")
    assert "held arrays of something else" in store.find_damage()
    assert store.find_damage() == ""
    assert read_vectors(store, "passages").rows[0].tolist() == columns.rows[2].tolist()
