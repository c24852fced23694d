"""The vectors and edges of a tome as arrays: held in memory, cached in files, and read from the database if needed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from sqlalchemy import Connection, func, select

from tomewise.beside import FolderBeside
from tomewise.errors import StoreError
from tomewise.store.sqlite.mirror import Columns, Delta, Keys, Mirror, Rows
from tomewise.store.sqlite.row_values import Misfit, decode_plain, decode_vector
from tomewise.store.sqlite.schema import meta, spaces, vectors

_EDGE = 3  # numbers of the row of an edge
Begin = Callable[[], AbstractContextManager[Connection]]


class Arrays:
    """The arrays of one tome by space (`vectors/NAME` or `edges/NAME`).

    `begin_read` begins a read of the database. `begin_repair` begins a write transaction, or raises Locked if it would
    have to wait: the files may only be changed inside a write transaction.
    """

    def __init__(self, folder: FolderBeside, tome: str, begin_read: Begin, begin_repair: Begin) -> None:
        self._folder = folder
        self._tome = tome
        self._begin_read = begin_read
        self._begin_repair = begin_repair
        self._guards: dict[str, threading.Lock] = {}
        self._columns: dict[str, Columns] = {}

    def columns(self, space: str) -> Columns:
        """The arrays of a space as they are now: from memory, else from the files, else from the database."""
        with self._guards.setdefault(space, threading.Lock()):
            with self._begin_read() as connection:
                version = read_space_version(connection, space)
                cached = self._columns.get(space)
                if cached is not None and cached.version == version and cached.is_whole:
                    return cached
                found = self._make_mirror(space).read(version)
                missing = found is None or not _fits(found, connection, space)
                if found is None or missing:
                    found = Columns(version, *load_rows(connection, space))
            if missing and len(found.stored_keys):
                found = self._repair(space, found)
            self._columns[space] = found
            return found

    def apply_deltas(self, connection: Connection, deltas: Mapping[str, tuple[int, int, Delta]]) -> None:
        """Update the files with the changes of a write transaction that is about to commit.

        If the transaction is rolled back, readers ignore the files, because their version was never committed.
        """
        for space, (before, after, delta) in deltas.items():
            mirror = self._make_mirror(space)
            try:
                if before and mirror.apply(delta, before, after):
                    continue
                rows = load_rows(connection, space) if before else (delta.added_keys, delta.added_rows)
                mirror.write(after, *rows)
            except OSError:
                continue  # for example a full disk: the files are out of date, and a later reader writes them again

    def find_mismatch(self, connection: Connection) -> bool:
        """Whether arrays in memory, which may come from files, are not those of the tables. This reads them all."""
        for space, found in self._columns.items():
            if found.version == read_space_version(connection, space):
                keys, rows = load_rows(connection, space)
                if not np.array_equal(found.keys, keys) or not np.array_equal(found.rows, rows):
                    return True
        return False

    def forget(self) -> None:
        """Forget the arrays in memory, so that they are read again."""
        self._columns.clear()

    def _repair(self, space: str, found: Columns) -> Columns:
        mirror = self._make_mirror(space)
        try:
            with self._begin_repair() as connection:
                if read_space_version(connection, space) == found.version:
                    mirror.write(found.version, found.stored_keys, found.stored_rows)
        except (StoreError, OSError):  # another writer is active, or writing is not allowed: a later reader repairs
            return found
        return mirror.read(found.version) or found

    def _make_mirror(self, space: str) -> Mirror:
        dtype = np.dtype(np.float32) if space.startswith("vectors/") else np.dtype(np.float64)
        return Mirror(self._folder, space, self._tome, dtype)


def read_space_version(connection: Connection, space: str) -> int:
    """The version of a space; 0 if nothing was ever stored in it."""
    return connection.scalar(select(spaces.c.version).where(spaces.c.space == space)) or 0


def load_rows(connection: Connection, space: str) -> tuple[Keys, Rows]:
    """The arrays of a space, read from the tables, keys ascending."""
    kind, name = space.split("/", 1)
    return _load_vectors(connection, name) if kind == "vectors" else load_edges(connection, name)


def load_edges(connection: Connection, space: str, last: int = 0) -> tuple[Keys, Rows]:
    """The edges of a space (`NAME` alone) with keys above `last`."""
    found = _select_rows(
        connection, "SELECT key, a, b, weight FROM edges WHERE space = ? AND key > ? ORDER BY key", (space, last)
    )
    with decode_plain("edges"):
        table = np.fromiter(found, dtype=np.dtype((np.float64, 4)))
    if not _are_edges(table[:, 1:], connection):
        raise Misfit("edges", "an edge of nodes that are not there")
    return table[:, 0].astype(np.int64), table[:, 1:]


def _load_vectors(connection: Connection, space: str) -> tuple[Keys, Rows]:
    # Copy row by row into one array: a list of all rows would need the memory of two more arrays.
    (count,) = next(_select_rows(connection, "SELECT count(*) FROM vectors WHERE space = ?", (space,)))
    found = _select_rows(connection, "SELECT key, vector FROM vectors WHERE space = ? ORDER BY key", (space,))
    width = _find_dimensions(connection)
    keys, rows = np.empty(count, np.int64), np.empty((count, width), np.float32)
    for index, (key, stored) in enumerate(found):
        vector = decode_vector(stored)
        if len(vector) != width or type(key) is not int:
            raise Misfit("vectors", f"a vector of {len(vector)} numbers, not {width}")
        keys[index] = key
        rows[index] = vector
    with np.errstate(invalid="ignore"):
        if not np.isfinite(rows.sum(dtype=np.float64)):  # of all at once: a flag for each would need much memory
            raise Misfit("vectors", "numbers that are not finite")
    return keys, rows


def _find_dimensions(connection: Connection) -> int:
    """The width of all vectors: the tome's setting, else the width of any stored vector."""
    setting = connection.scalar(select(meta.c.value).where(meta.c.key == "dimensions"))
    with decode_plain("meta"):
        return int(setting or connection.scalar(select(func.length(vectors.c.vector) // 4).limit(1)) or 0)


def _fits(found: Columns, connection: Connection, space: str) -> bool:
    """Whether arrays from files have the keys and the width that the tables have, and edges the nodes.

    The sum of the keys is compared, since reading them all takes longer than reading the files.
    """
    kind, name = space.split("/", 1)
    query = f"SELECT count(*), coalesce(sum(key), 0) FROM {kind} WHERE space = ?"
    count, total = next(_select_rows(connection, query, (name,)))
    keys = found.keys
    if len(keys) != count or int(keys.sum()) != total or (keys[1:] <= keys[:-1]).any():
        return False
    if kind == "vectors":
        return not count or found.stored_rows.shape[1] == _find_dimensions(connection)
    return found.stored_rows.shape[1] == _EDGE and _are_edges(found.rows, connection)


def _are_edges(rows: Rows, connection: Connection) -> bool:
    """Whether these can be edges: both ends are keys that a node can have, and the weight is finite."""
    last = connection.exec_driver_sql("SELECT max(key) FROM nodes").scalar() or 0
    ends, weights = rows[:, :2], rows[:, 2]
    return bool(((ends >= 1) & (ends <= last)).all() and np.isfinite(weights).all())


def _select_rows(connection: Connection, query: str, values: tuple[Any, ...]) -> Iterator[Any]:
    # Rows of the driver: for a million rows, those of SQLAlchemy take ten times as long.
    cursor: Any = connection.exec_driver_sql(query, values).cursor
    return iter(cursor)
