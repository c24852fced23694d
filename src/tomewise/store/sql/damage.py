"""Find what is damaged in a tome, and say so in one message: the tome, the table, the row, and the remedy."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Table
from sqlalchemy.exc import OperationalError

from tomewise.errors import StoreError
from tomewise.store.sql.row_values import RESTORE, Misfit
from tomewise.store.sql.schema import TABLES
from tomewise.store.sql.transaction import SharedTransaction

_REMEDIES = {
    "sessions": "delete it with `tome sessions {row} --delete`",
    "traces": "delete it with `tome log {row} --delete`",
    "builds": "make that layer again with `tome build --again {row}`",
}
# Rows that name what does not exist, or that contradict others: table, query, and what is wrong. `{keys}` is the table
# in which a database has the last keys.
_CONTRADICTIONS = (
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
    (
        "{keys}",
        """SELECT name FROM (SELECT 'nodes' AS name, max(key) AS last FROM nodes UNION
        SELECT 'edges', max(key) FROM edges UNION SELECT 'documents', max(key) FROM documents) AS used
        WHERE last > coalesce((SELECT seq FROM {keys} WHERE {keys}.name = used.name), -1)""",
        "no number after the last key",
    ),
    (
        "{keys}",
        f"""SELECT name FROM {{keys}} WHERE seq IS NULL OR CAST(seq AS TEXT) <> CAST(CAST(seq AS BIGINT) AS TEXT)
        OR seq NOT BETWEEN 0 AND {(1 << 62) - 1}""",
        "no number that leaves room for further keys",
    ),
)


def name_damage(transaction: SharedTransaction, error: Exception) -> None:
    """Raise a StoreError that names the row if the error was raised by a value that does not fit, or is not UTF-8."""
    if isinstance(error, Misfit):
        problem = f"the table {error.table} holds {error.reason}; {RESTORE}"
        found = find_damage(transaction, error.table)
    elif isinstance(error, OperationalError | sqlite3.OperationalError) and "decode to UTF-8" in str(error):
        problem = f"a row holds a text that is not UTF-8; {RESTORE}"
        found = find_damage(transaction)
    else:
        return
    raise StoreError(describe_damage(transaction.address, found or problem)) from error


def describe_damage(address: object, problem: str) -> str:
    """The message for a damaged row."""
    return f"{address} is damaged: {problem}"


def find_damage(transaction: SharedTransaction, first: str = "") -> str:
    """The first row that is damaged, or contradicts others, with its remedy; empty if none is. This reads all rows.

    Those of the table `first` are read first.
    """
    for each in sorted(TABLES.tables.values(), key=lambda table: table.name != first):
        if problem := _find_misfit_row(each, transaction.read_bare(each)):
            return problem
    keys = transaction.last_keys
    for table, query, problem in _CONTRADICTIONS:
        found = transaction.run(f"{query.format(keys=keys)} LIMIT 1").first()
        if found is not None:
            return f"the row {found[0]!a} of the table {table.format(keys=keys)} has {problem}; {RESTORE}"
    return ""


def _find_misfit_row(table: Table, rows: Iterable[Sequence[Any]]) -> str:
    """The first of these bare rows of a table with a value that does not fit, with its remedy; empty if all fit."""
    columns: list[Any] = list(table.c)
    for values in rows:
        for column, value in zip(columns, values, strict=True):
            try:
                column.type.process_result_value(value, None)
            except Misfit as error:
                keys = [value for key, value in zip(columns, values, strict=True) if key.primary_key]
                texts = [key.decode(errors="replace") if isinstance(key, bytes) else str(key) for key in keys]
                row = ", ".join(f"{key[:80]!a}" for key in texts)
                remedy = _REMEDIES.get(table.name, RESTORE).format(row=f"{texts[-1]!a}")
                return f"the row {row} of the table {table.name} has {error.reason} ({column.name}); {remedy}"
    return ""
