"""Find what is damaged in a tome, and say so in one message: the tome, the table, the row, and the remedy."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from sqlalchemy.exc import OperationalError

from tomewise.errors import StoreError
from tomewise.store.sql.row_values import RESTORE, Misfit, describe_row
from tomewise.store.sql.schema import TABLES
from tomewise.store.sql.transaction import SharedTransaction

T = TypeVar("T", bound=SharedTransaction)
# Rows that name what does not exist, or that contradict others: table and query. `{keys}` is the table in which a
# database has the last keys.
_CONTRADICTIONS = (
    (
        "nodes",
        "SELECT key FROM nodes WHERE document NOT IN (SELECT key FROM documents)",
    ),
    (
        "nodes",
        """SELECT key FROM nodes WHERE (layer = 'passages') <> (document IS NOT NULL)
        OR (document IS NOT NULL AND (start IS NULL OR "end" IS NULL OR start < 0 OR "end" < start))""",
    ),
    (
        "edges",
        "SELECT key FROM edges WHERE a NOT IN (SELECT key FROM nodes) OR b NOT IN (SELECT key FROM nodes)",
    ),
    ("vectors", "SELECT key FROM vectors WHERE key NOT IN (SELECT key FROM nodes)"),
    (
        "vectors",
        """SELECT key FROM vectors WHERE length(vector) <> 4 * (SELECT CAST(value AS INTEGER) FROM meta
        WHERE key = 'dimensions' AND value <> '')""",
    ),
    ("intake", "SELECT node FROM intake WHERE node NOT IN (SELECT key FROM nodes)"),
    (
        "{keys}",
        """SELECT name FROM (SELECT 'nodes' AS name, max(key) AS last FROM nodes UNION
        SELECT 'edges', max(key) FROM edges UNION SELECT 'documents', max(key) FROM documents) AS used
        WHERE last > coalesce((SELECT seq FROM {keys} WHERE {keys}.name = used.name), -1)""",
    ),
    (
        "{keys}",
        f"""SELECT name FROM {{keys}} WHERE seq IS NULL OR CAST(seq AS TEXT) <> CAST(CAST(seq AS BIGINT) AS TEXT)
        OR seq NOT BETWEEN 0 AND {(1 << 62) - 1}""",
    ),
)


@contextmanager
def name_damage(transaction: T) -> Iterator[T]:
    """A transaction. A value in it that does not fit, or is not UTF-8, raises a StoreError that names the row."""
    try:
        yield transaction
    except (Misfit, OperationalError, sqlite3.OperationalError) as error:
        problem, table = f"a row holds a text that is not UTF-8; {RESTORE}", ""
        if isinstance(error, Misfit):
            problem, table = str(error), error.table
        elif "decode to UTF-8" not in str(error):
            raise
        raise StoreError(f"{transaction.address} is damaged: {find_damage(transaction, table) or problem}") from error


def find_damage(transaction: SharedTransaction, first: str = "") -> str:
    """The first row that is damaged, or contradicts others, with its remedy; empty if none is. This reads all rows.

    Those of the table `first` are read first.
    """
    for table in sorted(TABLES.values(), key=lambda table: table.name != first):
        for row in transaction.read_rows(table):
            try:
                table.decode(row)
            except Misfit:
                return describe_row(
                    table.name, *(value for name, value in zip(table.columns, row, strict=True) if name in table.keys)
                )
    for contradicted, query in _CONTRADICTIONS:
        found = transaction.run(f"{query.format(keys=transaction.last_keys)} LIMIT 1").first()
        if found is not None:
            return describe_row(contradicted.format(keys=transaction.last_keys), found[0])
    return ""
