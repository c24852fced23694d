"""A transaction in PostgreSQL: expressions, rows and words that statements of all databases say otherwise here.

Each write transaction that changes arrays is a step. A row carries the step at which it came, and a removed one leaves
a mark in the table `gone`. The table `versions` says at which step a space got which random version: a mirror of a
version that stands there needs only what came and went later. Any other one, such as that of a database before it was
restored from a backup, is read anew.
"""

from __future__ import annotations

import re
import secrets
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import psycopg
from psycopg import sql
from sqlalchemy import Connection, text

from tomewise.errors import ReadingError, StoreError
from tomewise.store.sql.local_words import LocalWords, Source
from tomewise.store.sql.mirror import Block, Deltas, Keys, Rows
from tomewise.store.sql.node_rows import INDEXED, list_indexed_texts
from tomewise.store.sql.postgres_arrays import load_edges, load_vectors, read_keys, write_columns
from tomewise.store.sql.postgres_server import make_tables
from tomewise.store.sql.row_values import STREAMED, encode_json
from tomewise.store.sql.schema import OBJECT, TABLES, Table
from tomewise.store.sql.transaction import SharedTransaction
from tomewise.types import Document

MOST_VERSIONS = 256  # of a space that are known; what went before the oldest of them is forgotten
MOST_MARKS = 100_000  # of a space: a mirror that would have to read more is read anew
FORGET_EVERY = 64  # steps
# The default of the column `step` is this setting: see the tables in `postgres_server`.
_BEGIN_STEP = "SELECT set_config('tomewise.step', (step + 1)::text, true)::bigint FROM tomewise"
_FIRST_STEP = "SELECT set_config('tomewise.step', '1', true)::bigint"
_STEP = "SELECT step FROM versions WHERE space = %s AND version = %s"
_GONE = "SELECT string_agg(DISTINCT int8send(key), '') FROM gone WHERE space = %s AND step > %s"
_FORGET = """
WITH counted AS (SELECT space, step, count(*) AS marks FROM gone GROUP BY space, step), known AS (
  SELECT space, step, row_number() OVER (PARTITION BY space ORDER BY step DESC) AS age, (SELECT coalesce(sum(marks), 0)
    FROM counted WHERE counted.space = versions.space AND counted.step > versions.step) AS marks FROM versions
), kept AS (SELECT space, min(step) AS step FROM known WHERE age <= %s AND marks <= %s GROUP BY space),
forgotten AS (DELETE FROM versions USING kept WHERE versions.space = kept.space AND versions.step < kept.step)
DELETE FROM gone USING kept WHERE gone.space = kept.space AND gone.step <= kept.step
"""
_PAIRS = """
SELECT string_agg(int8send(edges.key) || int8send(pair.at - 1), '')
FROM unnest(%s::bigint[], %s::bigint[]) WITH ORDINALITY AS pair (a, b, at)
JOIN edges ON edges.a = pair.a AND edges.space = %s AND edges.b = pair.b
"""
_WEIGHTS = """
UPDATE edges SET weight = given.weight, step = current_setting('tomewise.step')::bigint
FROM unnest(%s::bigint[], %s::float8[]) AS given (key, weight) WHERE edges.key = given.key
"""
_VALUES = """FROM jsonb_each(CASE documents.title WHEN '' THEN CAST(documents.metadata AS jsonb)
ELSE jsonb_build_object('title', documents.title) || CAST(documents.metadata AS jsonb) END) AS field,
LATERAL jsonb_array_elements(CASE jsonb_typeof(field.value) WHEN 'array' THEN field.value
ELSE jsonb_build_array(field.value) END) AS item WHERE field.key = :field"""
# What the indexed text of a passage depends on, as a number; its id is a digest of its own text.
# COPY: the rows are read as they come, and are not held by the driver all at once.
_STAMPS = b"""
COPY (SELECT nodes.key, hashtextextended(concat_ws(chr(31), nodes.id, nodes.data, documents.title), 0)
FROM nodes JOIN documents ON documents.key = nodes.document WHERE layer = 'passages') TO STDOUT (FORMAT BINARY)
"""
_LIST = re.compile(r"IN :(\w+)")
_LARGEST_FLOAT = sys.float_info.max
_TYPES = {"TEXT": "text", OBJECT: "text", "INTEGER": "int8", "REAL": "float8", "BLOB": "bytea"}


