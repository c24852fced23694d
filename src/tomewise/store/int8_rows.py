"""Rows of vectors in int8: they find the few rows that exact products must decide.

A packed row has the numbers of a row divided by their scale and rounded, int8, with zeros up to a multiple of four.
Three float32 follow: the scale, the distance of the packed row from the row, and the length of the packed row. A query
is rounded in the same way. By Cauchy and Schwarz |row q - row8 q8| <= |row - row8| |q| + |row8| |q - q8|. What cannot
be among the best within these bounds is left out. The rest is multiplied exactly: results are those of exact products.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tomewise.store.nearest import DECIMALS, Keys, Vectors

Packed = NDArray[np.int8]
_Exact = NDArray[np.float64]
_Rounded = tuple[NDArray[np.int16], _Exact, _Exact, _Exact]
Bounds = tuple[Vectors, Vectors]  # lower and upper, (n,) each

_WORD = 4  # bytes of a float32
_WORDS = 3
LEAST_ROWS = 16_384  # with fewer, the exact products take less than a millisecond
_BLOCK = 4096
GROUPS = 8  # times as many groups as rows wanted
_GREATEST, _GREATEST_OF_QUERY = 127, 32_767
_SLACK = 1e-6  # share of a bound that the rounding of float32 may move it


def are_worth_packing(count: int) -> bool:
    """Whether a search in so many rows should read packed ones.

    Their compiled code takes as long to load as twenty searches take, so it is used where a walk has loaded Numba.
    """
    return count >= LEAST_ROWS and "numba" in sys.modules


def pack_rows(
    rows: Vectors,
    indices: Keys | None = None,
    after_block: Callable[[], object] = lambda: None,
) -> Packed:
    """The packed rows of `rows` (n, d), or of those at `indices`.

    `rows` are read in blocks; `after_block` is called after each, for example to release mapped memory.
    """
    padded = -(-rows.shape[1] // _WORD) * _WORD
    packed = np.zeros((len(rows) if indices is None else len(indices), padded + _WORDS * _WORD), np.int8)
    for start in range(0, len(packed), _BLOCK):
        block = slice(start, start + _BLOCK)
        exact = rows[block if indices is None else indices[block]].astype(np.float64)
        whole, scales, near = _round(exact, _GREATEST, np.float32)
        words = np.stack(
            (scales.astype(np.float32), _round_up(_measure(exact - near)), _round_up(_measure(near))), axis=1
        )
        packed[block, : rows.shape[1]] = whole
        packed[block, padded:] = words.view(np.int8)
        after_block()
    return packed


def have_bounds(packed: Packed) -> bool:
    """Whether packed rows give bounds: their scales, distances and lengths are finite and not negative."""
    words = _read_words(packed)
    return bool((np.isfinite(words) & (words >= 0)).all())


def are_packed(packed: Packed, rows: Vectors) -> bool:
    """Whether these are the packed rows of `rows`; the last digit of a sum may differ."""
    expected = pack_rows(rows)
    return (
        packed.shape == expected.shape
        and np.array_equal(packed[:, : -_WORDS * _WORD], expected[:, : -_WORDS * _WORD])
        and np.allclose(_read_words(packed), _read_words(expected), rtol=_SLACK, atol=1e-37)
    )


def bound_cosines(packed: Packed, queries: Vectors) -> Bounds:
    """Bounds of the greatest exact product of each row with a query (d,), or with any of several (q, d)."""
    from tomewise.store import int8_kernels

    lower, upper = np.empty(len(packed), np.float32), np.empty(len(packed), np.float32)
    rounded = _round_queries(packed, np.atleast_2d(queries))
    int8_kernels.bound(packed, packed.view(np.float32), *rounded, lower, upper)
    return lower, upper


def find_candidates(bounds: Bounds, limit: int) -> NDArray[np.intp]:
    """Indices of all rows that may be among the `limit` best, tie with the last of these, or be the lowest of all."""
    lower, upper = bounds
    if limit >= len(lower) or not np.isfinite(lowest := float(upper.min())):
        return np.arange(len(lower))
    is_candidate = lower <= _move(lowest, 1)
    if limit > 0:
        is_candidate |= upper >= _move(_find_reached(lower, limit), -1)
    return np.flatnonzero(is_candidate)


def bound_rounding(queries: Vectors) -> np.float32:
    """How far the product in float32 of a query, or of any of several, with a row of length 1 may be from the exact."""
    lengths = _measure(np.atleast_2d(queries).astype(np.float64))
    return np.float32(queries.shape[-1] * float(np.finfo(np.float32).eps) * lengths.max(initial=0))


def multiply_exactly(rows: Vectors, queries: Vectors) -> Vectors:
    """The product of each row with a query (d,), or its greatest with several (q, d), rounded once."""
    products = rows.astype(np.float64) @ np.atleast_2d(queries).astype(np.float64).T
    return np.asarray(products.max(axis=1).astype(np.float32))


def find_close_candidates(packed: Packed, queries: Vectors, least: float) -> tuple[Keys, Keys]:
    """Indices of queries (n,) and rows (n,) of all pairs whose exact product may be at least `least`."""
    from tomewise.store import int8_kernels

    rounded = _round_queries(packed, queries)
    room, count = 0, _BLOCK
    while count > room:
        found = np.empty((room := count, 2), np.int64)
        count = int8_kernels.find_above(packed, packed.view(np.float32), *rounded, least, found)
    return found[:count, 0], found[:count, 1]


def _round_queries(packed: Packed, queries: Vectors) -> _Rounded:
    """Queries as whole numbers (q, padded), int16, their scales, distances from the exact queries, and lengths (q,)."""
    exact = queries.astype(np.float64)
    width = packed.shape[1] - _WORDS * _WORD
    greatest = min(_GREATEST_OF_QUERY, (2**31 - 1) // (_GREATEST * max(1, width)))
    whole = np.zeros((len(exact), width), np.int16)
    whole[:, : exact.shape[1]], scales, near = _round(exact, greatest, np.float64)
    return whole, scales, (1 + _SLACK) * _measure(exact - near), (1 + _SLACK) * _measure(exact)


def _round(exact: _Exact, greatest: int, kind: DTypeLike) -> tuple[_Exact, _Exact, _Exact]:
    """Rows as whole numbers up to `greatest`, their scales, of this kind of float, and the rows that both stand for."""
    scales = (np.abs(exact).max(axis=1, initial=0) / greatest).astype(kind).astype(np.float64)
    whole = np.clip(np.rint(exact / np.where(scales > 0, scales, 1)[:, None]), -greatest, greatest)
    return whole, scales, whole * scales[:, None]


def _find_reached(lower: Vectors, limit: int) -> float:
    """A bound that at least `limit` rows reach: the last of the best of groups of rows, which are quick to sort."""
    size = max(1, len(lower) // (GROUPS * limit))
    count = len(lower) // size
    best = lower[: count * size].reshape(size, count).max(axis=0)
    return float(np.partition(best, count - limit)[count - limit])


def _move(bound: float, direction: int) -> float:
    """Move a bound so far that ties count as reaching it."""
    return bound + direction * (10.0**-DECIMALS + _SLACK * abs(bound))


def _read_words(packed: Packed) -> Vectors:
    return packed.view(np.float32)[:, -_WORDS:]


def _measure(rows: _Exact) -> _Exact:
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", rows, rows)))


def _round_up(numbers: _Exact) -> Vectors:
    return np.asarray(np.nextafter(numbers.astype(np.float32), np.float32(np.inf)))
