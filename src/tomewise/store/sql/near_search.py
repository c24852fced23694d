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
from tomewise.store.sql.row_values import stack_vectors
from tomewise.store.sql.turn import find_driver

_EF_SEARCH = 200  # candidates that a search keeps on its way through the index
_MOST_EF_SEARCH = 1_000  # of pgvector
_MORE = 32  # candidates beyond the limit at first, for ties and for the rounding to float16
_MOST = 8_000  # candidates by the index; where these do not suffice, each row is compared
_LOWEST, _EF_LOWEST = 8, 40  # candidates for the lowest cosine, of which only the scale of others depends
_FEW = 10_000  # rows of a scope that are compared one by one
_ROUNDING = 2.0**-9  # by its root of the dimensions, the share of the lengths by which float16 may move a product
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
        # The settings hold for these statements alone: they end with the savepoint.
        savepoint = connection.begin_nested()
        try:
            return self._search(connection, wanted, [write_literal(half) for half in halves], limit, among)
        except psycopg.errors.UndefinedTable:
            return None
        finally:
            savepoint.rollback()

    def _search(
        self, connection: Connection, queries: Rows, literals: list[str], limit: int, among: Keys | None
    ) -> Nearest:
        share = 1.0 if among is None else len(among) / self.rows
        count = int((limit + _MORE) / share) + 1 if share else self.rows
        if among is None or len(among) > _FEW:
            self._set(connection, _EF_LOWEST)
            lowest = self._scan(connection, literals[-1:], int(_LOWEST / share) + 1, by_index=True)
            while count <= min(_MOST, self.rows):
                self._set(connection, max(_EF_SEARCH, count))
                scanned = self._scan(connection, literals[:-1], count, by_index=True)
                if found := self._compare(connection, queries, limit, among, scanned, lowest):
                    return found
                count *= 4
        lowest = self._scan(connection, literals[-1:], _LOWEST, among=among)
        count = limit + _MORE
        while True:  # each row
            scanned = self._scan(connection, literals[:-1], count, among=among)
            is_last = count >= self.rows
            if found := self._compare(connection, queries, limit, None, scanned, lowest, is_last=is_last):
                return found
            count *= 4

    def _set(self, connection: Connection, ef_search: int) -> None:
        connection.exec_driver_sql(_SETTINGS, (str(min(_MOST_EF_SEARCH, ef_search)), str(4 * _MOST)))

    def _scan(
        self,
        connection: Connection,
        literals: list[str],
        count: int,
        *,
        by_index: bool = False,
        among: Keys | None = None,
    ) -> _Scanned:
        """The `count` rows nearest to each query."""
        query, values = self.write_query(literals, count, by_index=by_index, among=among)
        kinds = np.dtype([("place", np.int64), ("key", np.int64), ("product", np.float64)])
        table = np.array(_fetch(connection, query, values), kinds)
        return _Scanned(table["place"], table["key"], -table["product"])

    def write_query(
        self, literals: list[str], count: int, *, by_index: bool, among: Keys | None = None
    ) -> tuple[str, list[str]]:
        """The statement that `search` sends, and its values."""
        parts, values = [], []
        for place, literal in enumerate(literals):
            product = f"vector {self.halfvec.product} %s::{self.halfvec.type}"
            order = product if by_index else f"({product}) + 0"  # a sum is not what the index is ordered by
            scope = "" if among is None else "WHERE key = ANY(%s::bigint[])"
            parts.append(f"(SELECT {place}::bigint, key, {order} FROM {self.name} {scope} ORDER BY 3 LIMIT {count})")
            values += [literal] if among is None else [literal, _write_keys(among)]
        return " UNION ALL ".join(parts), values

    def _compare(
        self,
        connection: Connection,
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
        keys, rows = self._read_vectors(connection, keys)
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
        margin = _ROUNDING / np.sqrt(queries.shape[1]) * lengths
        return found if (reached + margin < cosines[best].min()).all() else None

    def _read_vectors(self, connection: Connection, keys: Keys) -> tuple[Keys, Rows]:
        rows = _fetch(connection, _VECTORS, [self.space, _write_keys(keys)])
        if not rows:
            return np.empty(0, np.int64), np.empty((0, 0), np.float32)
        found, vectors = zip(*rows, strict=True)
        return np.array(found, np.int64), stack_vectors(vectors)


def _fetch(connection: Connection, query: str, values: list[str]) -> list[Any]:
    # Not prepared: a plan for any values would not know how many keys there are.
    with find_driver(connection).cursor(binary=True) as cursor:
        return cursor.execute(query, values, prepare=False).fetchall()


def _write_keys(keys: Keys) -> str:
    return "{" + ",".join(map(str, keys.tolist())) + "}"