class PostgresTransaction(SharedTransaction):
    """See `SqliteTransaction` for the same of a file. `words` are those of this machine.

    A row that a transaction updates a thousand times has a thousand versions until it commits, and each update searches
    them. So one that writes counts the last keys in memory, and `end_step` writes them and the step down once.
    """

    field_values = _VALUES
    text_field = "coalesce(jsonb_extract_path_text(CAST({} AS jsonb), '{}'), '')"
    size = "octet_length({})"
    last_keys = "last_keys"
    format_query = "SELECT format FROM tomewise"

    def __init__(self, connection: Connection, address: str, words: LocalWords) -> None:
        super().__init__(connection, address)
        self.step = 0
        self._words = words
        self._taken_keys: dict[str, int] = {}  # the last keys by table as they are by now
        self._changes_words = False
        self._changes_arrays = False

    # ------------------------------------------------------------ steps

    def begin_step(self, *, is_first: bool = False) -> None:
        """Begin to write; with `is_first` there are no tables at the beginning."""
        self.step = int(self.read_value(_FIRST_STEP if is_first else _BEGIN_STEP))

    def end_step(self) -> None:
        """Write down what was counted, before the commit."""
        self.set_last_keys(list(self._taken_keys.items()))
        if self._changes_words:
            self.run("UPDATE tomewise SET words = %s", (secrets.randbits(62) + 1,))
        if self._changes_arrays:
            self.run("UPDATE tomewise SET step = %s", (self.step,))

    def record_step(self, deltas: Deltas) -> None:
        """Record what this transaction changes in the arrays."""
        self._changes_arrays |= bool(deltas)
        for space, (_, version, delta) in deltas.items():
            if len(delta.removed) > MOST_MARKS:
                for table in ("versions", "gone"):
                    self.run(f"DELETE FROM {table} WHERE space = %s", (space,))
            elif len(delta.removed):
                self.run("INSERT INTO gone SELECT %s, unnest(%s), %s", (space, delta.removed, self.step))
            self.run("INSERT INTO versions VALUES (%s, %s, %s)", (space, version, self.step))
        if deltas and self.step % FORGET_EVERY == 0:
            self.run(_FORGET, (MOST_VERSIONS, MOST_MARKS))

    # ------------------------------------------------------------ the database

    def make_tables(self) -> None:
        """Make the tables of a new tome, with its identity."""
        make_tables(self.connection)

    def find_damaged_index(self) -> str:
        """Indexes are those of the server."""
        return ""

    def read_rows(self, table: Table, order: str = "") -> Iterable[Sequence[Any]]:
        """See `SharedTransaction`."""
        listed = ", ".join(f'"{name}"' for name in table.columns)
        return self.run(f"SELECT {listed} FROM {table.name} {order}", execution_options=STREAMED)

    def set_last_keys(self, rows: Sequence[tuple[str, int]]) -> None:
        """Replace the last keys of these tables."""
        for name, last in rows:
            self.run("UPDATE last_keys SET seq = %s WHERE name = %s", (last, name))

    # ------------------------------------------------------------ expressions

    @staticmethod
    def write_test(value: object, operator: str | None) -> str:
        """See `SharedTransaction`."""
        if isinstance(value, bool):
            kind, item, given = "boolean", "CAST(item.value #>> '{}' AS boolean)", "CAST(:value AS boolean)"
        elif isinstance(value, str):
            kind, item, given = "string", "(item.value #>> '{}') COLLATE \"C\"", "CAST(:value AS text)"
        else:
            number = "numeric" if isinstance(value, int) else "float8"
            kind, item, given = "number", f"CAST(item.value #>> '{{}}' AS {number})", f"CAST(:value AS {number})"
        # CASE, because AND may be tested in any order, and no other kind can be read as this one.
        test = f"CASE jsonb_typeof(item.value) WHEN '{kind}' THEN {item} {operator or '='} {given} ELSE false END"
        return test if operator else f"NOT {test}"

    # ------------------------------------------------------------ rows

    def ask(self, statement: str, **values: Any) -> Any:
        """See `SharedTransaction`."""
        found: Any = self.connection.execute(text(_LIST.sub(_write_list, statement)), values)
        return found.cursor if found.returns_rows else found

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

    def find_new_keys(self, table: str, count: int) -> list[int]:
        """Ascending keys for so many rows, which no row ever had."""
        if table == "traces":  # which are written by several at a time, in no step
            query = "UPDATE last_keys SET seq = seq + %s WHERE name = %s RETURNING seq"
            last = int(self.read_value(query, count, table))
        else:
            if table not in self._taken_keys:
                query = "SELECT seq FROM last_keys WHERE name = %s"
                self._taken_keys[table] = int(self.read_value(query, table))
            last = self._taken_keys[table] = self._taken_keys[table] + count
        return list(range(last - count + 1, last + 1))

    def insert_rows(self, table: str, rows: Sequence[tuple[Any, ...]], names: Sequence[str] = ()) -> None:
        """Insert many rows, with all columns or with these. Raises StoreError, ValueError for a value of no column."""
        if not rows:
            return
        columns = TABLES[table].columns
        names = names or list(columns)
        listed = sql.SQL(", ").join(map(sql.Identifier, names))
        statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT BINARY)").format(sql.Identifier(table), listed)
        try:
            with self.driver.cursor() as cursor, cursor.copy(statement) as copy:
                copy.set_types([_TYPES[columns[name].kind] for name in names])
                for row in rows:
                    copy.write_row(row)
        except (psycopg.DataError, psycopg.IntegrityError, TypeError) as error:  # TypeError: from the driver
            if "NUL" in str(error):
                raise StoreError("a text holds a NUL character, which PostgreSQL does not take: take it out") from None
            raise ValueError(str(error)) from error

    def insert_vectors(self, space: str, keys: Keys, rows: Rows) -> None:
        """Insert vectors (n, d) of float32 under these keys."""
        write_columns(self.driver, "vectors", {"space": space, "key": keys, "vector": rows})

    def insert_missing_edges(self, space: str, a: Keys, b: Keys, weights: Rows) -> Block:
        """Insert the edges between these nodes that are missing; of equal ones the first counts. Returns these."""
        pairs = np.column_stack((a, b))
        missing = np.delete(np.arange(len(a)), self.find_edges(space, pairs)[1])
        _, firsts = np.unique(pairs[missing], axis=0, return_index=True)
        fresh = missing[np.sort(firsts)]
        # A file counts the keys of all that are given, and equal tomes have equal keys.
        keys = np.array(self.find_new_keys("edges", len(a)), np.int64)[fresh]
        ends = {"a": a[fresh], "b": b[fresh], "weight": weights[fresh].astype(np.float64)}
        if len(keys):
            write_columns(self.driver, "edges", {"key": keys, "space": space, **ends})
        return keys, np.column_stack((a, b, weights))[fresh]

    def find_edges(self, space: str, pairs: Keys) -> tuple[Keys, Keys]:
        """The keys of the edges between these pairs of node keys (n, 2), and for each of them the row of its pair.

        A pair without an edge is left out.
        """
        ends = np.asarray(pairs, np.int64).reshape(-1, 2)
        table = read_keys(self.read_value(_PAIRS, ends[:, 0], ends[:, 1], space)).reshape(-1, 2)
        return table[:, 0], table[:, 1]

    def set_weights(self, keys: Keys, weights: Rows) -> None:
        """Give the edges under these keys other weights."""
        if len(keys):
            self.run(_WEIGHTS, (keys, weights))

    def load_edges(self, space: str) -> Iterator[Block]:
        """The edges of a space in blocks: keys, and rows of a, b and weight."""
        return load_edges(self.driver, space)

    def load_vectors(self, space: str, width: int) -> Iterator[Block]:
        """The vectors of a space in blocks: keys, and rows of float32. Raises Misfit for one of another width."""
        return load_vectors(self.driver, space, width)

    def load_changes(self, space: str, version: int, width: int) -> tuple[Keys, Iterator[Block]] | None:
        """The keys of the rows of a space that went since this version, and those that came; None if it is not known.

        `space` is `vectors/NAME` or `edges/NAME`, `width` that of the vectors.
        """
        step = self.read_value(_STEP, space, version)
        if step is None:
            return None
        gone = read_keys(self.read_value(_GONE, space, step))
        kind, name = space.split("/", 1)
        if kind == "vectors":
            return gone, load_vectors(self.driver, name, width, step)
        return gone, load_edges(self.driver, name, step)

    def read_names(self, table: str, column: str) -> list[str]:
        """All values of a column, sorted."""
        return list(self.run(f"SELECT {column} FROM {table} ORDER BY 1").scalars())

    # ------------------------------------------------------------ words, which stay on this machine

    def index_words(self, rows: Sequence[tuple[int, str]]) -> None:
        """Tell the machines that passages came; each reads their texts when it searches for words."""
        self._changes_words |= bool(rows)

    def forget_words(self, rows: Sequence[tuple[int, str]]) -> None:
        """Tell the machines that passages went."""
        self.index_words(rows)

    def search_words(self, words: Sequence[str], limit: int, within: Keys | None) -> list[tuple[int, float]]:
        """The best node keys, all or those within, that hold one of the words, with BM25 scores; higher is better."""
        return self._words.ask(self._find_source(), lambda file: file.search_words(words, limit, within))

    def find_holders(self, phrase: str, among: Keys) -> tuple[int, Keys]:
        """The number of texts that hold these words side by side, and those of `among` that do, ascending."""
        return self._words.ask(self._find_source(), lambda file: file.find_holders(phrase, among))

    def _find_source(self) -> Source:
        def read_stamps() -> dict[int, int]:
            with self.driver.cursor() as cursor, cursor.copy(_STAMPS) as copy:
                copy.set_types(["int8", "int8"])
                return dict(copy.rows())

        def read_texts(keys: list[int]) -> Iterable[tuple[int, str]]:
            return list_indexed_texts(self.fetch(f"{INDEXED} WHERE nodes.key IN :keys", keys=keys))

        return int(self.read_value("SELECT words FROM tomewise")), read_stamps, read_texts


def _write_list(found: re.Match[str]) -> str:
    kind = "bigint" if found[1].startswith("keys") else "text"
    return f"IN (SELECT value FROM unnest(CAST(:{found[1]} AS {kind}[])) AS value)"
