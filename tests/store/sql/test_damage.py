"""What is damaged in the file of a tome is found and named: the row, the table, what is wrong, and the remedy."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.damages import open_loose
from tests.store.conftest import OpenStore
from tests.store.contract import add

from tomewise.errors import StoreError
from tomewise.memory.build_records import record_build
from tomewise.store.lookups import read_vectors
from tomewise.store.records import SESSIONS
from tomewise.store.sql.sql_store import SqlStore
from tomewise.types import Document

ONE = Document(id="one", text="a cat sat on a mat and slept")
RESTORE = "restore it from a copy"


@pytest.fixture
def path(store: SqlStore) -> Path:
    add(store, ONE)
    with store.write() as change:
        change.put_note(SESSIONS, "s", {"a": 1})
        record_build(change, "gists", {"model": "m"})
    store.save_trace(asked="", question="", record={})
    return store.path


def run(path: Path, statement: str) -> None:
    with open_loose(path) as file:
        assert file.execute(statement).rowcount == 1


DAMAGES = (
    # Each column takes values of its own type, and nothing else passes for one.
    ("nodes SET text = x'00' WHERE key = 1", "'1' of the table nodes"),
    ("nodes SET text = CAST(x'ff' AS TEXT) WHERE key = 1", "'1' of the table nodes"),
    ("nodes SET level = 1.5 WHERE key = 2", "'2' of the table nodes"),
    ("nodes SET level = NULL WHERE key = 2", "'2' of the table nodes"),
    ("nodes SET document = '' WHERE key = 1", "'1' of the table nodes"),
    ("edges SET weight = 9e999 WHERE key = 1", "'1' of the table edges"),
    ("vectors SET vector = x'616263' WHERE key = 1", "'passages', '1' of the table vectors"),
    (f"vectors SET vector = x'{'f' * 32}' WHERE key = 1", "'passages', '1' of the table vectors"),
    ("spaces SET version = 'x' WHERE space = 'vectors/passages'", "'vectors/passages' of the table spaces"),
    *(
        (f"sessions SET record = {record}", "'s' of the table sessions .* `tome sessions 's' --delete`")
        for record in ("'5'", "'[]'", "''", "'{'", "NULL", "x'7b7d'", '\'{"a": "\\ud800"}\'')
    ),
    ("sessions SET record = '{\"a\": ' || replace(hex(zeroblob(50000)), '0', '[')", "'s' of the table sessions"),
    ("traces SET record = '['", "'1' of the table traces .* `tome log '1' --delete`"),
    ("builds SET record = ''", "'gists' of the table builds .* `tome build --again 'gists'`"),
    *(
        (f"builds SET record = '{record}'", "'gists' of the table builds")
        for record in (
            *('{"again": 5}', '{"again": null}', '{"writes": "x"}', '{"writes": [5]}', '{"replies": {"a": "x"}}'),
        )
    ),
    # Rows that contradict others.
    ("nodes SET document = 7 WHERE key = 1", "'1' of the table nodes"),
    ('nodes SET start = 9, "end" = 3 WHERE key = 1', "'1' of the table nodes"),
    ("vectors SET key = 99 WHERE key = 1", "'99' of the table vectors"),
    ("vectors SET vector = zeroblob(8) WHERE key = 1", "'1' of the table vectors"),
    ("sqlite_sequence SET seq = 0 WHERE name = 'nodes'", "'nodes' of the table sqlite_sequence"),
)
INDEX = "lexical_data SET block = x'0001' WHERE id = (SELECT max(id) FROM lexical_data)"


@pytest.mark.parametrize(
    ("statement", "found"),
    [*((statement, f"the row {row}") for statement, row in DAMAGES), (INDEX, "the table lexical, the full-text index")],
)
def test_damage_is_found(path: Path, store: SqlStore, statement: str, found: str) -> None:
    assert store.find_damage() == ""
    run(path, f"UPDATE {statement}")
    problem = store.find_damage()
    with pytest.raises(StoreError, match=f"^{path} is damaged: {found}"):
        raise StoreError(problem)
    assert "`tome " in problem or RESTORE in problem


def test_a_value_that_does_not_fit_is_named_where_it_is_read(path: Path, store: SqlStore) -> None:
    run(path, "UPDATE nodes SET text = CAST(x'ff41' AS TEXT) WHERE key = 2")
    with pytest.raises(StoreError, match=f"the row '2' of the table nodes .*{RESTORE}"):
        store.passages()


def test_of_two_damages_the_one_that_was_met_is_named(path: Path, store: SqlStore) -> None:
    run(path, "UPDATE documents SET title = x'00' WHERE key = 1")
    run(path, "UPDATE sessions SET record = '5'")
    with pytest.raises(StoreError, match="the row 's' of the table sessions"):
        store.note(SESSIONS, "s")


def test_a_field_that_a_node_lacks_is_damage_of_the_tome(path: Path, store: SqlStore) -> None:
    (key,) = store.node_keys("tree")
    run(path, f'UPDATE nodes SET data = \'{{"head": "Ida"}}\' WHERE key = {key}')
    data = store.nodes_at([key])[key].data
    assert (data["head"], data.get("tail"), dict(data)) == ("Ida", None, {"head": "Ida"})
    with pytest.raises(StoreError, match=r"is damaged: the row 'tree:.*' of the table nodes"):
        data["tail"]


def test_strange_arrays_in_memory_are_made_again(path: Path, store: SqlStore, open_store: OpenStore) -> None:
    columns = read_vectors(store, "passages")
    run(path, "UPDATE vectors SET vector = (SELECT vector FROM vectors WHERE key = 3) WHERE key = 1")
    assert "held arrays of something else" in store.find_damage()
    assert store.find_damage() == ""
    assert read_vectors(store, "passages").rows[0].tolist() == columns.rows[2].tolist()
