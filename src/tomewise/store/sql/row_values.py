"""The values of rows: JSON, vectors, and the message for a row that cannot be used.

SQLite keeps values of any type in any column, and a tome may come from anyone or from a failing disk. So each value is
decoded by its column (see `schema`), and one that does not fit it is damage. There is one message for all damage: it
names the table, the row and the remedy.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from tomewise.errors import StoreError

RESTORE = "restore it from a copy, or add the documents to a new file"
LONGEST = 1 << 28  # bytes of a value in a file; a document takes 200 million at most, if its bound is not raised
STREAMED = {"stream_results": True, "max_row_buffer": 100}  # a driver may else hold all rows of a table in memory
_ENCODER = json.JSONEncoder(ensure_ascii=False, sort_keys=True)
_REMEDIES = {
    "sessions": "delete it with `tome sessions {row} --delete`",
    "traces": "delete it with `tome log {row} --delete`",
    "builds": "make that layer again with `tome build --again {row}`",
}


class Misfit(Exception):
    """One of the rows of `table` has a value that its column cannot hold, or contradicts other rows."""

    def __init__(self, table: str) -> None:
        super().__init__(f"a row of the table {table} cannot be used; {RESTORE}")
        self.table = table


def describe_row(table: str, *keys: Any) -> str:
    """The words of the message for a damaged row under these keys: which row it is, and the remedy."""
    texts = [key.decode(errors="replace") if isinstance(key, bytes) else str(key) for key in keys]
    remedy = _REMEDIES.get(table, RESTORE).format(row=f"{texts[-1]!a}")
    return f"the row {', '.join(f'{text[:80]!a}' for text in texts)} of the table {table} cannot be used; {remedy}"


class Fields(dict[str, Any]):
    """The data of a node. A field that it lacks is damage, and no KeyError of whoever reads it."""

    __slots__ = ("node",)

    def __init__(self, fields: Mapping[str, Any], node: str) -> None:
        super().__init__(fields)
        self.node = node

    def __getitem__(self, name: str) -> Any:
        if name not in self:
            raise StoreError(f"the tome is damaged: {describe_row('nodes', self.node)}")
        return super().__getitem__(name)


def encode_json(data: Mapping[str, Any]) -> str:
    """Data as JSON, equal for equal data."""
    return _ENCODER.encode(data) if data else "{}"


def decode_object(value: Any, table: str) -> dict[str, Any]:
    """The JSON object that a text holds. Raises Misfit."""
    if value == "{}":  # of most passages
        return {}
    try:
        fields = json.loads(value) if type(value) is str else None
        if type(value) is str and "\\u" in value:
            json.dumps(fields, ensure_ascii=False).encode()  # half a character cannot be written anywhere
    except (ValueError, RecursionError):
        fields = None
    if type(fields) is not dict:
        raise Misfit(table)
    return fields


def find_cause(error: BaseException | None) -> BaseException | None:
    """What the driver raised, of which SQLAlchemy made an error of its own; any other error is its own cause."""
    return error.orig if isinstance(error, DBAPIError) else error


def read_value(connection: Connection, query: str, *values: Any) -> Any:
    """The first value that a query in the words of a database finds, as it is there; None if it finds no row."""
    return connection.exec_driver_sql(query, values).scalar()


@contextmanager
def decode_plain(table: str) -> Iterator[None]:
    """Turn the errors of Python and NumPy at values of the wrong type into Misfit, for rows that are read bare."""
    try:
        yield
    except (TypeError, ValueError, OverflowError) as error:
        raise Misfit(table) from error
