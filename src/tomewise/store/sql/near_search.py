"""The nearest vectors of a space by the index of pgvector, compared again in float32."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import psycopg
from numpy.typing import NDArray
from sqlalchemy import Connection

from tomewise.store.int8_rows import multiply_exactly
from tomewise.store.key_indices import find_known_indices
from tomewise.store.nearest import Nearest, find_top
from tomewise.store.sql.halfvec import Halfvec, Rows, round_to_half, write_literal
from tomewise.store.sql.mirror import Keys
from tomewise.store.sql.postgres_arrays import find_driver
from tomewise.store.sql.row_values import stack_vectors

_EF_SEARCH = 160  # candidates that a search keeps on its way through the index
_MOST_EF_SEARCH = 1_000  # of pgvector
_MORE = 32  # candidates beyond the limit at first, for ties and for the rounding to float16
_MOST = 8_000  # candidates by the index; where these do not suffice, each row is compared
_LOWEST, _EF_LOWEST = 8, 20  # candidates for the lowest cosine, of which only the scale of others depends
FEW_ROWS = 10_000  # rows of a scope that are compared one by one
_ROUNDING = 2.0**-10  # the share of the lengths by which float16, of both vectors, may move a product
_SETTINGS = """
SELECT set_config('hnsw.iterative_scan', 'strict_order', true), set_config('hnsw.ef_search', %s, true),
  set_config('hnsw.max_scan_tuples', %s, true), set_config('hnsw.scan_mem_multiplier', '8', true),
  set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true)
