"""The compiled products of int8 rows. Importing Numba is slow, so `int8_rows` alone imports this, when used.

`rows` are packed rows, int8, and `words` the same bytes as float32. The arguments of a query are those that
`int8_rows` rounds. Sums are exact: a product of a row and a query is below 2 ** 31.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

_WORDS = 3  # at the end of a row: scale, distance from the exact row, length


@njit(cache=True, nogil=True)
def _estimate(row: Any, words: Any, query: Any, scale: Any, error: Any, norm: Any) -> tuple[float, float]:
    """The product of a row and a query, and how far the exact one may be from it."""
    total = np.int32(0)
    for place in range(len(query)):
        total = np.int32(total + np.int32(row[place]) * np.int32(query[place]))
    size, distance, length = words[-_WORDS], np.float64(words[1 - _WORDS]), np.float64(words[2 - _WORDS])
    return np.float64(total) * scale * size, distance * norm + length * error


@njit(cache=True, nogil=True)
def bound(rows: Any, words: Any, queries: Any, scales: Any, errors: Any, norms: Any, lower: Any, upper: Any) -> None:
    """Write bounds of the greatest exact product of each row with any of the queries."""
    for row in range(len(rows)):
        least, greatest = -np.inf, -np.inf
        for query in range(len(queries)):
            middle, reach = _estimate(rows[row], words[row], queries[query], scales[query], errors[query], norms[query])
            least, greatest = max(least, middle - reach), max(greatest, middle + reach)
        lower[row], upper[row] = least, greatest


@njit(cache=True, nogil=True)
def find_above(
    rows: Any, words: Any, queries: Any, scales: Any, errors: Any, norms: Any, least: Any, found: Any
) -> int:
    """Find the pairs of a query and a row whose exact product may be at least `least`.

    Returns how many they are, and writes as many of them as `found`, (n, 2), has room for.
    """
    count = 0
    for row in range(len(rows)):
        for query in range(len(queries)):
            middle, reach = _estimate(rows[row], words[row], queries[query], scales[query], errors[query], norms[query])
            if middle + reach >= least:
                if count < len(found):
                    found[count, 0], found[count, 1] = query, row
                count += 1
    return count
