"""The words of the passages of a database, in an SQLite file of this machine: BM25 as in a file, and nothing is sent.

The file follows the database: its mark says which passages it holds. A passage keeps its text as long as its key, so
what differs is found by the keys alone.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import StaticPool

from tomewise.beside import FolderBeside
from tomewise.store.sql.dialect import SqliteDialect
from tomewise.store.sql.mirror import Keys

FILE = "words.sqlite"
FILE_NAMES = r"words\.sqlite(?:-journal)?"
_MAKE = (
    "CREATE VIRTUAL TABLE IF NOT EXISTS lexical USING fts5(text, tokenize='porter unicode61 remove_diacritics 2')",
    "CREATE TABLE IF NOT EXISTS mark (words INTEGER NOT NULL)",
)
_BATCH = 5_000
T = TypeVar("T")
Source = tuple[int, Callable[[], set[int]], Callable[[list[int]], Iterable[tuple[int, str]]]]


class LocalWords:
    """The index of one tome. What the database holds comes as a `Source`: its mark, its keys, the texts of keys."""

    def __init__(self, folder: FolderBeside) -> None:
        self._folder = folder
        self._guard = threading.Lock()
        self._engine: Engine | None = None

    def search(self, source: Source, words: Sequence[str], limit: int, within: Keys | None) -> list[tuple[int, float]]:
        """The best keys that hold one of the words, with their BM25 scores over all passages."""
        return self._ask(source, lambda connection: SqliteDialect.search_words(connection, words, limit, within))

    def find_holders(self, source: Source, phrase: str, among: Keys) -> tuple[int, Keys]:
        """How many passages hold these words side by side, and those of `among` that do."""
        return self._ask(source, lambda connection: SqliteDialect.find_holders(connection, phrase, among))

    def close(self) -> None:
        """Close the file."""
        with self._guard:
            if self._engine is not None:
                self._engine.dispose()
                self._engine = None

    def _ask(self, source: Source, ask: Callable[[Connection], T]) -> T:
        """What the file answers once it holds what the database holds; without a usable file, memory."""
        with self._guard:
            try:
                with self._begin() as connection:
                    _bring_up(connection, source)
                    return ask(connection)
            except (DBAPIError, sqlite3.Error, OSError) as error:  # damaged, on a full disk, or not to be written
                if isinstance(error, DBAPIError) and not isinstance(error.orig, sqlite3.Error):
                    raise
            self._engine = _make_engine(":memory:")
            with self._begin() as connection:
                _bring_up(connection, source)
                return ask(connection)

    @contextmanager
    def _begin(self) -> Iterator[Connection]:
        if self._engine is None:
            self._folder.make()
            self._engine = _make_engine(str(Path(self._folder.path) / FILE))
        with self._engine.connect() as connection:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            driver = connection.connection.driver_connection
            assert isinstance(driver, sqlite3.Connection)
            try:
                yield connection
                driver.commit()
            finally:
                driver.rollback()


def _make_engine(path: str) -> Engine:
    def connect() -> sqlite3.Connection:
        # One connection, which `_guard` keeps to one thread at a time.
        return sqlite3.connect(path, timeout=60.0, check_same_thread=False, isolation_level=None)

    return create_engine(f"sqlite+pysqlite:///{path}", creator=connect, poolclass=StaticPool)


def _bring_up(connection: Connection, source: Source) -> None:
    mark, read_keys, read_texts = source
    for statement in _MAKE:
        connection.exec_driver_sql(statement)
    if connection.exec_driver_sql("SELECT words FROM mark").scalar() == mark:
        return
    wanted = read_keys()
    known = {key for (key,) in connection.exec_driver_sql("SELECT id FROM lexical_docsize")}
    gone = [(key,) for key in known - wanted]
    if gone:
        connection.exec_driver_sql("DELETE FROM lexical WHERE rowid = ?", gone)
    missing = sorted(wanted - known)
    for start in range(0, len(missing), _BATCH):
        SqliteDialect.index_words(connection, list(read_texts(missing[start : start + _BATCH])))
    connection.exec_driver_sql("DELETE FROM mark")
    connection.exec_driver_sql("INSERT INTO mark (words) VALUES (?)", (mark,))