"""
_VECTORS = "SELECT key, vector FROM vectors WHERE space = %s AND key = ANY(%s::bigint[]) ORDER BY key"


@dataclass(frozen=True, slots=True)
class _Scanned:
    """Rows (n,) that were found, each with the place of its query and its product with it."""

    places: NDArray[np.int64]
    keys: Keys
    products: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class NearTable:
    """The table with the vectors of one space in float16. All its statements read the moment of the connection."""

    name: str
    space: str
    rows: int
    width: int
    halfvec: Halfvec

    def search(self, connection: Connection, queries: Rows, limit: int, among: Keys | None) -> Nearest | None:
        """See `contract.Spaces.nearest`; None where float16 cannot hold the queries, or the table was just made anew.

        `lowest` is that of the rows least near to the mean of the queries, which is the true one for one query.
        """
        wanted = np.atleast_2d(queries)
        halves = round_to_half(np.vstack((wanted, -wanted.mean(axis=0, keepdims=True))))
        if halves is None or limit < 1 or halves.shape[1] != self.width:
            return None
        driver = find_driver(connection)
        # In a pipeline statements wait for no other's reply. The settings end with the savepoint.
        with driver.pipeline() as pipeline:
            _run(driver, "SAVEPOINT near")
            try:
                found = self._search(driver, wanted, [write_literal(half) for half in halves], limit, among)
            except psycopg.errors.UndefinedTable:
                pipeline.sync()
                found = None
            _run(driver, "ROLLBACK TO SAVEPOINT near")
        return found

    def _search(
        self, driver: psycopg.Connection, queries: Rows, literals: list[str], limit: int, among: Keys | None
    ) -> Nearest | None:
        share = 1.0 if among is None else len(among) / self.rows
        count = int((limit + _MORE) / share) + 1 if share else self.rows
        found = None
        if count <= min(_MOST, self.rows) and (among is None or len(among) > FEW_ROWS):
            found = self._widen(driver, queries, literals, limit, among, count, share, by_index=True)
        return found or self._widen(driver, queries, literals, limit, among, limit + _MORE, 1.0, by_index=False)

    def _widen(
        self,
        driver: psycopg.Connection,
        queries: Rows,
        literals: list[str],
        limit: int,
        among: Keys | None,
        count: int,
        share: float,
        *,
        by_index: bool,
    ) -> Nearest | None:
        """Ask for more rows until the nearest are among them; None if these are too many for the index.

        `share` is that of the rows that the index reaches and the scope has.
        """
        if by_index:
            _set(driver, _EF_LOWEST)
        asked = self._scan(driver, literals[-1:], int(_LOWEST / share) + 1, by_index=by_index, among=among)
        least: _Scanned | None = None
        while True:
            if by_index:
                _set(driver, max(int(_EF_SEARCH / share), count))
            scanned = self._scan(driver, literals[:-1], count, by_index=by_index, among=among)
            least = least or _decode(asked)
            is_last = not by_index and count >= self.rows
            found = self._compare(driver, queries, limit, among, _decode(scanned), least, is_last=is_last)
            count *= 4
            if found or (by_index and count > min(_MOST, self.rows)):
                return found

    def _scan(
        self,
        driver: psycopg.Connection,
        literals: list[str],
        count: int,
        *,
        by_index: bool,
        among: Keys | None,
    ) -> psycopg.Cursor[Any]:
        """Ask for the `count` rows nearest to each query."""
        return _run(driver, *self.write_query(literals, count, None if by_index else among, by_index=by_index))

    def write_query(
        self, literals: list[str], count: int, among: Keys | None = None, *, by_index: bool
    ) -> tuple[str, list[str]]:
        """The statement that `search` sends, and its values."""
        parts, values = [], []
        for place, literal in enumerate(literals):
            # With its type: a table of a stranger may have another one, and an operator for it.
            product = f"vector::{self.halfvec.type} {self.halfvec.product} %s::{self.halfvec.type}"
            order = product if by_index else f"({product}) + 0"  # a sum is not what the index is ordered by
            scope = "" if among is None else "WHERE key = ANY(%s::bigint[])"
            parts.append(f"(SELECT {place}::bigint, key, {order} FROM {self.name} {scope} ORDER BY 3 LIMIT {count})")
            values += [literal] if among is None else [literal, _write_keys(among)]
        return " UNION ALL ".join(parts), values

    def _compare(
        self,
        driver: psycopg.Connection,
        queries: Rows,
        limit: int,
        among: Keys | None,
        scanned: _Scanned,
        lowest: _Scanned,
        *,
        is_last: bool = False,
    ) -> Nearest | None:
        """The nearest of the rows that were found; None if one that was not found may be among them.

        This holds for what the index reaches: which rows it passes over, it cannot tell.
        """
        keys = np.union1d(scanned.keys, lowest.keys)
        if among is not None:
            keys = keys[find_known_indices(keys, among)[1]]
        keys, rows = self._read_vectors(driver, keys)
        if not len(keys):
            return Nearest(keys, np.empty(0, np.float32), 0.0) if is_last else None
        cosines = multiply_exactly(rows, queries)
        best = find_top(cosines, limit)
        found = Nearest(keys[best], cosines[best], float(cosines.min()))
        if is_last:
            return found
        last = [scanned.products[scanned.places == place][-1:] for place in range(len(queries))]
        if len(keys) < limit or not all(map(len, last)):
            return None
        reached = np.concatenate(last)
        lengths = np.linalg.norm(rows, axis=1).max() * np.linalg.norm(queries, axis=1)
        return found if (reached + _ROUNDING * lengths < cosines[best].min()).all() else None

    def _read_vectors(self, driver: psycopg.Connection, keys: Keys) -> tuple[Keys, Rows]:
        rows = _run(driver, _VECTORS, [self.space, _write_keys(keys)]).fetchall()
        if not rows:
            return np.empty(0, np.int64), np.empty((0, 0), np.float32)
        found, vectors = zip(*rows, strict=True)
        return np.array(found, np.int64), stack_vectors(vectors)


def _set(driver: psycopg.Connection, ef_search: int) -> None:
    _run(driver, _SETTINGS, [str(min(_MOST_EF_SEARCH, ef_search)), str(4 * _MOST)])


def _run(driver: psycopg.Connection, query: str, values: list[str] | None = None) -> psycopg.Cursor[Any]:
    # Not prepared: a plan for any values would not know how many keys there are.
    return driver.cursor(binary=True).execute(query, values, prepare=False)


def _decode(cursor: psycopg.Cursor[Any]) -> _Scanned:
    kinds = np.dtype([("place", np.int64), ("key", np.int64), ("product", np.float64)])
    table = np.array(cursor.fetchall(), kinds)
    return _Scanned(table["place"], table["key"], -table["product"])


def _write_keys(keys: Keys) -> str:
    return "{" + ",".join(map(str, keys.tolist())) + "}"
