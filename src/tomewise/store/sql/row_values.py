"""The values of rows, all decoded here: each column has a type, and a value that does not fit it is damage.

SQLite keeps values of any type in any column, and a tome may come from anyone or from a failing disk.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import BigInteger, Connection, Float, LargeBinary, Text, TypeDecorator

from tomewise.errors import StoreError

RESTORE = "restore it from a copy, or add the documents to a new file"
LONGEST = 1 << 28  # bytes of a value in a file; a document takes 200 million at most, if its bound is not raised
STREAMED = {"stream_results": True, "max_row_buffer": 100}  # a driver may else hold all rows of a table in memory
_VECTOR_BYTES = 4
_ENCODER = json.JSONEncoder(ensure_ascii=False, sort_keys=True)
# What a column holds: its type to SQLAlchemy and to PostgreSQL, and the types of its values.
_KINDS: dict[str, tuple[Any, str, tuple[type, ...]]] = {
    "a text": (Text, "text", (str,)),
    "a number": (Float, "float8", (int, float)),
    "a whole number": (BigInteger, "int8", (int,)),
    "a vector": (LargeBinary, "bytea", (bytes,)),
    "a JSON object": (Text, "text", (str,)),
}


class Misfit(Exception):
    """A value that does not fit its column, in one of the rows of `table`."""

    def __init__(self, table: str, reason: str) -> None:
        super().__init__(f"{table}: {reason}")
        self.table = table
        self.reason = reason


class RowValue(TypeDecorator[Any]):
    """A type of columns, which hold values of this `kind`, or nothing if `is_optional`. `table` is set with the tables.

    `postgres` is the type in PostgreSQL.
    """

    impl: Any = Text
    cache_ok = True  # which each type must say itself
    table = ""

    def __init__(self, kind: str, *, is_optional: bool = False) -> None:
        super().__init__()
        self.kind, self.is_optional = kind, is_optional
        impl, self.postgres, self._accepts = _KINDS[kind]
        self.impl = impl()

    def process_result_value(self, value: Any, dialect: Any) -> Any:
        is_accepted = type(value) in self._accepts or (self.is_optional and value is None)
        if not is_accepted or (type(value) is float and not isfinite(value)):
            raise Misfit(self.table, f"{describe_value(value)} where {self.kind} belongs")
        return value


class RowVector(RowValue):
    """The bytes of a vector (d,) of float32; `decode_vector` makes the vector of them."""

    cache_ok = True

    def __init__(self) -> None:
        super().__init__("a vector")

    def process_result_value(self, value: Any, dialect: Any) -> Any:
        if not np.isfinite(decode_vector(value, self.table)).all():
            raise Misfit(self.table, "numbers that are not finite")
        return value


class RowObject(RowValue):
    """A JSON object, stored as text. It is written as text too, since `encode_json` decides how.

    `kinds` are the fields that are known, each with its type and that of its items; other fields are left to those who
    wrote them.
    """

    cache_ok = True

    def __init__(self, kinds: tuple[tuple[str, type, type], ...] = ()) -> None:
        super().__init__("a JSON object")
        self.kinds = kinds
        self._kinds = {name: kinds for name, *kinds in kinds}

    def process_result_value(self, value: Any, dialect: Any) -> Any:
        if value == "{}":  # of most passages
            return {}
        fields = decode_object(value, self.table)
        for name, value in fields.items():
            if name in self._kinds and not _is_of_kind(value, *self._kinds[name]):
                raise Misfit(self.table, f"{describe_value(value)} as its {name!r}")
        return fields


class Fields(dict[str, Any]):
    """The data of a node. A field that it lacks is damage, and no KeyError of whoever reads it."""

    __slots__ = ("node",)

    def __init__(self, fields: Mapping[str, Any], node: str) -> None:
        super().__init__(fields)
        self.node = node

    def __getitem__(self, name: str) -> Any:
        if name not in self:
            raise StoreError(
                f"the tome is damaged: the row of {self.node!a} in the table nodes has no {name!a}; {RESTORE}"
            )
        return super().__getitem__(name)


def _is_of_kind(value: Any, kind: type, item_kind: type) -> bool:
    if not isinstance(value, kind):
        return False
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return all(isinstance(item, item_kind) for item in items)


def encode_json(data: Mapping[str, Any]) -> str:
    """Data as JSON, equal for equal data."""
    return _ENCODER.encode(data) if data else "{}"


def decode_object(value: Any, table: str) -> dict[str, Any]:
    """The JSON object that a text holds. Raises Misfit."""
    try:
        fields = json.loads(value) if type(value) is str else None
        if type(value) is str and "\\u" in value:
            json.dumps(fields, ensure_ascii=False).encode()  # half a character cannot be written anywhere
    except (ValueError, RecursionError):
        fields = None
    if type(fields) is not dict:
        raise Misfit(table, f"{describe_value(value)} where a JSON object belongs")
    return fields


def decode_vector(value: Any, table: str = "vectors") -> NDArray[np.float32]:
    """The vector (d,) that the bytes of a row hold. Raises Misfit."""
    if type(value) is not bytes or len(value) % _VECTOR_BYTES:
        raise Misfit(table, f"{describe_value(value)} where a vector belongs")
    return np.frombuffer(value, np.float32)


def stack_vectors(values: Iterable[Any]) -> NDArray[np.float32]:
    """The vectors (n, d) that the bytes of rows hold. Raises Misfit if they differ in width."""
    rows = [decode_vector(value) for value in values]
    if len({len(row) for row in rows}) > 1:
        raise Misfit("vectors", "vectors of several widths")
    return np.stack(rows)


def describe_value(value: Any) -> str:
    """A value in a few words, for a message."""
    if value is None:
        return "nothing"
    if isinstance(value, bytes):
        return f"{len(value):,} bytes"
    text = repr(value) if not isinstance(value, str) else ascii(value)
    return text if len(text) <= 40 else f"{text[:39]}…"


def read_value(connection: Connection, query: str, *values: Any) -> Any:
    """The first value that a query in the words of a database finds, as it is there; None if it finds no row."""
    return connection.exec_driver_sql(query, values).scalar()


@contextmanager
def decode_plain(table: str) -> Iterator[None]:
    """Turn the errors of Python and NumPy at values of the wrong type into Misfit, for rows that are read bare."""
    try:
        yield
    except (TypeError, ValueError, OverflowError) as error:
        raise Misfit(table, str(error)) from None
