"""A tome from elsewhere declares what its format declares and nothing else, or it is refused before anything runs."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from tomewise.errors import ReadingError, StoreError
from tomewise.store.sql import database
from tomewise.store.sql.schema import APPLICATION_ID, FORMAT
from tomewise.store.sql.sql_store import SqlStore
from tomewise.tome.open_store import copy_tome, delete_tome, export_all, move_tome
from tomewise.tome.tome import Tome
from tomewise.types import Document

ONE = Document(id="one", text="The clerk forged the letter in May. The doctor was away.")
LONG = "hex(zeroblob(400000000))"


def edit(table: str, old: str, new: str) -> str:
    """A change of the statement of a table or an index, which SQLite does not check."""
    values = (value.replace("'", "''") for value in (old, new, table))
    return "UPDATE sqlite_master SET sql = replace(sql, '{}', '{}') WHERE name = '{}'".format(*values)


STRANGE = {
    "trigger": "CREATE TRIGGER gone AFTER INSERT ON documents BEGIN DELETE FROM documents; END",
    "view": "CREATE VIEW gone AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n",
    "check": edit("documents", "title TEXT NOT NULL", f"title TEXT NOT NULL CHECK(length({LONG}) > 0)"),
    "check of a table": edit("meta", "value TEXT NOT NULL", f"value TEXT NOT NULL, CHECK(length({LONG}) > 0)"),
    "computed column": f"ALTER TABLE documents ADD COLUMN more TEXT GENERATED ALWAYS AS ({LONG}) VIRTUAL",
    "computed text": edit("nodes", "text TEXT NOT NULL", f"text TEXT AS ({LONG})"),
    "stored column": edit("nodes", "data TEXT NOT NULL", f"data TEXT AS ({LONG}) STORED"),
    "default": edit("documents", "DEFAULT '{}'", f"DEFAULT ({LONG})"),
    "further column": "ALTER TABLE nodes ADD COLUMN more TEXT",
    "index of an expression": f"CREATE INDEX more ON calls (length({LONG}))",
    "partial index": f"CREATE INDEX more ON nodes (key) WHERE length({LONG}) > 0",
    "partial index of ours": edit("nodes_layer", "(layer)", "(layer) WHERE text > ''"),
    "unique index": edit("nodes_layer", "CREATE INDEX", "CREATE UNIQUE INDEX"),
    "missing index": "DROP INDEX edges_backward",
    "missing table": "DROP TABLE removals",
    "further table": "CREATE TABLE more (a)",
    "further virtual table": "CREATE VIRTUAL TABLE more USING rtree(id, a, b)",
    "collation": edit("nodes", "id TEXT NOT NULL", "id TEXT COLLATE NOCASE NOT NULL"),
    "conflicts": edit("nodes", "NOT NULL UNIQUE", "NOT NULL UNIQUE ON CONFLICT REPLACE"),
    "reference": edit("intake", "node INTEGER NOT NULL", "node INTEGER NOT NULL REFERENCES nodes ON DELETE CASCADE"),
    "comment": edit("meta", "value TEXT", "value /**/ TEXT"),
    "comment to the end": "UPDATE sqlite_master SET sql = sql || ' -- )' WHERE name = 'meta'",
    "other case": edit("meta", "value TEXT NOT NULL", "value text not null check(LENGTH(value) > 0)"),
    "tokenizer": edit("lexical", "porter unicode61", "trigram"),
    "content": edit("lexical", "content=''", "content='documents'"),
    "number in place of a statement": "UPDATE sqlite_master SET sql = 5 WHERE name = 'meta'",
    "row id": edit("meta", " WITHOUT ROWID", ""),
    "words in a plain table": f"DROP TABLE lexical; CREATE TABLE lexical (text, rank AS ({LONG}))",
    "words in a view": "DROP TABLE lexical; CREATE VIEW lexical AS SELECT key AS rowid, text FROM nodes",
    "words in another virtual table": "DROP TABLE lexical; CREATE VIRTUAL TABLE lexical USING rtree(id, a, b)",
    "shadow table": edit("lexical_data", "block BLOB", f"block BLOB AS ({LONG})"),
    "index of a shadow table": f"CREATE INDEX more ON lexical_docsize (length({LONG}))",
    "statistics with an expression": f"CREATE TABLE more (tbl, idx, stat AS ({LONG}))",
}  # fmt: skip


def run(path: Path, statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        file.execute("PRAGMA writable_schema = ON")
        file.executescript(statements)


@pytest.fixture
def path(here: Path) -> Path:
    with Tome.open(here / "memory.tome", embedder="hash") as tome:
        tome.add(ONE)
    return here / "memory.tome"


@pytest.mark.parametrize("kind", STRANGE)
def test_a_tome_that_declares_something_else_is_refused(path: Path, kind: str) -> None:
    run(path, STRANGE[kind])
    before = path.read_bytes()
    for read_only in (False, True):
        with pytest.raises(StoreError, match=r"memory\.tome is damaged") as caught:
            Tome.open(path, read_only=read_only)
        assert "restore it from a copy" in str(caught.value)
    assert path.read_bytes() == before


VERBS: dict[str, Callable[[Path], object]] = {
    "copy": lambda path: copy_tome(path, path.with_name("copy.tome")),
    "export": lambda path: list(export_all(path)),
    "drop": delete_tome,
    "rename": lambda path: move_tome(path, path.with_name("new.tome")),
    "open": lambda path: Tome.open(path, create=False),
}


@pytest.mark.parametrize("verb", VERBS)
def test_no_verb_goes_around_the_check(path: Path, verb: str) -> None:
    run(path, STRANGE["check"])
    with pytest.raises(StoreError, match="its table 'documents' is not one of a tome"):
        VERBS[verb](path)
    assert [file.name for file in path.parent.iterdir() if file.suffix == ".tome"] == [path.name]


def test_what_changes_in_an_open_tome_is_checked_again(path: Path) -> None:
    with Tome.open(path) as tome:
        run(path, STRANGE["trigger"])
        for use in (tome.documents, lambda: tome.add(Document(id="two", text="A boat."))):
            with pytest.raises(StoreError, match="its trigger 'gone' is not one"):
                use()
        run(path, "DROP TRIGGER gone")
        assert [record.id for record in tome.documents()] == ["one"]


def test_a_file_that_takes_the_place_of_an_open_one_is_checked(path: Path) -> None:
    strange = Path(shutil.copy(path, path.with_name("strange.tome")))
    run(strange, STRANGE["computed text"])
    with Tome.open(path) as tome, ThreadPoolExecutor() as pool, tome.store.read():  # so the next needs a new connection
        strange.replace(path)
        with pytest.raises(StoreError, match="its table 'nodes' is not one"):
            pool.submit(tome.store.documents).result()


@pytest.mark.parametrize("statements", ["ANALYZE", "PRAGMA journal_mode = DELETE; PRAGMA page_size = 1024; VACUUM"])
def test_what_owners_do_with_their_tomes_is_no_damage(path: Path, statements: str) -> None:
    run(path, statements)
    with Tome.open(path) as tome:
        tome.add(Document(id="two", text="A boat."))
        assert tome.search("Who forged the letter?", system="hybrid")


@pytest.mark.parametrize("kind", ["no tables", "other encoding", "other format"])
def test_marks_alone_make_no_tome(here: Path, kind: str) -> None:
    path = here / "bad.tome"
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        if kind == "other encoding":
            file.execute("PRAGMA encoding = 'UTF-16'")
            file.execute("CREATE TABLE meta (key)")
        if kind == "other format":
            file.execute("CREATE TABLE meta (key)")
        file.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        file.execute(f"PRAGMA user_version = {-1 if kind == 'other format' else FORMAT}")
    with pytest.raises(StoreError, match=r"bad\.tome (is damaged|was written by an earlier)"):
        Tome.open(path)


def test_the_database_of_another_program_stays_as_it_is(here: Path) -> None:
    path = here / "places.sqlite"
    run(path, "CREATE TABLE mine (a); INSERT INTO mine VALUES (1)")
    before = path.read_bytes()
    for create in (True, False):
        with pytest.raises(StoreError, match="is an SQLite file but not a tome"):
            Tome.open(path, create=create)
    assert path.read_bytes() == before
    assert [file.name for file in here.iterdir()] == [path.name]


# ---------------------------------------------------------------- lengths


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> int:
    """A bound on values that a test can reach."""
    monkeypatch.setattr(database, "LONGEST", 1 << 20)
    return 1 << 20


@pytest.mark.parametrize(
    ("statement", "use"),
    [
        ("UPDATE documents SET text = hex(zeroblob(700000))", lambda tome: tome.documents["one"]),
        ("UPDATE nodes SET text = hex(zeroblob(700000))", lambda tome: tome.search("letter", system="hybrid")),
        ("UPDATE documents SET title = hex(zeroblob(700000))", lambda tome: tome.documents()),
        ("UPDATE meta SET value = hex(zeroblob(700000)) WHERE key = 'embedder'", lambda tome: [*tome.memory.export()]),
        ("UPDATE vectors SET vector = zeroblob(1400000)", lambda tome: list(tome.memory.export())),
    ],
)
def test_a_value_of_a_stranger_that_is_too_long_is_one_error(
    path: Path, short: int, statement: str, use: Callable[[Tome], object]
) -> None:
    run(path, statement)
    shutil.rmtree(path.with_name("memory.tome-cache"))
    with pytest.raises(StoreError, match=rf"memory\.tome takes no value of more than {short:,} bytes"):  # noqa: SIM117
        with Tome.open(path) as tome:
            use(tome)


def test_a_value_of_ours_that_is_too_long_is_one_error_and_is_not_written(path: Path, short: int) -> None:
    with Tome.open(path) as tome:
        with pytest.raises(StoreError, match="takes no value of more than"):
            tome.store.save_trace(asked="", question="x" * (short + 1), record={})
        assert tome.traces.latest() == []


def test_a_document_that_no_row_has_room_for_is_refused_by_name(path: Path) -> None:
    store = SqlStore.open(path)
    try:
        with (
            pytest.raises(ReadingError, match=r"'long' has 268,435,456 bytes of text.*split it"),
            store.write() as change,
        ):
            change.put_document(Document(id="long", text="é" * (1 << 27)), "digest", [])
        assert [record.id for record in store.documents()] == ["one"]
    finally:
        store.close()
