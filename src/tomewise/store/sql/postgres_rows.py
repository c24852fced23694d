"""Expressions and rows in the words of PostgreSQL: what statements of all databases say otherwise here."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import psycopg
from psycopg import sql
from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Select,
    Table,
    cast,
    func,
    select,
)
from sqlalchemy.dialects.postgresql import JSONB, insert

from tomewise.errors import ReadingError, StoreError
from tomewise.store.sql.mirror import Keys, Rows
from tomewise.store.sql.postgres_arrays import find_driver, load_changes, load_edges, load_vectors, write_columns
from tomewise.store.sql.row_values import encode_json, read_value
from tomewise.store.sql.schema import TABLES, traces
from tomewise.store.sql.shared_rows import SharedRows
from tomewise.store.sql.turn import find_turn
from tomewise.types import Document

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
_LARGEST_FLOAT = sys.float_info.max


class PostgresRows(SharedRows):
    """What a dialect does with expressions and rows; see `SqliteRows` for the same of a file."""

    field_values = _VALUES

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
    def write_test(value: object, operator: str | None) -> str:
        """See `SharedRows`."""
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

    insert = staticmethod(insert)

    @staticmethod
    def find_new_keys(connection: Connection, table: Table, count: int) -> list[int]:
        """Ascending keys for so many rows, which no row ever had."""
        if table is not traces:
            return list(find_turn(connection).take_keys(connection, table.name, count))
        # Traces are written by several at a time, each outside of a turn.
        query = "UPDATE last_keys SET seq = seq + %s WHERE name = %s RETURNING seq"
        last = int(read_value(connection, query, count, table.name))
        return list(range(last - count + 1, last + 1))

    @staticmethod
    def insert_rows(
        connection: Connection, table: str, rows: Sequence[tuple[Any, ...]], names: Sequence[str] = ()
    ) -> None:
        """Insert many rows, with all columns or with these. Raises StoreError, ValueError for a value of no column."""
        if not rows:
            return
        columns: Any = TABLES.tables[table].c
        names = names or columns.keys()
        listed = sql.SQL(", ").join(map(sql.Identifier, names))
        statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT BINARY)").format(sql.Identifier(table), listed)
        try:
            with find_driver(connection).cursor() as cursor, cursor.copy(statement) as copy:
                copy.set_types([columns[name].type.postgres for name in names])
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
        _, known = PostgresRows.find_edges(connection, space, np.column_stack((a, b)))
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
        found = read_value(connection, _PAIRS, ends[:, 0], ends[:, 1], space)
        table = np.frombuffer(found or b"", ">i8").astype(np.int64).reshape(-1, 2)
        return table[:, 0], table[:, 1]

    @staticmethod
    def set_weights(connection: Connection, keys: Keys, weights: Rows) -> None:
        """Give the edges under these keys other weights."""
        if len(keys):
            connection.exec_driver_sql(_WEIGHTS, (keys, weights))

    load_edges = staticmethod(load_edges)
    load_vectors = staticmethod(load_vectors)
    load_changes = staticmethod(load_changes)

    @staticmethod
    def read_names(connection: Connection, names: Column[str]) -> list[str]:
        """All values of a column, sorted."""
        return list(connection.scalars(select(names).order_by(names)))
