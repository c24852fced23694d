"""A tome in a database of PostgreSQL: a schema there, and on this machine the arrays and words that follow it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any

import numpy as np
import psycopg
from filelock import FileLock, Timeout
from psycopg import sql
from sqlalchemy import (
    BindParameter,
    Column,
    ColumnElement,
    Connection,
    Engine,
    Select,
    Table,
    TextClause,
    bindparam,
    cast,
    func,
    select,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB, insert

from tomewise.beside import FolderBeside
from tomewise.errors import Locked, ReadingError, StoreError
from tomewise.settings import find_cache_folder
from tomewise.store.address import DatabaseAddress, Place
from tomewise.store.records import PASSAGES
from tomewise.store.sql import postgres_server
from tomewise.store.sql.blocks import Block
from tomewise.store.sql.damage import Contradictions, describe_damage, find_contradiction, find_misfit_row
from tomewise.store.sql.lists import bind_keys
from tomewise.store.sql.local_words import FILE_NAMES as WORDS_NAMES
from tomewise.store.sql.local_words import LocalWords, Source
from tomewise.store.sql.mirror import FILE_NAMES, Keys, Rows
from tomewise.store.sql.near_rows import NearRows
from tomewise.store.sql.node_rows import join_indexed_text
from tomewise.store.sql.postgres_arrays import (
    Deltas,
    find_removed,
    find_step,
    load_edges,
    load_vectors,
    record_step,
    write_columns,
)
from tomewise.store.sql.row_values import RESTORE, STREAMED, Misfit, RowNumber, RowVector, RowWhole, encode_json
from tomewise.store.sql.schema import LATEST, TABLES, documents, nodes, traces
from tomewise.store.sql.turn import find_driver, find_turn, take_turn
from tomewise.types import Condition, Document

_LOCK = "files.lock"
_LOCK_SECONDS = 3.0
_MANY = 5_000  # rows after which the planner must learn what the tables hold
_OPERATORS = {sign: sign for sign in ("=", "<", "<=", ">", ">=")}
_KINDS: tuple[tuple[type, str], ...] = ((RowWhole, "int8"), (RowNumber, "float8"), (RowVector, "bytea"))
_TYPES = {
    (table.name, column.name): next((name for kind, name in _KINDS if isinstance(column.type, kind)), "text")
    for table in TABLES.tables.values()
    for column in table.c
}
_PAIRS = """
SELECT string_agg(int8send(edges.key) || int8send(pair.at - 1), '')
FROM unnest(%s::bigint[], %s::bigint[]) WITH ORDINALITY AS pair (a, b, at)
JOIN edges ON edges.a = pair.a AND edges.space = %s AND edges.b = pair.b
"""
_WEIGHTS = """
UPDATE edges SET weight = given.weight, step = current_setting('tomewise.step')::bigint
FROM unnest(%s::bigint[], %s::float8[]) AS given (key, weight) WHERE edges.key = given.key
"""
# Each value of each field as a row: a list has one row for each item. The title is a field too, where the metadata has
# none of that name.
_VALUES = """FROM jsonb_each(CASE documents.title WHEN '' THEN documents.metadata::jsonb
ELSE jsonb_build_object('title', documents.title) || documents.metadata::jsonb END) AS field,
LATERAL jsonb_array_elements(CASE jsonb_typeof(field.value) WHEN 'array' THEN field.value
ELSE jsonb_build_array(field.value) END) AS item WHERE field.key = :field"""
_LARGEST = 2**63 - 1
_LARGEST_FLOAT = sys.float_info.max
# What the indexed text of a passage depends on, as a number; its id is a digest of its own text.
_STAMPS = """
SELECT nodes.key, hashtextextended(concat_ws(chr(31), nodes.id, nodes.data, documents.title), 0)
FROM nodes JOIN documents ON documents.key = nodes.document WHERE layer = {}
"""
_TEXTS = (
    select(nodes.c.key, documents.c.title, nodes.c.data, nodes.c.text)
    .join(documents, documents.c.key == nodes.c.document)
    .where(nodes.c.key.in_(bind_keys("keys")))
)


class PostgresDialect:
    """A tome in a schema of PostgreSQL, with the caches of its arrays and words in the user's cache folder."""

    follows_steps = True  # files of arrays may lag; they lie in the user's own folder, so their version says enough
    remedy = "ask its owner for the right to write, or name the main server"
    own_contradictions: Contradictions = (
        (
            "last_keys",
            """SELECT name FROM (SELECT 'nodes' AS name, max(key) AS last FROM nodes UNION
            SELECT 'edges', max(key) FROM edges UNION SELECT 'documents', max(key) FROM documents) AS used
            WHERE last > coalesce((SELECT seq FROM last_keys WHERE last_keys.name = used.name), -1)""",
            "no number after the last key",
        ),
        (
            "last_keys",
            f"SELECT name FROM last_keys WHERE seq NOT BETWEEN 0 AND {(1 << 62) - 1}",
            "no number that leaves room for further keys",
        ),
    )

    def __init__(
        self,
        place: DatabaseAddress,
        engine: Engine,
        identity: str,
        *,
        read_only: bool,
        exact_rows: int,
        is_strange: bool = False,
    ) -> None:
        self.address = str(place)
        self.read_only = read_only
        folder = find_cache_folder() / "databases"
        self.cache = FolderBeside(folder / identity, "-cache", f"{FILE_NAMES}|{WORDS_NAMES}|{_LOCK}")
        with suppress(OSError):  # where nothing can be written, the arrays and words are read anew
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.near = NearRows(place.tome, exact_rows)
        self._place = place
        self._engine = engine
        self._is_strange = is_strange
        self._words = LocalWords(self.cache)
        self._rights: list[psycopg.Connection] = []  # the connections of the rights that this process has

    # ------------------------------------------------------------ the database, its transactions and rights

    @classmethod
    def open(cls, place: DatabaseAddress, *, create: bool, read_only: bool, exact_rows: int) -> PostgresDialect:
        """Open the tome; make it if needed. Raises Locked, and StoreError where neither is possible."""
        engine = postgres_server.make_engine(place)
        try:
            marks = postgres_server.prepare(engine, place, create=create and not read_only)
            may = {"read_only": marks.read_only, "is_strange": marks.is_strange}
            return cls(place, engine, marks.identity, exact_rows=exact_rows, **may)
        except BaseException:
            engine.dispose()
            raise

    @classmethod
    @contextmanager
    def begin_new(cls, place: DatabaseAddress, exact_rows: int) -> Iterator[tuple[Connection, PostgresDialect]]:
        """One write transaction in a new tome, which is there once all is written. Raises StoreError."""
        engine = postgres_server.make_engine(place)
        try:
            with (
                postgres_server.translate_errors(place),
                postgres_server.write(engine, place) as connection,
                take_turn(connection, is_first=True),
            ):
                postgres_server.make_schema(connection, place, is_new=True)
                dialect = cls(place, engine, "new", read_only=False, exact_rows=exact_rows)
                yield connection, dialect
                connection.exec_driver_sql("INSERT INTO versions SELECT space, version, 1 FROM spaces")
                connection.exec_driver_sql("ANALYZE documents, nodes, edges, vectors, intake")
            dialect.tend_indexes()
        finally:
            engine.dispose()

    @staticmethod
    def find_sizes(place: DatabaseAddress) -> dict[str, int]:
        """The tomes of a database, sorted by name, each with its bytes. Raises StoreError."""
        return postgres_server.find_sizes(place)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """One moment of the tome. Raises StoreError."""
        with (
            postgres_server.translate_errors(self._place),
            postgres_server.read(self._engine) as connection,
            self._name_damage(),
        ):
            if self._is_strange:
                postgres_server.refuse_traps(connection, self._place)
            yield connection

    @contextmanager
    def write(self, *, wait: bool = True) -> Iterator[Connection]:
        """One write transaction, the only one of the tome: all inside is committed or nothing. Raises Locked."""
        with (
            postgres_server.translate_errors(self._place),
            postgres_server.write(self._engine, self._place, wait=wait, is_strange=self._is_strange) as connection,
            self._name_damage(),
            take_turn(connection),
        ):
            for right in tuple(self._rights):
                postgres_server.check_right(right, self._place)
            yield connection

    @contextmanager
    def append(self) -> Iterator[Connection]:
        """One write transaction for replies and traces, which waits for no writer."""
        with (
            postgres_server.translate_errors(self._place),
            postgres_server.write(self._engine, self._place, alone=False, is_strange=self._is_strange) as connection,
        ):
            yield connection

    @contextmanager
    def repair(self) -> Iterator[Connection]:
        """Read while the files of the arrays may be changed. Raises Locked if somebody else here changes them."""
        with self._lock_files(0) as is_free:
            if not is_free:
                raise Locked(f"{self.cache.path} is being written by another program")
            with self.read() as connection:
                yield connection

    def guard_files(self) -> AbstractContextManager[bool]:
        """Whether the files of the arrays may be changed now, in a write transaction."""
        return self._lock_files(_LOCK_SECONDS)

    @contextmanager
    def _lock_files(self, seconds: float) -> Iterator[bool]:
        """Whether this process alone may change the files; they stay as they are where none can be written."""
        try:
            lock = FileLock(str(self.cache.prepare_lock(_LOCK)), timeout=seconds, thread_local=False)
            lock.acquire()
        except (Timeout, OSError):
            yield False
            return
        try:
            yield True
        finally:
            lock.release()

    def finish_write(self, connection: Connection, deltas: Deltas, rows: int) -> None:
        """Record the changes of the arrays, and let the planner learn what many new rows changed, before the commit."""
        record_step(connection, deltas)
        if rows >= _MANY:
            connection.exec_driver_sql("ANALYZE documents, nodes, edges, vectors, intake")

    @contextmanager
    def hold(self, name: str, refusal: str) -> Iterator[None]:
        """Take the exclusive right of this name, which ends with the process. Raises Locked if somebody has it."""
        with (
            postgres_server.translate_errors(self._place),
            postgres_server.hold(self._engine, self._place, name, refusal) as right,
        ):
            self._rights.append(right)
            try:
                yield
            finally:
                self._rights.remove(right)

    @contextmanager
    def _name_damage(self) -> Iterator[None]:
        try:
            yield
        except Misfit as error:
            problem = f"the table {error.table} holds {error.reason}; {RESTORE}"
            raise StoreError(describe_damage(self.address, problem)) from error

    def check(self, connection: Connection) -> None:
        """Raise StoreError if a newer Tomewise changed the tome."""
        postgres_server.check_format(connection, self._place)

    def find_damage(self, connection: Connection) -> str:
        """What is damaged in the tables; empty if nothing is. This reads all of them."""
        return self.find_damaged_row(connection) or find_contradiction(connection, self.own_contradictions)

    @staticmethod
    def find_damaged_row(connection: Connection) -> str:
        """The first row with a value that does not fit its column, with its remedy; empty if all fit."""
        for table in TABLES.tables.values():
            listed = ", ".join(f'"{column.name}"' for column in table.c)
            rows = connection.exec_driver_sql(f'SELECT {listed} FROM "{table.name}"', execution_options=STREAMED)
            if found := find_misfit_row(table, rows):
                return found
        return ""

    @staticmethod
    def make_tables(connection: Connection, version: int = LATEST) -> None:
        """Make the tables if there are none, inside a write transaction. Raises StoreError for an older format."""
        if version != LATEST:
            raise StoreError(
                f"it has the format {version}, and a database takes {LATEST} alone: import it into a file, then use "
                "`tome copy`"
            )
        if connection.exec_driver_sql("SELECT to_regclass('tomewise')").scalar() is None:
            postgres_server.make_tables(connection)

    @staticmethod
    def list_columns(connection: Connection, table: str) -> set[str]:
        """The columns that a table has."""
        return set(TABLES.tables[table].c.keys())

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

    def tend_indexes(self) -> None:
        """Make the indexes of vectors that are missing. What was written stays, and a failure is a warning."""
        self.near.tend(self)

    def delete(self) -> None:
        """Delete the tome, which nobody here has open any more."""
        try:
            postgres_server.drop(self._engine, self._place)
        finally:
            self._engine.dispose()

    def move(self, place: Place) -> None:
        """Give the tome, which nobody here has open any more, another name. Raises Locked, StoreError."""
        assert isinstance(place, DatabaseAddress)
        try:
            postgres_server.rename(self._engine, self._place, place)
        finally:
            self._engine.dispose()

    def close(self, *, forked: bool) -> None:
        """Close all connections; in a fork, they belong to the parent process."""
        self._engine.dispose(close=not forked)
        if not forked:
            self._words.close()

    # ------------------------------------------------------------ expressions

    @staticmethod
    def field(fields: ColumnElement[Any], name: str) -> ColumnElement[Any]:
        """One text of a JSON object; empty for an object without this field."""
        return func.coalesce(func.jsonb_extract_path_text(cast(fields, JSONB), name), "")

    @staticmethod
    def count_bytes(text: ColumnElement[str]) -> ColumnElement[int]:
        """How many bytes a text takes."""
        return func.octet_length(text)

    @staticmethod
    def passes(condition: Condition) -> TextClause:
        """A test of one field of a document. Values of another kind are unequal, and neither less nor greater."""
        value = condition.value
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) > _LARGEST:
            value = float(value)
        if isinstance(value, bool):
            kind, item, given = "boolean", "(item.value #>> '{}')::boolean", "CAST(:value AS boolean)"
        elif isinstance(value, str):
            kind, item, given = "string", "(item.value #>> '{}') COLLATE \"C\"", "CAST(:value AS text)"
        else:
            number = "numeric" if isinstance(value, int) else "float8"
            kind, item, given = "number", f"(item.value #>> '{{}}')::{number}", f"CAST(:value AS {number})"
        operator = _OPERATORS.get(condition.operator)  # so that nothing but an operator gets into the statement
        # CASE, because AND may be tested in any order, and no other kind can be read as this one.
        test = f"CASE jsonb_typeof(item.value) WHEN '{kind}' THEN {item} {operator or '='} {given} ELSE false END"
        query = f"EXISTS (SELECT 1 {_VALUES} AND {test if operator else f'NOT {test}'})".replace("::", r"\:\:")
        values = {"field": condition.field, "value": value}
        bound: list[BindParameter[Any]] = [bindparam(name, each, unique=True) for name, each in values.items()]
        return text(query).bindparams(*bound)

    # ------------------------------------------------------------ rows

    @staticmethod
    def fetch(connection: Connection, query: Select[Any], **values: Any) -> Iterator[tuple[Any, ...]]:
        """The rows of a query that a module keeps, with these values. Raises Misfit."""
        return (tuple(row) for row in connection.execute(query, values))

    @staticmethod
    def fetch_bare(connection: Connection, query: Select[Any], **values: Any) -> Iterator[Any]:
        """As `fetch`, but no value is checked."""
        cursor: Any = connection.execute(query, values).cursor
        return iter(cursor)

    @staticmethod
    def check_document(document: Document) -> None:
        """Raise ReadingError for a document that PostgreSQL cannot store."""
        stated = document.id, document.title, document.source, document.text
        if any("\0" in each for each in stated) or "\\u0000" in encode_json(document.metadata):
            raise ReadingError(
                f"{document.id!r} holds a NUL character, which PostgreSQL does not take: take it out of the file"
            )
        for name, value in document.metadata.items():
            items = [value] if isinstance(value, str | int | float) else value
            if not all(isinstance(item, str) or abs(item) <= _LARGEST_FLOAT for item in items):  # NaN is not either
                raise ReadingError(f"{document.id!r} holds no finite number as its {name!a}: take it out of the file")

    @staticmethod
    def upsert(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert rows, or give those that have the same primary key these values."""
        statement = insert(table)
        fresh = {each.name: statement.excluded[each.name] for each in table.c if not each.primary_key}
        keys = [each.name for each in table.primary_key]
        # In one order everywhere, so that two transactions that write the same rows do not wait for each other.
        ordered = sorted(rows, key=lambda row: [row[key] for key in keys])
        connection.execute(statement.on_conflict_do_update(index_elements=keys, set_=fresh), ordered)

    @staticmethod
    def insert_new(connection: Connection, table: Table, query: Select[Any]) -> None:
        """Insert the rows of a query, except for those that are there."""
        connection.execute(insert(table).from_select(list(query.selected_columns), query).on_conflict_do_nothing())

    @staticmethod
    def find_new_keys(connection: Connection, table: Table, count: int) -> list[int]:
        """Ascending keys for so many rows, which no row ever had."""
        if table is not traces:
            return list(find_turn(connection).take_keys(connection, table.name, count))
        # Traces are written by several at a time, each outside of a turn.
        query = "UPDATE last_keys SET seq = seq + %s WHERE name = %s RETURNING seq"
        last = int(connection.exec_driver_sql(query, (count, table.name)).scalar_one())
        return list(range(last - count + 1, last + 1))

    @staticmethod
    def insert_rows(connection: Connection, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
        """Insert many rows with all columns in their order."""
        PostgresDialect.insert_values(connection, table.name, table.c.keys(), rows)

    @staticmethod
    def insert_values(
        connection: Connection, table: str, names: Sequence[str], rows: Sequence[tuple[Any, ...]]
    ) -> None:
        """Insert many rows with these columns. Raises StoreError, ValueError for a value that no column can have."""
        if not rows:
            return
        listed = sql.SQL(", ").join(map(sql.Identifier, names))
        statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT BINARY)").format(sql.Identifier(table), listed)
        try:
            with find_driver(connection).cursor() as cursor, cursor.copy(statement) as copy:
                copy.set_types([_TYPES[table, name] for name in names])
                for row in rows:
                    copy.write_row(row)
        except (psycopg.DataError, psycopg.IntegrityError, TypeError) as error:  # TypeError: from the driver
            if "NUL" in str(error):
                raise StoreError("a text holds a NUL character, which PostgreSQL does not take: take it out") from None
            raise ValueError(str(error)) from error

    @staticmethod
    def insert_vectors(connection: Connection, space: str, keys: Keys, rows: Rows) -> None:
        """Insert vectors (n, d) of float32 under these keys."""
        write_columns(connection, "vectors", {"space": space, "key": keys, "vector": rows})

    @staticmethod
    def insert_missing_edges(connection: Connection, space: str, a: Keys, b: Keys, weights: Rows) -> tuple[Keys, Rows]:
        """Insert the edges between these nodes that are missing; of equal ones the first counts. Returns these."""
        order = np.lexsort((b, a))  # which keeps equal ones in their order
        is_again = np.zeros(len(order), bool)
        is_again[order[1:]] = (a[order[1:]] == a[order[:-1]]) & (b[order[1:]] == b[order[:-1]])
        _, known = PostgresDialect.find_edges(connection, space, np.column_stack((a, b)))
        is_again[known] = True
        a, b, weights = a[~is_again], b[~is_again], weights[~is_again].astype(np.float64)
        keys = np.array(find_turn(connection).take_keys(connection, "edges", len(a)), np.int64)
        if len(keys):
            write_columns(connection, "edges", {"key": keys, "space": space, "a": a, "b": b, "weight": weights})
        return keys, np.column_stack((a, b, weights))

    @staticmethod
    def find_edges(connection: Connection, space: str, pairs: Keys) -> tuple[Keys, Keys]:
        """The keys of the edges between these pairs of node keys (n, 2), and for each of them the row of its pair.

        A pair without an edge is left out.
        """
        ends = np.asarray(pairs, np.int64).reshape(-1, 2)
        found = connection.exec_driver_sql(_PAIRS, (ends[:, 0], ends[:, 1], space)).scalar()
        table = np.frombuffer(found or b"", ">i8").astype(np.int64).reshape(-1, 2)
        return table[:, 0], table[:, 1]

    @staticmethod
    def set_weights(connection: Connection, keys: Keys, weights: Rows) -> None:
        """Give the edges under these keys other weights."""
        if len(keys):
            connection.exec_driver_sql(_WEIGHTS, (keys, weights))

    @staticmethod
    def load_edges(connection: Connection, space: str) -> Iterator[Block]:
        """The edges of a space in blocks: keys, and rows of a, b and weight. Raises Misfit."""
        return load_edges(connection, space)

    @staticmethod
    def load_vectors(connection: Connection, space: str, width: int) -> Iterator[Block]:
        """The vectors of a space in blocks: keys, and rows of float32. Raises Misfit for one of another width."""
        return load_vectors(connection, space, width)

    @staticmethod
    def load_changes(
        connection: Connection, space: str, version: int, width: int
    ) -> tuple[Keys, Iterator[Block]] | None:
        """The keys of the rows of a space that went since this version, and those that came; None if it is not known.

        `space` is `vectors/NAME` or `edges/NAME`, `width` that of the vectors.
        """
        step = find_step(connection, space, version)
        if step is None:
            return None
        kind, name = space.split("/", 1)
        came = load_vectors(connection, name, width, step) if kind == "vectors" else load_edges(connection, name, step)
        return find_removed(connection, space, step), came

    @staticmethod
    def read_names(connection: Connection, names: Column[str]) -> list[str]:
        """All values of a column, sorted."""
        return list(connection.scalars(select(names).order_by(names)))

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
        mark = int(connection.exec_driver_sql("SELECT words FROM tomewise").scalar_one())

        def read_stamps() -> dict[int, int]:
            return dict(_stream(connection, _STAMPS, (PASSAGES,), ["int8", "int8"]))

        def read_texts(keys: list[int]) -> Iterable[tuple[int, str]]:
            rows = connection.execute(_TEXTS, {"keys": keys})
            return ((key, join_indexed_text(title, data, text)) for key, title, data, text in rows)

        return mark, read_stamps, read_texts


def _stream(connection: Connection, query: str, values: tuple[Any, ...], types: list[str]) -> Iterator[Any]:
    # COPY: the rows are read as they come, and are not held by the driver all at once.
    selected = sql.SQL(query).format(*map(sql.Literal, values))
    statement = sql.SQL("COPY ({}) TO STDOUT (FORMAT BINARY)").format(selected)
    with find_driver(connection).cursor() as cursor, cursor.copy(statement) as copy:
        copy.set_types(types)
        yield from copy.rows()
