"""The arrays of a tome in PostgreSQL: rows that are read and written in bulk, in its binary forms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import psycopg
from numpy.typing import NDArray
from psycopg import sql
from psycopg.abc import AdaptContext
from psycopg.adapt import Dumper
from psycopg.pq import Format

from tomewise.store.sql.mirror import EDGE, Block, Keys
from tomewise.store.sql.row_values import Misfit

PAGE_BYTES = 1 << 18  # that one statement reads: more take longer in all
WRITE_BYTES = 4 << 20  # that are sent at a time
_LAST = 2**63 - 1  # of all keys
_SIGNATURE = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_TRAILER = b"\xff\xff"
_ELEMENTS = {"i": "int8", "f": "float8"}  # by the kind of numbers of 64 bits

# Pages of a space in the order of steps and keys. Numbers are sent as bytes, which PostgreSQL joins much faster than
# the driver takes rows.
_PAGE = """
SELECT string_agg(int8send(key), ''), string_agg({values}, ''), {fits}, max(step)
FROM (SELECT * FROM {table} WHERE space = %s AND (step, key) > (%s, %s) ORDER BY step, key LIMIT %s) AS page
"""
_EDGES = _PAGE.format(table="edges", values="int8send(a) || int8send(b) || float8send(weight)", fits="true")


class ArrayDumper(Dumper):
    """Sends an array (n,) of whole numbers or floats of 64 bits as one of PostgreSQL, in its binary form."""

    format = Format.BINARY

    def __init__(self, cls: type, context: AdaptContext | None = None, kind: str = "i") -> None:
        super().__init__(cls, context)
        element = psycopg.adapters.types[_ELEMENTS[kind]]
        self.oid, self._element = element.array_oid, element.oid

    def get_key(self, obj: NDArray[Any], format: Any) -> Any:
        return self.cls, obj.dtype.kind

    def upgrade(self, obj: NDArray[Any], format: Any) -> ArrayDumper:
        return ArrayDumper(self.cls, None, obj.dtype.kind)

    def dump(self, obj: NDArray[Any]) -> bytes:
        items = np.empty(len(obj), [("size", ">i4"), ("value", obj.dtype.newbyteorder(">"))])
        items["size"], items["value"] = 8, obj
        return np.array([1, 0, self._element, len(obj), 1], ">i4").tobytes() + items.tobytes()


def load_vectors(driver: psycopg.Connection, space: str, width: int, after: int = -1) -> Iterator[Block]:
    """The vectors of a space that came after a step. Raises Misfit for one of another width."""
    fits = f"bool_and(octet_length(vector) = {4 * width})"
    query = _PAGE.format(table="vectors", values="vector", fits=fits)
    for keys, values, are_equal in _read_pages(driver, query, space, 4 * width, after):
        if not are_equal:
            raise Misfit("vectors")
        yield keys, np.frombuffer(values, np.float32).reshape(-1, width)


def load_edges(driver: psycopg.Connection, space: str, after: int = -1) -> Iterator[Block]:
    """The edges of a space that came after a step: rows of a, b and weight."""
    for keys, values, _ in _read_pages(driver, _EDGES, space, 8 * EDGE, after):
        table = np.frombuffer(values, [("a", ">i8"), ("b", ">i8"), ("weight", ">f8")])
        yield keys, np.column_stack([table[name].astype(np.float64) for name in ("a", "b", "weight")])


def _read_pages(
    driver: psycopg.Connection, query: str, space: str, row_bytes: int, after: int
) -> Iterator[tuple[Keys, bytes, bool]]:
    place = after, _LAST
    limit = max(1, PAGE_BYTES // (row_bytes + 8))
    with driver.cursor(binary=True) as cursor:
        while True:
            found = cursor.execute(query.encode(), (space, *place, limit)).fetchone()
            assert found is not None  # of an aggregate
            joined, values, fits, step = found
            if joined is None:
                return
            keys = read_keys(joined)
            yield keys, values, fits
            if len(keys) < limit:
                return
            place = step, int(keys[-1])


def read_keys(joined: bytes | None) -> Keys:
    """The whole numbers that `int8send` made bytes of, joined."""
    return np.frombuffer(joined or b"", ">i8").astype(np.int64)


def write_columns(driver: psycopg.Connection, table: str, columns: Mapping[str, str | NDArray[Any]]) -> None:
    """Insert rows of which each column is one text, numbers (n,) of 64 bits, or vectors (n, d) of float32, as bytes."""
    length = next(len(column) for column in columns.values() if not isinstance(column, str))
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT BINARY)").format(sql.Identifier(table), names)
    row_bytes = sum(len(each) if isinstance(each, str) else each[:1].nbytes for each in columns.values())
    at_once = max(1, WRITE_BYTES // row_bytes)
    with driver.cursor() as cursor, cursor.copy(statement) as copy:
        copy.write(_SIGNATURE)
        for start in range(0, length, at_once):
            count = min(at_once, length - start)
            cells = [_repeat(np.array([len(columns)], ">i2"), count)]
            for column in columns.values():
                if isinstance(column, str):
                    content = _repeat(np.frombuffer(column.encode(), np.uint8), count)
                else:
                    content = _encode(column[start : start + count])
                cells += [_repeat(np.array([content.shape[1]], ">i4"), count), content]
            copy.write(np.hstack(cells).tobytes())
        copy.write(_TRAILER)


def _encode(column: NDArray[Any]) -> NDArray[np.uint8]:
    """The bytes (n, w) of numbers (n,) or vectors (n, d)."""
    kind = column.dtype if column.dtype == np.float32 else column.dtype.newbyteorder(">")
    return column.astype(kind).reshape(len(column), -1).view(np.uint8)


def _repeat(row: NDArray[Any], count: int) -> NDArray[np.uint8]:
    """The bytes of a row, so many times."""
    return np.tile(row.view(np.uint8), (count, 1))
