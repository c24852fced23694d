"""Find what is damaged in the file of a tome, and say so in one message: table, row and remedy."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

from sqlalchemy import Column, Connection, Table
from sqlalchemy.exc import DBAPIError, OperationalError

from tomewise.errors import StoreError
from tomewise.store.sql.row_values import RESTORE, Misfit
from tomewise.store.sql.schema import TABLES

Contradictions: TypeAlias = tuple[tuple[str, str, str], ...]
_REMEDIES = {
    "sessions": "delete it with `tome sessions {row} --delete`",
    "traces": "delete it with `tome log {row} --delete`",
    "builds": "make that layer again with `tome build --again {row}`",
}
# Rows that name what does not exist, or that contradict others: table, query, and what is wrong.
_CONTRADICTIONS: Contradictions = (
    (
        "nodes",
        "SELECT key FROM nodes WHERE document NOT IN (SELECT key FROM documents)",
        "a document that is not there",
    ),
    (
        "nodes",
        """SELECT key FROM nodes WHERE (layer = 'passages') <> (document IS NOT NULL)
        OR (document IS NOT NULL AND (start IS NULL OR "end" IS NULL OR start < 0 OR "end" < start))""",
        "no place in a document",
    ),
    (
        "edges",
        "SELECT key FROM edges WHERE a NOT IN (SELECT key FROM nodes) OR b NOT IN (SELECT key FROM nodes)",
        "a node that is not there",
    ),
    ("vectors", "SELECT key FROM vectors WHERE key NOT IN (SELECT key FROM nodes)", "a node that is not there"),
    (
        "vectors",
        """SELECT key FROM vectors WHERE length(vector) <> 4 * (SELECT CAST(value AS INTEGER) FROM meta
        WHERE key = 'dimensions' AND value <> '')""",
        "a vector of another width",
    ),
    ("intake", "SELECT node FROM intake WHERE node NOT IN (SELECT key FROM nodes)", "a node that is not there"),
)
# The same of the table in which SQLite keeps the last keys.
SEQUENCE_CONTRADICTIONS: Contradictions = (
    (
        "sqlite_sequence",
        """SELECT name FROM (SELECT 'nodes' AS name, max(key) AS last FROM nodes UNION
        SELECT 'edges', max(key) FROM edges UNION SELECT 'documents', max(key) FROM documents) AS used
        WHERE last > coalesce((SELECT CASE typeof(seq) WHEN 'integer' THEN seq ELSE -1 END FROM sqlite_sequence
        WHERE sqlite_sequence.name = used.name), -1)""",
        "no number after the last key",
    ),
    (
        "sqlite_sequence",
        f"SELECT name FROM sqlite_sequence WHERE typeof(seq) <> 'integer' OR seq NOT BETWEEN 0 AND {(1 << 62) - 1}",
        "no number that leaves room for further keys",
    ),
)


_NUMBERS: Mapping[str, Callable[[bytes], Any]] = {"integer": int, "real": float}


@contextmanager
def name_damage(connection: Connection, path: Path) -> Iterator[None]:
    """Turn a value that does not fit its column, or is not UTF-8, into a StoreError that names its row."""
    try:
        yield
    except Misfit as error:
        found = find_damaged_row(connection, [TABLES.tables[error.table]]) or find_contradiction(
            connection, SEQUENCE_CONTRADICTIONS
        )
        raise StoreError(
            describe_damage(path, found or f"the table {error.table} holds {error.reason}; {RESTORE}")
        ) from error
    except (OperationalError, sqlite3.OperationalError) as error:
        if "decode to UTF-8" not in str(error):
            raise
        found = (
            find_damaged_row(connection, TABLES.tables.values()) or f"a row holds a text that is not UTF-8; {RESTORE}"
        )
        raise StoreError(describe_damage(path, found)) from error


def describe_damage(address: object, found: str) -> str:
    """The message for a damaged row."""
    return f"{address} is damaged: {found}"


def find_contradiction(connection: Connection, own: Contradictions) -> str:
    """The first row that names what does not exist, with its remedy; empty if no row does.

    `own` are the contradictions that one database alone can have.
    """
    for table, query, problem in (*_CONTRADICTIONS, *own):
        found = connection.exec_driver_sql(f"{query} LIMIT 1").first()
        if found is not None:
            return f"the row {found[0]!a} of the table {table} has {problem}; {RESTORE}"
    return ""


def find_damaged_index(connection: Connection) -> str:
    """What is wrong with the file and with its full-text index, in SQLite's own words; empty if nothing is."""
    try:
        problem = str(connection.exec_driver_sql("PRAGMA quick_check(1)").scalar())
        if problem != "ok":
            return f"{problem}; {RESTORE}"
        connection.exec_driver_sql("INSERT INTO lexical (lexical) VALUES ('integrity-check')")
    except DBAPIError as error:
        if isinstance(error, OperationalError):
            return ""  # the file may only be read, or another program writes it
        return f"the table lexical, the full-text index, does not fit in itself ({error.orig}); {RESTORE}"
    return ""


def find_damaged_row(connection: Connection, tables: Iterable[Table]) -> str:
    """The first row with a value that does not fit its column, with its remedy; empty if all fit."""
    for table in tables:
        fields = ", ".join(f'typeof("{column.name}"), CAST("{column.name}" AS BLOB)' for column in table.c)
        rows = connection.exec_driver_sql(f'SELECT {fields} FROM "{table.name}"')
        decoded = ([_decode_value(*row[index : index + 2]) for index in range(0, len(row), 2)] for row in rows)
        if found := find_misfit_row(table, decoded):
            return found
    return ""


def find_misfit_row(table: Table, rows: Iterable[Sequence[Any]]) -> str:
    """The first of these bare rows of a table with a value that does not fit; empty if all fit."""
    columns = list(table.c)
    for values in rows:
        for column, value in zip(columns, values, strict=True):
            if problem := _find_misfit(column, value):
                keys = [value for key, value in zip(columns, values, strict=True) if key.primary_key]
                return _describe_row(table.name, keys, column.name, problem)
    return ""


def _describe_row(table: str, keys: list[Any], column: str, problem: str) -> str:
    key_texts = [key.decode(errors="replace") if isinstance(key, bytes) else str(key) for key in keys]
    row = ", ".join(f"{key[:80]!a}" for key in key_texts)
    remedy = _REMEDIES.get(table, RESTORE).format(row=f"{key_texts[-1]!a}")
    return f"the row {row} of the table {table} has {problem} ({column}); {remedy}"


def _decode_value(kind: str, content: bytes) -> Any:
    """The value of which SQLite gave the type and the bytes; bytes for a text that is not UTF-8."""
    if kind == "text":
        with suppress(UnicodeDecodeError):
            return content.decode()
    return None if kind == "null" else _NUMBERS.get(kind, bytes)(content)


def _find_misfit(column: Column[Any], value: Any) -> str:
    try:
        column.type.process_result_value(value, None)  # type: ignore[attr-defined]
    except Misfit as error:
        return error.reason
    return ""
