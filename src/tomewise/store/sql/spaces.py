"""Search in the vectors and edges of a tome."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tomewise.store import int8_rows
from tomewise.store.contract import End
from tomewise.store.int8_rows import (
    Bounds,
    bound_cosines,
    bound_rounding,
    find_candidates,
    find_close_candidates,
    multiply_exactly,
)
from tomewise.store.nearest import (
    PAIR_DECIMALS,
    Nearest,
    Pairs,
    Vectors,
    find_close_rows,
    find_known_indices,
    measure_pairs,
    select_nearest,
)
from tomewise.store.sql.arrays import Arrays
from tomewise.store.sql.dialects import Transaction
from tomewise.store.sql.mirror import Columns, Keys
from tomewise.store.sql.row_values import decode_plain
from tomewise.store.sql.stored_records import StoredPart, reads

_BLOCK = 1024  # rows that several queries share while they are in the processor's cache
_PACKED_SHARE = 1 / 8  # of the rows: a smaller scope is searched by itself
CANDIDATE_SHARE = 1 / 8  # of the rows: with more candidates all exact products are quicker
_FEW_QUERIES = 64  # for more, products of whole matrices are quicker
_VERSIONS = """SELECT spaces.space, spaces.version
FROM spaces"""
_VERSIONS_OF = f"{_VERSIONS} WHERE spaces.space IN :names"
# The edges with these nodes at one end, in the order of the nodes at the other end.
_EDGES_AT = """
SELECT edges.a, edges.b, edges.weight FROM edges JOIN nodes ON nodes.key = edges.{far}
LEFT JOIN documents ON documents.key = nodes.document WHERE edges.{near} IN :keys AND edges.space IN :spaces
ORDER BY documents.id NULLS FIRST, nodes.level, nodes.position, nodes.id
"""


class StoredSpaces(StoredPart):
    """See `store.contract.Spaces`."""

    _arrays: Arrays

    def nearest(self, space: str, queries: Vectors, limit: int, *, among: Keys | None = None) -> Nearest:
        """The vectors nearest to any of the queries.

        In a large space the best are chosen by exact products, so that they are the same with packed rows and without.
        """
        name = f"vectors/{space}"
        columns = self._read_columns(name)
        count = len(columns.stored_keys)
        is_large = count >= int8_rows.LEAST_ROWS and (among is None or len(among) > _PACKED_SHARE * count)
        if is_large and (packed := self._arrays.find_packed(name, columns)) is not None:
            lower, upper = bound_cosines(packed.stored_rows, queries)
            searched = _find_searched(packed, among)
            bounds = lower[searched], upper[searched]
            found = _choose_nearest(columns, packed.stored_keys[searched], bounds, queries, limit)
            if found is not None:
                return found
        searched = _find_searched(columns, among)
        keys = columns.stored_keys[searched]
        if among is None:
            cosines = multiply_rows(columns.stored_rows, queries)[searched]
        else:
            cosines = _multiply_at(columns.stored_rows, searched, queries)
        found = None
        if is_large:
            margin = bound_rounding(queries)
            found = _choose_nearest(columns, keys, (cosines - margin, cosines + margin), queries, limit)
        return select_nearest(keys, cosines, limit) if found is None else found

    def scores(self, space: str, query: Vectors, *, among: Keys | None = None) -> tuple[Keys, Vectors]:
        """The cosines of the vectors under these keys, or of all."""
        columns = self._read_columns(f"vectors/{space}")
        indices = columns.indices if among is None else _find_places(columns, among)
        if indices is None:
            return columns.keys, multiply_rows(columns.stored_rows, query)
        return columns.stored_keys[indices], _multiply_at(columns.stored_rows, indices, query)

    def rows(self, space: str, keys: Iterable[int]) -> Vectors:
        """The vectors of these keys."""
        columns = self._read_columns(f"vectors/{space}")
        wanted = np.fromiter(keys, np.int64)
        is_known = find_known_indices(wanted, columns.keys)[1]
        if not is_known.all():
            raise KeyError(f"{space} has no vectors for {wanted[~is_known][:5].tolist()}")
        return np.asarray(columns.stored_rows[_find_places(columns, wanted)], np.float32)

    def alike(self, space: str, rows: Vectors, least: float) -> Pairs:
        """Pairs of one of `rows` and a close vector. Mapped memory is released at once: only building reads it."""
        columns = self._read_columns(f"vectors/{space}")
        packed = self._arrays.find_packed(f"vectors/{space}", columns) if len(rows) <= _FEW_QUERIES else None
        if packed is not None:
            return _find_alike(columns, packed, rows, least)
        pairs = find_close_rows(rows, columns.stored_rows, least, columns.release_memory)
        if columns.live is not None:
            pairs = pairs.select(columns.live[pairs.neighbours])
        return Pairs(pairs.new, columns.stored_keys[pairs.neighbours], pairs.cosines)

    @reads
    def edges_at(
        self, transaction: Transaction, spaces: Iterable[str], keys: Iterable[int], end: End
    ) -> NDArray[np.float64]:
        """The edges with one of these nodes at this end, in the document order of the nodes at the other end."""
        query = _EDGES_AT.format(near=end, far="b" if end == "a" else "a")
        with decode_plain("edges"):
            found = transaction.ask(query, keys=list(keys), spaces=list(spaces))
            return np.fromiter(found, dtype=np.dtype((np.float64, 3)))

    @reads
    def arrays(self, transaction: Transaction, spaces: Iterable[str]) -> dict[str, Columns]:
        """Several spaces at one moment."""
        return {space: self._arrays.columns(space, transaction) for space in spaces}

    @reads
    def versions(self, transaction: Transaction, spaces: Iterable[str] | None = None) -> dict[str, int]:
        """The versions of the spaces: random numbers, new with each change."""
        if spaces is None:
            return dict(transaction.fetch(_VERSIONS))
        names = list(spaces)
        return dict.fromkeys(names, 0) | dict(transaction.fetch(_VERSIONS_OF, names=names))

    def find_kept(self, name: str, versions: Mapping[str, int]) -> NDArray[np.int8] | None:
        """The bytes kept under a name at these versions of spaces, or None."""
        return self._arrays.find_kept(name, versions)

    def keep(self, name: str, versions: Mapping[str, int], content: NDArray[np.int8]) -> None:
        """Keep bytes that follow from these versions of spaces, if that can be done now, in place of earlier ones."""
        self._arrays.keep(name, versions, content)

    @reads
    def _read_columns(self, transaction: Transaction, space: str) -> Columns:
        return self._arrays.columns(space, transaction)


def _choose_nearest(columns: Columns, keys: Keys, bounds: Bounds, queries: Vectors, limit: int) -> Nearest | None:
    """The nearest of the vectors under these keys by exact products; None if the bounds leave too many candidates."""
    candidates = find_candidates(bounds, limit)
    if len(candidates) >= CANDIDATE_SHARE * len(keys):
        return None
    keys = keys[candidates]
    return select_nearest(keys, multiply_exactly(columns.stored_rows[_find_places(columns, keys)], queries), limit)


def _find_searched(columns: Columns, among: Keys | None) -> Any:
    """The indices of the stored rows that are live and under these keys, or a slice of all."""
    if among is None:
        return slice(None) if columns.live is None else np.flatnonzero(columns.live)
    is_among = find_known_indices(columns.stored_keys, among)[1]
    return np.flatnonzero(is_among if columns.live is None else is_among & columns.live)


def _find_alike(columns: Columns, packed: Columns, rows: Vectors, least: float) -> Pairs:
    """Pairs of a row and a close vector, found by packed rows."""
    new, places = find_close_candidates(packed.stored_rows, rows, least - 10.0**-PAIR_DECIMALS)
    if packed.live is not None:
        new, places = new[packed.live[places]], places[packed.live[places]]
    neighbours = packed.stored_keys[places]
    order = np.lexsort((neighbours, new))
    new, neighbours = new[order], neighbours[order]
    pairs = measure_pairs(rows, columns.stored_rows, new, _find_places(columns, neighbours), least)
    return Pairs(pairs.new, columns.stored_keys[pairs.neighbours], pairs.cosines)


def _find_places(columns: Columns, keys: Keys) -> Keys:
    """Where the vectors of these keys are in the stored rows."""
    found = find_known_indices(keys, columns.keys)[0]
    return found if columns.indices is None else columns.indices[found]


def _multiply_at(rows: Vectors, indices: Keys, queries: Vectors) -> Vectors:
    """The cosines of the rows at these indices. Works in blocks, so that a large scope is not copied whole."""
    blocks = [indices[start : start + _BLOCK] for start in range(0, len(indices), _BLOCK)]
    return np.concatenate([np.empty(0, np.float32), *(multiply_rows(rows[block], queries) for block in blocks)])


def multiply_rows(rows: Vectors, queries: Vectors) -> Vectors:
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
