"""A tome in a database of PostgreSQL: a schema there, and on this machine the arrays and words that follow it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any

from filelock import FileLock, Timeout
from sqlalchemy import Connection, Engine, Table

from tomewise.beside import FolderBeside
from tomewise.errors import Locked
from tomewise.settings import find_cache_folder
from tomewise.store.address import DatabaseAddress, Place
from tomewise.store.rights import WRITER
from tomewise.store.sql import postgres_server
from tomewise.store.sql.damage import name_damage
from tomewise.store.sql.lists import bind_keys
from tomewise.store.sql.local_words import FILE_NAMES as WORDS_NAMES
from tomewise.store.sql.local_words import LocalWords, Source
from tomewise.store.sql.mirror import FILE_NAMES, Deltas, Keys
from tomewise.store.sql.near_rows import NearRows
from tomewise.store.sql.node_rows import INDEXED, list_indexed_texts
from tomewise.store.sql.postgres_arrays import find_driver, record_step
from tomewise.store.sql.postgres_rows import PostgresRows
from tomewise.store.sql.postgres_server import Marks, Right
from tomewise.store.sql.row_values import STREAMED, read_value
from tomewise.store.sql.schema import nodes
from tomewise.store.sql.turn import find_turn, take_turn

_LOCK = "files.lock"
_LOCK_SECONDS = 3.0
_MANY = 5_000  # rows after which the planner must learn what the tables hold
# What the indexed text of a passage depends on, as a number; its id is a digest of its own text.
# COPY: the rows are read as they come, and are not held by the driver all at once.
_STAMPS = b"""
COPY (SELECT nodes.key, hashtextextended(concat_ws(chr(31), nodes.id, nodes.data, documents.title), 0)
FROM nodes JOIN documents ON documents.key = nodes.document WHERE layer = 'passages') TO STDOUT (FORMAT BINARY)
"""
_TEXTS = INDEXED.where(nodes.c.key.in_(bind_keys("keys")))


class PostgresDialect(PostgresRows):
    """A tome in a schema of PostgreSQL, with the caches of its arrays and words in the user's cache folder."""

    follows_steps = True  # files of arrays may lag; they lie in the user's own folder, so their version says enough
    remedy = "ask its owner for the right to write, or name the main server"
    last_keys = "last_keys"

    def __init__(
        self,
        place: DatabaseAddress,
        engine: Engine,
        marks: Marks | None,
        exact_rows: int,
    ) -> None:
        self.address = str(place)
        self.read_only = marks is not None and marks.read_only
        folder = find_cache_folder() / "databases"
        name = marks.place if marks else "new"
        self.cache = FolderBeside(folder / name, "-cache", f"{FILE_NAMES}|{WORDS_NAMES}|{_LOCK}")
        with suppress(OSError):  # where nothing can be written, the arrays and words are read anew
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.near = NearRows(place.tome, exact_rows)
        self._place = place
        self._engine = engine
        self._marks = marks  # None while the tome is made
        self._is_pooled = marks is not None and marks.is_pooled
        self._words = LocalWords(self.cache)
        self._rights: list[Right] = []  # that this process holds
        self._writes_unheld = False  # each write transaction takes the right of the writer, as nothing can hold it

    # ------------------------------------------------------------ the database, its transactions and rights

    @classmethod
    def open(cls, place: DatabaseAddress, *, create: bool, read_only: bool, exact_rows: int) -> PostgresDialect:
        """Open the tome; make it if needed. Raises Locked, and StoreError where neither is possible."""
        engine = postgres_server.make_engine(place)
        try:
            marks = postgres_server.prepare(engine, place, create=create and not read_only)
            return cls(place, engine, marks, exact_rows)
        except BaseException:
            engine.dispose()
            raise

    @classmethod
    @contextmanager
    def begin_new(cls, place: DatabaseAddress, exact_rows: int) -> Iterator[tuple[Connection, PostgresDialect]]:
        """One write transaction in a new tome, which is there once all is written. Raises StoreError."""
        engine = postgres_server.make_engine(place)
        try:
            with postgres_server.write(engine, place) as connection, take_turn(connection, is_first=True):
                postgres_server.make_schema(connection, place)
                dialect = cls(place, engine, None, exact_rows)
                yield connection, dialect
                connection.exec_driver_sql("INSERT INTO versions SELECT space, version, 1 FROM spaces")
                connection.exec_driver_sql("ANALYZE documents, nodes, edges, vectors, intake")
            dialect.tend_indexes()
        finally:
            engine.dispose()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """One moment of the tome. Raises StoreError."""
        with (
            postgres_server.read(self._engine, self._place, self._marks) as connection,
            name_damage(connection, self),
        ):
            yield connection

    @contextmanager
    def write(self, *, wait: bool = True) -> Iterator[Connection]:
        """One write transaction, the only one of the tome: all inside is committed or nothing. Raises Locked."""
        rights = [WRITER] if self._writes_unheld else []
        with (
            postgres_server.write(self._engine, self._place, self._marks, wait=wait, rights=rights) as connection,
            name_damage(connection, self),
            take_turn(connection),
        ):
            for right in tuple(self._rights):
                postgres_server.check_right(right, self._place)
            yield connection

    @contextmanager
    def append(self) -> Iterator[Connection]:
        """One write transaction for replies and traces, which waits for no writer."""
        with postgres_server.write(self._engine, self._place, self._marks, alone=False) as connection:
            yield connection

    @contextmanager
    def repair(self, reading: Connection | None) -> Iterator[Connection]:
        """Read while the files of the arrays may be changed. Raises Locked if somebody else here changes them.

        Who is `reading` goes on with that connection where a pool may have no second one.
        """
        with self._lock_files(0) as is_free:
            if not is_free:
                raise Locked(f"{self.cache.path} is being written by another program")
            with nullcontext(reading) if reading is not None and self._is_pooled else self.read() as connection:
                yield connection

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

    def finish_write(self, connection: Connection, deltas: Deltas, rows: int) -> None:
        """Record the changes of the arrays, and let the planner learn what many new rows changed, before the commit."""
        self.near.keep(connection, deltas)
        record_step(connection, deltas)
        if rows >= _MANY:
            connection.exec_driver_sql("ANALYZE documents, nodes, edges, vectors, intake")

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
        with postgres_server.hold(self._engine, self._place, name, refusal) as right:
            self._rights.append(right)
            try:
                yield
            finally:
                self._rights.remove(right)

    def check(self, connection: Connection) -> None:
        """Raise StoreError if a newer Tomewise changed the tome."""
        postgres_server.check_tables(connection, self._place)

    @staticmethod
    def find_damaged_index(connection: Connection) -> str:
        """Indexes are those of the server."""
        return ""

    @staticmethod
    def read_bare(connection: Connection, table: Table) -> Iterable[Sequence[Any]]:
        """The rows of a table as they are."""
        listed = ", ".join(f'"{column.name}"' for column in table.c)
        return connection.exec_driver_sql(f'SELECT {listed} FROM "{table.name}"', execution_options=STREAMED)

    make_tables = staticmethod(postgres_server.make_tables)

    @staticmethod
    def read_last_keys(connection: Connection) -> list[tuple[str, int]]:
        """For each table with keys of its own that was used, the last one, which is not used again; sorted."""
        found = connection.exec_driver_sql("SELECT name, seq FROM last_keys WHERE seq > 0 ORDER BY name")
        return [(name, last) for name, last in found]

    @staticmethod
    def set_last_keys(connection: Connection, rows: Sequence[tuple[str, int]]) -> None:
        """Replace the last keys of all tables."""
        for name, last in rows:
            connection.exec_driver_sql("UPDATE last_keys SET seq = %s WHERE name = %s", (last, name))

    def size(self) -> int:
        """The size of the tables in bytes, with their indices."""
        with self.read() as connection:
            return postgres_server.read_size(connection)

    def forget_removed_words(self) -> None:
        """Words stay in the cache, which is deleted whole."""

    def tend_indexes(self) -> None:
        """Make the indexes of vectors that are missing. What was written stays, and a failure is a warning."""
        self.near.tend(self)

    def delete(self, *, if_empty: bool = False) -> None:
        """Delete the tome, which nobody here has open any more. Raises StoreError where others use its schema."""
        with self._write_last() as connection:
            postgres_server.drop(connection, self._place, if_empty=if_empty)

    def move(self, place: Place) -> None:
        """Give the tome, which nobody here has open any more, another name. Raises Locked, StoreError."""
        assert isinstance(place, DatabaseAddress)
        with self._write_last() as connection:
            postgres_server.rename(connection, self._place, place)

    @contextmanager
    def _write_last(self) -> Iterator[Connection]:
        try:
            with self.write() as connection:
                yield connection
        finally:
            self._engine.dispose()

    def close(self, *, forked: bool) -> None:
        """Close all connections; in a fork, they belong to the parent process."""
        self._engine.dispose(close=not forked)
        if not forked:
            self._words.close()

    # ------------------------------------------------------------ words, which stay on this machine

    @staticmethod
    def index_words(connection: Connection, rows: Sequence[tuple[int, str]]) -> None:
        """Tell the machines that passages came; each reads their texts when it searches for words."""
        find_turn(connection).changes_words |= bool(rows)

    @staticmethod
    def forget_words(connection: Connection, rows: Sequence[tuple[int, str]]) -> None:
        """Tell the machines that passages went."""
        PostgresDialect.index_words(connection, rows)

    def search_words(
        self, connection: Connection, words: Sequence[str], limit: int, within: Keys | None
    ) -> list[tuple[int, float]]:
        """The best node keys, all or those within, that hold one of the words, with BM25 scores; higher is better."""
        return self._words.search(self._find_source(connection), words, limit, within)

    def find_holders(self, connection: Connection, phrase: str, among: Keys) -> tuple[int, Keys]:
        """The number of texts that hold these words side by side, and those of `among` that do, ascending."""
        return self._words.find_holders(self._find_source(connection), phrase, among)

    @staticmethod
    def _find_source(connection: Connection) -> Source:
        mark = int(read_value(connection, "SELECT words FROM tomewise"))

        def read_stamps() -> dict[int, int]:
            with find_driver(connection).cursor() as cursor, cursor.copy(_STAMPS) as copy:
                copy.set_types(["int8", "int8"])
                return dict(copy.rows())

        def read_texts(keys: list[int]) -> Iterable[tuple[int, str]]:
            return list_indexed_texts(connection.execute(_TEXTS, {"keys": keys}))

        return mark, read_stamps, read_texts
