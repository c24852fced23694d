"""The vectors and edges of a tome as arrays: held warm, cached beside the file, read from the database at need."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import Connection, func, select

from tomewise.errors import StoreError
from tomewise.store.sqlite.mirror import Columns, Delta, Keys, Mirror, Rows
from tomewise.store.sqlite.schema import meta, spaces, vectors

Begin = Callable[[], AbstractContextManager[Connection]]


class Arrays:
    """The arrays of one tome by space (`vectors/NAME` or `edges/NAME`).

    `reading` begins a view of the database. `mending` begins a write transaction if it can without waiting, and raises
    Locked otherwise: whoever holds it is the only one to touch the files.
    """

    def __init__(self, folder: Path, tome: str, reading: Begin, mending: Begin) -> None:
        self._folder = folder
        self._tome = tome
        self._reading = reading
        self._mending = mending
        self._guards: dict[str, threading.Lock] = {}
        self._held: dict[str, Columns] = {}

    def columns(self, space: str) -> Columns:
        """The arrays of a space as they are now: from memory, else from the files, else from the database."""
        with self._guards.setdefault(space, threading.Lock()):
            with self._reading() as connection:
                version = version_of(connection, space)
                held = self._held.get(space)
                if held is not None and held.version == version and held.is_whole:
                    return held
                found = self._mirror(space).read(version)
                missing = found is None
                if found is None:
                    found = Columns(version, *load(connection, space))
            if missing and len(found.stored_keys):
                found = self._mend(space, found)
            self._held[space] = found
            return found

    def follow(self, connection: Connection, deltas: Mapping[str, tuple[int, int, Delta]]) -> None:
        """Take the files along with a write transaction that is about to commit.

        Should it not commit, the files name a version that never was, and are not believed.
        """
        for space, (before, after, delta) in deltas.items():
            mirror = self._mirror(space)
            try:
                if before and mirror.follow(delta, before, after):
                    continue
                rows = load(connection, space) if before else (delta.added_keys, delta.added_rows)
                mirror.write(after, *rows)
            except OSError:
                continue  # a full disk, say: the files are behind, and read anew when they can be

    def _mend(self, space: str, found: Columns) -> Columns:
        mirror = self._mirror(space)
        try:
            with self._mending() as connection:
                if version_of(connection, space) == found.version:
                    mirror.write(found.version, found.stored_keys, found.stored_rows)
        except (StoreError, OSError):  # somebody writes just now, or nobody may: the next reader will see to it
            return found
        return mirror.read(found.version) or found

    def _mirror(self, space: str) -> Mirror:
        dtype = np.dtype(np.float32) if space.startswith("vectors/") else np.dtype(np.float64)
        return Mirror(self._folder, space, self._tome, dtype)


def version_of(connection: Connection, space: str) -> int:
    """The version of a space, 0 before anything was ever put there."""
    return connection.scalar(select(spaces.c.version).where(spaces.c.space == space)) or 0


def load(connection: Connection, space: str) -> tuple[Keys, Rows]:
    """The arrays of a space from the tables, keys ascending."""
    kind, name = space.split("/", 1)
    return _vectors(connection, name) if kind == "vectors" else edges_after(connection, name)


def edges_after(connection: Connection, space: str, last: int = 0) -> tuple[Keys, Rows]:
    """The edges of a space (`NAME` alone) with keys above `last`."""
    found = _rows(
        connection, "SELECT key, a, b, weight FROM edges WHERE space = ? AND key > ? ORDER BY key", (space, last)
    )
    table = np.fromiter(found, dtype=np.dtype((np.float64, 4)))
    return table[:, 0].astype(np.int64), table[:, 1:]


def _vectors(connection: Connection, space: str) -> tuple[Keys, Rows]:
    # Row by row into one array: a list of all rows would take the memory of the array twice more.
    (count,) = next(_rows(connection, "SELECT count(*) FROM vectors WHERE space = ?", (space,)))
    found = _rows(connection, "SELECT key, vector FROM vectors WHERE space = ? ORDER BY key", (space,))
    keys, rows = np.empty(count, np.int64), np.empty((0, _dimensions(connection)), np.float32)
    for place, (key, vector) in enumerate(found):
        if not place:
            rows = np.empty((count, len(vector) // 4), np.float32)
        keys[place] = key
        rows[place] = np.frombuffer(vector, np.float32)
    return keys, rows


def _dimensions(connection: Connection) -> int:
    """How wide an empty space is: as the tome says, else as any vector there is."""
    said = connection.scalar(select(meta.c.value).where(meta.c.key == "dimensions"))
    return int(said or connection.scalar(select(func.length(vectors.c.vector) // 4).limit(1)) or 0)


def _rows(connection: Connection, query: str, values: tuple[Any, ...]) -> Iterator[Any]:
    # The driver's own rows: SQLAlchemy's cost ten times as much where there are a million.
    cursor: Any = connection.exec_driver_sql(query, values).cursor
    return iter(cursor)
