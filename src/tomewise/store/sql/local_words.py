"""The words of the passages of a database, in an SQLite file of this machine: BM25 as in a file, and nothing is sent.

The file follows the database: its mark says which passages it holds, and each has a stamp of what its text depends on.
Keys alone would not do: a database that was restored from a backup gives keys again, to other passages.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

from sqlalchemy import Engine, create_engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import StaticPool

from tomewise.store.beside import FolderBeside
from tomewise.store.sql.database import harden
from tomewise.store.sql.row_values import find_cause
from tomewise.store.sql.sqlite_rows import SqliteTransaction

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

    def close(self) -> None:
        """Close the file."""
        with self._guard:
            self._forget()

    def ask(self, source: Source, ask: Callable[[SqliteTransaction], T]) -> T:
        """What the file answers once it holds what the database holds; without a usable file, memory."""
        with self._guard:
            for path in (FILE, FILE, None):
                try:
                    return self._ask_file(path, source, ask)
                except (DBAPIError, sqlite3.Error, OSError) as error:  # damaged, on a full disk, or not to be written
                    if path is None or not isinstance(find_cause(error), sqlite3.Error | OSError):
                        raise  # the database failed, and not the file
                    self._forget()
                    if type(find_cause(error)) in _DAMAGE:
                        for name in (f"{FILE}-journal", FILE):
                            with suppress(OSError):
                                self._folder.delete(name)
            raise AssertionError("memory answers or raises")

    def _ask_file(self, name: str | None, source: Source, ask: Callable[[SqliteTransaction], T]) -> T:
        if self._engine is None:
            self._engine = self._open(name)
        with _begin(self._engine, "BEGIN") as transaction:  # searches of several processes wait for no other
            if _read_mark(transaction) == source[0]:
                return ask(transaction)
        with _begin(self._engine, "BEGIN IMMEDIATE") as transaction:
            _bring_up(transaction, source)
            return ask(transaction)

    def _open(self, name: str | None) -> Engine:
        if name is not None:
            self._folder.make()
        path = ":memory:" if name is None else str(self._folder.path / name)

        def connect() -> sqlite3.Connection:
            # One connection, which `_guard` keeps to one thread at a time.
            connection = sqlite3.connect(path, timeout=60.0, check_same_thread=False, isolation_level=None)
            harden(connection)
            return connection

        return create_engine("sqlite+pysqlite://", creator=connect, poolclass=StaticPool)

    def _forget(self) -> None:
        if self._engine is not None:
            self._engine.dispose()
            self._engine = None


@contextmanager
def _begin(engine: Engine, how: str) -> Iterator[SqliteTransaction]:
    with engine.connect() as connection:
        transaction = SqliteTransaction(connection, FILE)
        transaction.run(how)
        try:
            yield transaction
            transaction.driver.commit()
        finally:
            transaction.driver.rollback()


def _read_mark(transaction: SqliteTransaction) -> int | None:
    """Which state of the database the file holds; None for a new file."""
    if transaction.read_value("SELECT 1 FROM sqlite_master WHERE name = 'mark'") is None:
        return None
    found: int | None = transaction.read_value("SELECT words FROM mark")
    return found


def _bring_up(transaction: SqliteTransaction, source: Source) -> None:
    mark, read_stamps, read_texts = source
    for statement in _MAKE:
        transaction.run(statement)
    if _read_mark(transaction) == mark:  # another process was faster
        return
    wanted = read_stamps()
    known = dict(map(tuple, transaction.run("SELECT key, stamp FROM stamps")))
    gone = [(key,) for key, stamp in known.items() if wanted.get(key) != stamp]
    if gone:
        transaction.run("DELETE FROM lexical WHERE rowid = ?", gone)
        transaction.run("DELETE FROM stamps WHERE key = ?", gone)
    missing = sorted(key for key, stamp in wanted.items() if known.get(key) != stamp)
    for start in range(0, len(missing), _BATCH):
        keys = missing[start : start + _BATCH]
        transaction.index_words(list(read_texts(keys)))
        transaction.run("INSERT INTO stamps VALUES (?, ?)", [(key, wanted[key]) for key in keys])
    transaction.run("DELETE FROM mark")
    transaction.run("INSERT INTO mark (words) VALUES (?)", (mark,))
