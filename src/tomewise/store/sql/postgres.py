"""A tome in a database of PostgreSQL: a schema there, and on this machine the arrays and words that follow it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any

from filelock import FileLock, Timeout
from sqlalchemy import Connection

from tomewise.errors import Locked
from tomewise.settings import find_cache_folder
from tomewise.store.address import DatabaseAddress, TomeAddress
from tomewise.store.beside import FolderBeside
from tomewise.store.rights import WRITER
from tomewise.store.sql import postgres_server
from tomewise.store.sql.damage import name_damage
from tomewise.store.sql.local_words import FILE_NAMES as WORDS_NAMES
from tomewise.store.sql.local_words import LocalWords
from tomewise.store.sql.mirror import FILE_NAMES, Deltas
from tomewise.store.sql.postgres_rows import PostgresTransaction
from tomewise.store.sql.postgres_server import PostgresServer, Right

_LOCK = "files.lock"
_LOCK_SECONDS = 3.0
_MANY = 5_000  # rows after which the planner must learn what the tables hold
_ANALYZE = "ANALYZE documents, nodes, edges, vectors, intake"


class PostgresDialect:
    """A tome in a schema of PostgreSQL, with the caches of its arrays and words in the user's cache folder."""

    follows_steps = True  # files of arrays may lag; they lie in the user's own folder, so their version says enough
    remedy = "ask its owner for the right to write, or name the main server"
    forget_removed_words = None  # words stay in the cache, which is deleted whole

    def __init__(self, server: PostgresServer) -> None:
        marks = server.marks  # None while the tome is made
        self.address = str(server.address)
        self.read_only = marks is not None and marks.read_only
        folder = find_cache_folder() / "databases"
        name = marks.place if marks else "new"
        self.cache = FolderBeside(folder / name, "-cache", f"{FILE_NAMES}|{WORDS_NAMES}|{_LOCK}")
        with suppress(OSError):  # where nothing can be written, the arrays and words are read anew
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._server = server
        self._is_pooled = marks is not None and marks.is_pooled
        self._words = LocalWords(self.cache)
        self._rights: list[Right] = []  # that this process holds
        self._writes_unheld = False  # each write transaction takes the right of the writer, as nothing can hold it

    # ------------------------------------------------------------ the database, its transactions and rights

    @classmethod
    def open(cls, place: TomeAddress, *, create: bool, read_only: bool) -> PostgresDialect:
        """Open the tome; make it if needed. Raises Locked, and StoreError where neither is possible."""
        assert isinstance(place, DatabaseAddress)
        server = PostgresServer(place)
        try:
            server.prepare(create=create and not read_only)
            return cls(server)
        except BaseException:
            server.engine.dispose()
            raise

    @classmethod
    @contextmanager
    def begin_new(cls, place: TomeAddress) -> Iterator[PostgresTransaction]:
        """One write transaction in a new tome, which is there once all is written. Raises StoreError."""
        assert isinstance(place, DatabaseAddress)
        server = PostgresServer(place)
        dialect = cls(server)
        try:
            with server.write() as connection:
                transaction = dialect._make_transaction(connection)
                transaction.begin_step(is_first=True)
                postgres_server.make_schema(connection, place)
                yield transaction
                transaction.run("INSERT INTO versions SELECT space, version, 1 FROM spaces")
                transaction.run(_ANALYZE)
                transaction.end_step()
        finally:
            server.engine.dispose()

    @contextmanager
    def read(self) -> Iterator[PostgresTransaction]:
        """One moment of the tome. Raises StoreError."""
        with (
            self._server.read() as connection,
            name_damage(self._make_transaction(connection)) as transaction,
        ):
            yield transaction

    @contextmanager
    def write(self, *, wait: bool = True) -> Iterator[PostgresTransaction]:
        """One write transaction, the only one of the tome: all inside is committed or nothing. Raises Locked."""
        rights = [WRITER] if self._writes_unheld else []
        with (
            self._server.write(wait=wait, rights=rights) as connection,
            name_damage(self._make_transaction(connection)) as transaction,
        ):
            transaction.begin_step()
            for right in tuple(self._rights):
                self._server.check_right(right)
            yield transaction
            transaction.end_step()

    @contextmanager
    def append(self) -> Iterator[PostgresTransaction]:
        """One write transaction for replies and traces, which waits for no writer."""
        with self._server.write(alone=False) as connection:
            yield self._make_transaction(connection)

    def _make_transaction(self, connection: Connection) -> PostgresTransaction:
        return PostgresTransaction(connection, self.address, self._words)

    @contextmanager
    def repair(self, reading: Any) -> Iterator[PostgresTransaction]:
        """Read while the files of the arrays may be changed. Raises Locked if somebody else here changes them.

        Who is `reading` goes on with that transaction where a pool may have no second one.
        """
        with self._lock_files(0) as is_free:
            if not is_free:
                raise Locked(f"{self.cache.path} is being written by another program")
            with nullcontext(reading) if reading is not None and self._is_pooled else self.read() as transaction:
                yield transaction

    def guard_files(self) -> AbstractContextManager[bool]:
        """Whether the files of the arrays may be changed now, in a write transaction."""
        return self._lock_files(_LOCK_SECONDS)

    @contextmanager
    def _lock_files(self, seconds: float) -> Iterator[bool]:
        """Whether this process alone may change the files; they stay as they are where none can be written."""
        try:
            lock = FileLock(str(self.cache.prepare_lock(_LOCK)), timeout=seconds, thread_local=False).acquire()
        except (Timeout, OSError):
            yield False
            return
        with lock:
            yield True

    def finish_write(self, transaction: Any, deltas: Deltas, rows: int) -> None:
        """Record the changes of the arrays, and let the planner learn what many new rows changed, before the commit."""
        transaction.record_step(deltas)
        if rows >= _MANY:
            transaction.run(_ANALYZE)

    @contextmanager
    def hold(self, name: str, refusal: str, *, is_long: bool) -> Iterator[None]:
        """Take the exclusive right of this name, which ends with the process. Raises Locked if somebody has it.

        Behind a pooler no lock is sure to outlive a transaction: there each one that writes takes the right of a
        writer, and one that `is_long` needs a pooler that gives every client a connection of its own.
        """
        if self._is_pooled and not is_long:
            if name == WRITER:
                self._writes_unheld = True
            try:
                yield
            finally:
                if name == WRITER:
                    self._writes_unheld = False
            return
        with self._server.hold(name, refusal) as right:
            self._rights.append(right)
            try:
                yield
            finally:
                self._rights.remove(right)

    def size(self) -> int:
        """The size of the tables in bytes, with their indices."""
        with self.read() as transaction:
            return int(transaction.read_value(postgres_server.SIZE))

    def delete(self, *, if_empty: bool = False) -> None:
        """Delete the tome, which nobody here has open any more. Raises StoreError where others use its schema."""
        with self._write_last() as transaction:
            postgres_server.drop(transaction.connection, self._server.address, if_empty=if_empty)

    def move(self, place: TomeAddress) -> None:
        """Give the tome, which nobody here has open any more, another name. Raises Locked, StoreError."""
        assert isinstance(place, DatabaseAddress)
        with self._write_last() as transaction:
            postgres_server.rename(transaction.connection, self._server.address, place)

    @contextmanager
    def _write_last(self) -> Iterator[PostgresTransaction]:
        try:
            with self.write() as transaction:
                yield transaction
        finally:
            self._server.engine.dispose()

    def close(self, *, forked: bool) -> None:
        """Close all connections; in a fork, they belong to the parent process."""
        self._server.engine.dispose(close=not forked)
        if not forked:
            self._words.close()
