"""The words of the passages of a database, in an SQLite file of this machine: BM25 as in a file, and nothing is sent.

The file follows the database: its mark says which passages it holds, and each has a stamp of what its text depends on.
Keys alone would not do: a database that was restored from a backup gives keys again, to other passages.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import StaticPool

from tomewise.beside import FolderBeside
from tomewise.store.sql.database import harden
from tomewise.store.sql.mirror import Keys
from tomewise.store.sql.row_values import read_value
from tomewise.store.sql.sqlite_rows import SqliteRows

FILE = "words.sqlite"
FILE_NAMES = r"words\.sqlite(?:-journal)?"
_MAKE = (
    "CREATE VIRTUAL TABLE IF NOT EXISTS lexical USING fts5(text, tokenize='porter unicode61 remove_diacritics 2')",
    "CREATE TABLE IF NOT EXISTS stamps (key INTEGER PRIMARY KEY, stamp INTEGER NOT NULL)",
    "CREATE TABLE IF NOT EXISTS mark (words INTEGER NOT NULL)",
)
_BATCH = 5_000
_DAMAGE = sqlite3.DatabaseError, sqlite3.IntegrityError  # a lock or a full disk is another
T = TypeVar("T")
Source = tuple[int, Callable[[], dict[int, int]], Callable[[list[int]], Iterable[tuple[int, str]]]]


class LocalWords:
    """The index of one tome. What the database holds comes as a `Source`: its mark, stamps by key, texts of keys."""

    def __init__(self, folder: FolderBeside) -> None:
        self._folder = folder
        self._guard = threading.Lock()
        self._engine: Engine | None = None

    def search(self, source: Source, words: Sequence[str], limit: int, within: Keys | None) -> list[tuple[int, float]]:
        """The best keys that hold one of the words, with their BM25 scores over all passages."""
        return self._ask(source, lambda connection: SqliteRows.search_words(connection, words, limit, within))

    def find_holders(self, source: Source, phrase: str, among: Keys) -> tuple[int, Keys]:
        """How many passages hold these words side by side, and those of `among` that do."""
        return self._ask(source, lambda connection: SqliteRows.find_holders(connection, phrase, among))

    def close(self) -> None:
        """Close the file."""
        with self._guard:
            self._forget()

    def _ask(self, source: Source, ask: Callable[[Connection], T]) -> T:
        """What the file answers once it holds what the database holds; without a usable file, memory."""
        with self._guard:
            for path in (FILE, FILE, None):
                try:
                    return self._ask_file(path, source, ask)
                except (DBAPIError, sqlite3.Error, OSError) as error:  # damaged, on a full disk, or not to be written
                    cause = error.orig if isinstance(error, DBAPIError) else error
                    if not isinstance(cause, sqlite3.Error | OSError) or path is None:
                        raise
                    self._forget()
                    if type(cause) in _DAMAGE:
                        self._delete()
            raise AssertionError("memory answers or raises")

    def _ask_file(self, name: str | None, source: Source, ask: Callable[[Connection], T]) -> T:
        if self._engine is None:
            self._engine = self._open(name)
        with _begin(self._engine, "BEGIN") as connection:  # searches of several processes wait for no other
            if _read_mark(connection) == source[0]:
                return ask(connection)
        with _begin(self._engine, "BEGIN IMMEDIATE") as connection:
            _bring_up(connection, source)
            return ask(connection)

    def _open(self, name: str | None) -> Engine:
        if name is None:
            return _make_engine(":memory:")
        self._folder.make()
        return _make_engine(str(Path(self._folder.path) / name))

    def _forget(self) -> None:
        if self._engine is not None:
            self._engine.dispose()
            self._engine = None

    def _delete(self) -> None:
        for name in (f"{FILE}-journal", FILE):
            with suppress(OSError):
                self._folder.delete(name)


@contextmanager
def _begin(engine: Engine, how: str) -> Iterator[Connection]:
    with engine.connect() as connection:
        connection.exec_driver_sql(how)
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
        connection = sqlite3.connect(path, timeout=60.0, check_same_thread=False, isolation_level=None)
        harden(connection)
        return connection

    return create_engine(f"sqlite+pysqlite:///{path}", creator=connect, poolclass=StaticPool)


def _read_mark(connection: Connection) -> int | None:
    """Which state of the database the file holds; None for a new file."""
    if read_value(connection, "SELECT 1 FROM sqlite_master WHERE name = 'mark'") is None:
        return None
    found: int | None = read_value(connection, "SELECT words FROM mark")
    return found


def _bring_up(connection: Connection, source: Source) -> None:
    mark, read_stamps, read_texts = source
    for statement in _MAKE:
        connection.exec_driver_sql(statement)
    if _read_mark(connection) == mark:  # another process was faster
        return
    wanted = read_stamps()
    known = dict(map(tuple, connection.exec_driver_sql("SELECT key, stamp FROM stamps")))
    gone = [(key,) for key, stamp in known.items() if wanted.get(key) != stamp]
    if gone:
        connection.exec_driver_sql("DELETE FROM lexical WHERE rowid = ?", gone)
        connection.exec_driver_sql("DELETE FROM stamps WHERE key = ?", gone)
    missing = sorted(key for key, stamp in wanted.items() if known.get(key) != stamp)
    for start in range(0, len(missing), _BATCH):
        keys = missing[start : start + _BATCH]
        SqliteRows.index_words(connection, list(read_texts(keys)))
        connection.exec_driver_sql("INSERT INTO stamps VALUES (?, ?)", [(key, wanted[key]) for key in keys])
    connection.exec_driver_sql("DELETE FROM mark")
    connection.exec_driver_sql("INSERT INTO mark (words) VALUES (?)", (mark,))
