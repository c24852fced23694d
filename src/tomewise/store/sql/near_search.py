"""The nearest vectors of a space by the index of pgvector, over vectors of float16, compared again in float32."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import psycopg
from numpy.typing import NDArray

from tomewise.store.int8_rows import multiply_exactly
from tomewise.store.nearest import Keys, Nearest, Vectors, find_known_indices, select_nearest
from tomewise.store.sql.row_values import stack_vectors
from tomewise.store.sql.transaction import SharedTransaction

MOST_DIMENSIONS = 4_000  # of an index of this type
LEAST_VERSION = (0, 8)  # the version from which a search goes on until it has found enough
_EXTENSION = """
SELECT e.extversion, n.nspname, has_schema_privilege(n.oid, 'USAGE') FROM pg_extension e
JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector'
"""
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


def find_pgvector(transaction: SharedTransaction) -> tuple[str, str]:
    """The schema of pgvector in this database, as it may stand in statements with parameters, and an empty text.

    Where pgvector cannot be used, the first is empty, and the second says why, with the remedy.
    """
    found = transaction.run(_EXTENSION).one_or_none()
    if found is None:
        return "", "the database has no pgvector: its owner adds it with `CREATE EXTENSION vector`"
    version, schema, may_use = found
    numbers = tuple(int(number) if number.isdecimal() else 0 for number in version.split("."))
    if numbers < LEAST_VERSION:
        return "", f"pgvector is {version} here, which is too old: its owner runs `ALTER EXTENSION vector UPDATE`"
    quoted = '"' + schema.replace('"', '""') + '"'
    if not may_use:
        return "", f"you may not use pgvector here: its owner runs `GRANT USAGE ON SCHEMA {quoted} TO` you"
    return quoted.replace("%", "%%"), ""


def round_to_half(rows: Vectors) -> NDArray[np.float16] | None:
    """The numbers as float16; None if they, or their dimensions, are beyond what an index holds."""
    if not 0 < rows.shape[-1] <= MOST_DIMENSIONS:
        return None
    with np.errstate(over="ignore"):
        halves = rows.astype(np.float16)
    return halves if np.isfinite(halves).all() else None


def write_literal(half: NDArray[np.float16]) -> str:
    """One vector (d,) as text."""
    return str(half.tolist())


@dataclass(frozen=True, slots=True)
class NearTable:
    """The table with the vectors of one space in float16."""

    name: str
    space: str
    rows: int
    width: int
    schema: str  # of pgvector

    def search(self, driver: psycopg.Connection, queries: Vectors, limit: int, among: Keys | None) -> Nearest | None:
        """See `contract.Spaces.nearest`; None where float16 cannot hold the queries, or the table was just made anew.

        `lowest` is that of the rows least near to the mean of the queries, which is the true one for one query.
        """
        wanted = np.atleast_2d(queries)
        halves = round_to_half(np.vstack((wanted, -wanted.mean(axis=0, keepdims=True))))
        if halves is None or limit < 1 or halves.shape[1] != self.width:
            return None
        # In a pipeline statements wait for no other's reply. The settings end with the savepoint.
        with driver.pipeline() as pipeline:
            _run(driver, "SAVEPOINT near")
            try:
                found = _Search(self, driver, wanted, [write_literal(half) for half in halves], limit, among).find()
            except psycopg.errors.UndefinedTable:
                pipeline.sync()
                found = None
            _run(driver, "ROLLBACK TO SAVEPOINT near")
        return found

    def write_query(
        self, literals: list[str], count: int, among: Keys | None = None, *, by_index: bool
    ) -> tuple[str, list[Any]]:
        """The statement that asks for the `count` rows nearest to each query, and its values."""
        parts, values = [], list[Any]()
        for place, literal in enumerate(literals):
            # With its type: a table of a stranger may have another one, and an operator for it.
            product = f"vector::{self.schema}.halfvec OPERATOR({self.schema}.<#>) %s::{self.schema}.halfvec"
            order = product if by_index else f"({product}) + 0"  # a sum is not what the index is ordered by
            scope = "" if among is None else "WHERE key = ANY(%s::bigint[])"
            parts.append(f"(SELECT {place}::bigint, key, {order} FROM {self.name} {scope} ORDER BY 3 LIMIT {count})")
            values += [literal] if among is None else [literal, among]
        return " UNION ALL ".join(parts), values


@dataclass(frozen=True, slots=True)
class _Search:
    """One search in a table: the queries (q, d), and as texts these and the opposite of their mean."""

    table: NearTable
    driver: psycopg.Connection
    queries: Vectors
    literals: list[str]
    limit: int
    among: Keys | None

    def find(self) -> Nearest | None:
        """The nearest rows: by the index where this may find them, else by each row."""
        share = 1.0 if self.among is None else len(self.among) / self.table.rows
        count = int((self.limit + _MORE) / share) + 1 if share else self.table.rows
        found = None
        if count <= min(_MOST, self.table.rows) and (self.among is None or len(self.among) > FEW_ROWS):
            found = self._widen(count, share, by_index=True)
        return found or self._widen(self.limit + _MORE, 1.0, by_index=False)

    def _widen(self, count: int, share: float, *, by_index: bool) -> Nearest | None:
        """Ask for more rows until the nearest are among them; None if these are too many for the index.

        `share` is that of the rows that the index reaches and the scope has.
        """
        if by_index:
            self._set(_EF_LOWEST)
        asked = self._scan(self.literals[-1:], int(_LOWEST / share) + 1, by_index=by_index)
        lowest: NDArray[Any] | None = None
        while True:
            if by_index:
                self._set(max(int(_EF_SEARCH / share), count))
            scanned = self._scan(self.literals[:-1], count, by_index=by_index)
            lowest = _decode(asked) if lowest is None else lowest
            is_last = not by_index and count >= self.table.rows
            found = self._compare(_decode(scanned), lowest, is_last=is_last)
            count *= 4
            if found or (by_index and count > min(_MOST, self.table.rows)):
                return found

    def _set(self, ef_search: int) -> None:
        _run(self.driver, _SETTINGS, [str(min(_MOST_EF_SEARCH, ef_search)), str(4 * _MOST)])

    def _scan(self, literals: list[str], count: int, *, by_index: bool) -> psycopg.Cursor[Any]:
        among = None if by_index else self.among
        return _run(self.driver, *self.table.write_query(literals, count, among, by_index=by_index))

    def _compare(self, scanned: NDArray[Any], lowest: NDArray[Any], *, is_last: bool) -> Nearest | None:
        """The nearest of the rows that were found; None if one that was not found may be among them.

        This holds for what the index reaches: which rows it passes over, it cannot tell.
        """
        keys = np.union1d(scanned["key"], lowest["key"])
        if self.among is not None:
            keys = keys[find_known_indices(keys, self.among)[1]]
        stored = _run(self.driver, _VECTORS, [self.table.space, keys]).fetchall()
        if not stored:
            return Nearest(keys[:0], np.empty(0, np.float32), 0.0) if is_last else None
        keys, rows = np.array([key for key, _ in stored], np.int64), stack_vectors(vector for _, vector in stored)
        cosines = multiply_exactly(rows, self.queries)
        found = select_nearest(keys, cosines, self.limit)
        if is_last:
            return found
        last = [-scanned["product"][scanned["place"] == place][-1:] for place in range(len(self.queries))]
        if len(keys) < self.limit or not all(map(len, last)):
            return None
        reached = np.concatenate(last)
        lengths = np.linalg.norm(rows, axis=1).max() * np.linalg.norm(self.queries, axis=1)
        return found if (reached + _ROUNDING * lengths < found.cosines.min()).all() else None


def _run(driver: psycopg.Connection, query: str, values: list[Any] | None = None) -> psycopg.Cursor[Any]:
    # Not prepared: a plan for any values would not know how many keys there are.
    return driver.cursor(binary=True).execute(query, values, prepare=False)


def _decode(cursor: psycopg.Cursor[Any]) -> NDArray[Any]:
    """Rows that were found: the place of the query, the key, and the negative product of both."""
    return np.array(cursor.fetchall(), [("place", np.int64), ("key", np.int64), ("product", np.float64)])
