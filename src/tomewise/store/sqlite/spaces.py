"""Search in the vectors and edges of a tome in SQLite."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select

from tomewise.store.close_rows import Pairs, find_close_rows
from tomewise.store.key_indices import find_indices, find_known_indices
from tomewise.store.nearest import Nearest, find_top
from tomewise.store.sqlite.arrays import Arrays
from tomewise.store.sqlite.connections import Session
from tomewise.store.sqlite.mirror import Columns, Keys
from tomewise.store.sqlite.schema import spaces as versions_table

_BLOCK = 1024  # rows that several queries share while they are in the processor's cache
_TOUCHING = (
    "SELECT key, a, b, weight FROM edges WHERE space = :space AND a IN (SELECT value FROM json_each(:keys)) UNION "
    "SELECT key, a, b, weight FROM edges WHERE space = :space AND b IN (SELECT value FROM json_each(:keys)) "
    "ORDER BY key"
)


class StoredSpaces(Session):
    """See `store.contract.Spaces`."""

    _arrays: Arrays

    def nearest(self, space: str, queries: NDArray[np.float32], limit: int, *, among: Keys | None = None) -> Nearest:
        """The vectors nearest to any of the queries."""
        columns = self.vectors(space)
        keys = columns.stored_keys
        if among is None:
            cosines = _multiply(columns.stored_rows, queries)
            if columns.live is not None:
                keys, cosines = keys[columns.live], cosines[columns.live]
        else:
            is_among = find_known_indices(keys, among)[1]
            indices = np.flatnonzero(is_among if columns.live is None else is_among & columns.live)
            keys, cosines = keys[indices], _multiply_at(columns.stored_rows, indices, queries)
        best = find_top(cosines, limit)
        return Nearest(keys[best], cosines[best], float(cosines.min()) if len(cosines) else 0.0)

    def scores(
        self, space: str, query: NDArray[np.float32], *, among: Keys | None = None
    ) -> tuple[Keys, NDArray[np.float32]]:
        """The cosines of the vectors under these keys, or of all."""
        columns = self.vectors(space)
        indices = columns.indices
        if among is not None:
            found = find_indices(among, columns.keys)
            indices = found if indices is None else indices[found]
        if indices is None:
            return columns.keys, _multiply(columns.stored_rows, query)
        return columns.stored_keys[indices], _multiply_at(columns.stored_rows, indices, query)

    def rows(self, space: str, keys: Iterable[int]) -> NDArray[np.float32]:
        """The vectors of these keys."""
        columns = self.vectors(space)
        wanted = np.fromiter(keys, np.int64)
        found, is_known = find_known_indices(wanted, columns.keys)
        if not is_known.all():
            raise KeyError(f"{space} has no vectors for {wanted[~is_known][:5].tolist()}")
        rows = columns.stored_rows[found if columns.indices is None else columns.indices[found]]
        return np.asarray(rows, np.float32)

    def alike(self, space: str, rows: NDArray[np.float32], least: float) -> Pairs:
        """Pairs of one of `rows` and a close vector. Mapped memory is released at once: only building reads it."""
        columns = self.vectors(space)
        pairs = find_close_rows(rows, columns.stored_rows, least, columns.release_memory)
        if columns.live is not None:
            pairs = pairs.select(columns.live[pairs.neighbours])
        return Pairs(pairs.new, columns.stored_keys[pairs.neighbours], pairs.cosines)

    def neighbours(self, space: str, keys: Iterable[int]) -> NDArray[np.float64]:
        """The edges at these node keys, in the order in which they were added."""
        values = {"space": space, "keys": json.dumps(list(keys), default=int)}
        with self.read() as connection:
            cursor: Any = connection.exec_driver_sql(_TOUCHING, values).cursor
            table: NDArray[np.float64] = np.fromiter(cursor, dtype=np.dtype((np.float64, 4)))
        return table[:, 1:]

    def vectors(self, space: str) -> Columns:
        """The vectors of a space."""
        return self._arrays.columns(f"vectors/{space}")

    def edges(self, space: str) -> Columns:
        """The edges of a space."""
        return self._arrays.columns(f"edges/{space}")

    def arrays(self, spaces: Iterable[str]) -> dict[str, Columns]:
        """Several spaces at one moment. If a writer changes one while they are read, all are read again."""
        names = list(spaces)
        while True:
            versions = self.versions(names)
            columns = {name: self._arrays.columns(name) for name in names}
            if all(space.version == versions[name] for name, space in columns.items()):
                return columns

    def versions(self, spaces: Iterable[str]) -> dict[str, int]:
        """The versions of the spaces: random numbers, new with each change."""
        names, table = list(spaces), versions_table.c
        with self.read() as connection:
            found = connection.execute(select(table.space, table.version).where(table.space.in_(names)))
            return dict.fromkeys(names, 0) | {row[0]: row[1] for row in found}


def _multiply_at(
    rows: NDArray[np.float32], indices: NDArray[np.int64], queries: NDArray[np.float32]
) -> NDArray[np.float32]:
    """The cosines of the rows at these indices. Works in blocks, so that a large scope is not copied whole."""
    blocks = [indices[start : start + _BLOCK] for start in range(0, len(indices), _BLOCK)]
    return np.concatenate([np.empty(0, np.float32), *(_multiply(rows[block], queries) for block in blocks)])


def _multiply(rows: NDArray[np.float32], queries: NDArray[np.float32]) -> NDArray[np.float32]:
    """The cosine of each row with a query (d,), or its greatest with several (q, d)."""
    if not len(rows):
        return np.empty(0, np.float32)
    if queries.ndim == 1:
        return np.asarray(rows @ queries)
    greatest = np.empty(len(rows), np.float32)
    for start in range(0, len(rows), _BLOCK):
        block = slice(start, start + _BLOCK)
        np.max(rows[block] @ queries.T, axis=1, out=greatest[block])
    return greatest
