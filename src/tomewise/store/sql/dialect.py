"""What one database does otherwise than others. This one keeps a tome in an SQLite file.

Of SQLite are also `sqlite_rows` and `database`. What names no database in this folder is shared by all.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from sqlalchemy import Connection, Engine, Table
from sqlalchemy.exc import DBAPIError, OperationalError

from tomewise.beside import FolderBeside, UnsafeFile
from tomewise.errors import Locked, StoreError
from tomewise.store.address import Place
from tomewise.store.rights import WRITER
from tomewise.store.sql.damage import name_damage
from tomewise.store.sql.database import (
    begin_new,
    begin_write,
    connect,
    delete_files,
    is_read_only,
    move_file,
    read_version,
    translate_errors,
)
from tomewise.store.sql.mirror import FILE_NAMES, Deltas
from tomewise.store.sql.row_values import RESTORE, read_value
from tomewise.store.sql.schema import check_format, make_tables
from tomewise.store.sql.sqlite_rows import SqliteRows

_NUMBERS: Mapping[str, Callable[[bytes], Any]] = {"integer": int, "real": float}
_LOCKS = r"writer\.lock|session-[0-9a-f]{16}\.lock"


class SqliteDialect(SqliteRows):
    """A tome in one SQLite file, with its caches and locks in a folder beside it."""

    follows_steps = False  # every writer changes the files of arrays, and these may come from a stranger
    remedy = "check the permissions of it and its folder, or copy it"
    last_keys = "sqlite_sequence"  # the table of the last key of each table
    near = None  # vectors in a file are searched exactly

    def __init__(self, path: Path, engine: Engine) -> None:
        self.path = path
        self.address = str(path)
        self.read_only = is_read_only(path)
        self.cache = FolderBeside(path, "-cache", f"{FILE_NAMES}|{_LOCKS}")
        self._engine = engine
        self._is_writing = False  # somebody here holds the right of the writer
        self._holds_gone_words = False  # the index has words of what was removed

    # ------------------------------------------------------------ the file, its transactions and rights

    @classmethod
    def open(cls, path: Path, *, create: bool, read_only: bool) -> SqliteDialect:
        """Open the file; create it if needed. Raises Locked, and StoreError if it is not a tome."""
        return cls(path, connect(path, create=create and not read_only))

    @classmethod
    @contextmanager
    def begin_new(cls, path: Path) -> Iterator[tuple[Connection, SqliteDialect]]:
        """One write transaction in a new file, which has this path once all is written. Raises StoreError."""
        with begin_new(path) as connection:
            yield connection, cls(path, connection.engine)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A consistent view of the tome. Raises StoreError."""
        with translate_errors(self.path), self._engine.connect() as connection, name_damage(connection, self):
            yield connection

    @contextmanager
    def write(self, *, wait: bool = True) -> Iterator[Connection]:
        """One write transaction: everything inside is committed together or not at all. Raises Locked."""
        with begin_write(self._engine, self.path, wait=wait) as connection, name_damage(connection, self):
            yield connection

    def append(self) -> None:
        """No transaction of its own for replies and traces: SQLite has one writer."""

    def repair(self, reading: Connection | None) -> None:
        """No transaction of its own for the files of the arrays: a write transaction guards them."""

    def guard_files(self) -> AbstractContextManager[bool]:
        """Whether the files of the arrays may be changed now, in a write transaction: always."""
        return nullcontext(True)

    def finish_write(self, connection: Connection, deltas: Deltas, rows: int) -> None:
        """Take the words of what was removed out of their index; a writer does that once, at the end of its work."""
        self._holds_gone_words |= self.pop_forgotten(connection)
        if self._holds_gone_words and not self._is_writing:
            if not self.has_many_words(connection):
                self.merge_words(connection)
            self._holds_gone_words = False

    def forget_removed_words(self) -> None:
        """Take the words of what was removed out of their index, however large it is. Raises Locked, StoreError."""
        with self.write() as connection:
            self.merge_words(connection)

    @contextmanager
    def hold(self, name: str, refusal: str, *, is_long: bool) -> Iterator[None]:
        """Take the exclusive right of this name, which ends with the process. Raises Locked if somebody has it.

        A file keeps every right, those that are long too.
        """
        try:
            lock = FileLock(str(self.cache.prepare_lock(_name_lock(name))), timeout=0, thread_local=False).acquire()
        except Timeout as error:
            raise Locked(refusal) from error
        except UnsafeFile as error:
            raise StoreError(f"{error}, so nobody can write to this tome: delete it, it is made again") from error
        except OSError as error:
            raise StoreError(f"{self.cache.path} cannot be written: {error.strerror}") from error
        self._is_writing |= name == WRITER
        with lock:
            try:
                yield
            finally:
                if name == WRITER:
                    self._is_writing = False
                    self._end_writing()

    def _end_writing(self) -> None:
        if self._holds_gone_words:
            try:
                with self.write() as connection:
                    self.finish_write(connection, {}, 0)
            except StoreError as error:  # what was written stays
                warnings.warn(f"words that were removed stay in the index until more is removed: {error}", stacklevel=2)

    def check(self, connection: Connection) -> None:
        """Raise StoreError if a newer Tomewise changed the file."""
        check_format(read_version(connection), self.path)

    @staticmethod
    def find_damaged_index(connection: Connection) -> str:
        """What is wrong with the file and with its full-text index, in SQLite's own words; empty if nothing is."""
        try:
            problem = str(read_value(connection, "PRAGMA quick_check(1)"))
            if problem != "ok":
                return f"{problem}; {RESTORE}"
            connection.exec_driver_sql("INSERT INTO lexical (lexical) VALUES ('integrity-check')")
        except OperationalError:
            return ""  # the file may only be read, or another program writes it
        except DBAPIError as error:
            return f"the table lexical, the full-text index, does not fit in itself ({error.orig}); {RESTORE}"
        return ""

    @staticmethod
    def read_bare(connection: Connection, table: Table) -> Iterator[list[Any]]:
        """The rows of a table as they are, whatever is in them."""
        fields = ", ".join(f'typeof("{column.name}"), CAST("{column.name}" AS BLOB)' for column in table.c)
        for row in connection.exec_driver_sql(f'SELECT {fields} FROM "{table.name}"'):
            yield list(map(_decode_value, row[::2], row[1::2]))

    make_tables = staticmethod(make_tables)

    @staticmethod
    def read_last_keys(connection: Connection) -> list[tuple[str, int]]:
        """For each table with keys of its own, the last one, which is not used again; sorted."""
        found = connection.exec_driver_sql("SELECT name, seq FROM sqlite_sequence ORDER BY name")
        return [(name, last) for name, last in found]

    @staticmethod
    def set_last_keys(connection: Connection, rows: Sequence[tuple[str, int]]) -> None:
        """Replace the last keys of all tables."""
        connection.exec_driver_sql("DELETE FROM sqlite_sequence")
        if rows:
            connection.exec_driver_sql("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", list(rows))

    def size(self) -> int:
        """The size of the file in bytes, with what was written and waits in the log beside it."""
        log = self.path.with_name(self.path.name + "-wal")
        size = self.path.stat().st_size
        with suppress(FileNotFoundError):  # a process that closes the tome deletes the log
            size += log.stat().st_size
        return size

    def tend_indexes(self) -> None:
        """A file has no indexes of vectors."""

    def delete(self, *, if_empty: bool = False) -> None:
        """Delete the file, which nobody here has open any more.

        Whoever asks for one `if_empty` has the right of the writer, so that nobody fills it meanwhile.
        """
        delete_files(self.path)

    def move(self, path: Place) -> None:
        """Give the file, which nobody has open any more, another path in its folder. Raises Locked, StoreError."""
        assert isinstance(path, Path)
        move_file(self.path, path)

    def close(self, *, forked: bool) -> None:
        """Close all connections; in a fork, they belong to the parent process."""
        self._engine.dispose(close=not forked)


def _decode_value(kind: str, content: bytes) -> Any:
    """The value of which SQLite gave the type and the bytes; bytes for a text that is not UTF-8."""
    if kind == "text":
        with suppress(UnicodeDecodeError):
            return content.decode()
    return None if kind == "null" else _NUMBERS.get(kind, bytes)(content)


def _name_lock(name: str) -> str:
    """The file of a lock: `writer.lock`, and of a name with more words the first word and a digest of the others."""
    first, _, others = name.partition(" ")
    return f"{first}-{sha256(others.encode()).hexdigest()[:16]}.lock" if others else f"{first}.lock"
