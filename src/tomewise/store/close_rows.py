"""Find rows with a high cosine by exact comparison, block by block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tomewise.store.nearest import Keys, Vectors

DECIMALS = 4  # cosines are rounded to this, so that the last bits of vectors do not matter
NEW_ROWS, KNOWN_ROWS = 1024, 16384  # rows of one matrix product: 64 MB of cosines


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Pairs of close rows: row `new[i]` of the query matrix is close to `neighbours[i]`, a row or the key of one."""

    new: Keys
    neighbours: Keys
    cosines: NDArray[np.float64]

    def select(self, keep: NDArray[np.bool_]) -> Pairs:
        """The pairs for which `keep` is true."""
        return Pairs(self.new[keep], self.neighbours[keep], self.cosines[keep])


def find_close_rows(
    rows: Vectors,
    known: Vectors,
    least: float,
    after_block: Callable[[], object] = lambda: None,
) -> Pairs:
    """Find rows of `known` with a cosine of at least `least`; `neighbours` are indices of `known`.

    `rows` (n, dimensions) and `known` (m, dimensions) have unit length. `known` is read in place, in blocks;
    `after_block` is called after each, for example to release mapped memory.
    """
    found = []
    for new in range(0, len(rows), NEW_ROWS):
        for start in range(0, len(known), KNOWN_ROWS):
            found.append(_compare_blocks(rows, known, new, start, least))
            after_block()
    return _concatenate(found)


def find_close_pairs(rows: Vectors, least: float) -> Pairs:
    """Find pairs of rows with a cosine of at least `least`, each once, with `new` before `neighbours`."""
    found = [
        _compare_blocks(rows, rows, new, start, least)
        for new in range(0, len(rows), NEW_ROWS)
        for start in range(new - new % KNOWN_ROWS, len(rows), KNOWN_ROWS)
    ]
    pairs = _concatenate(found)
    return pairs.select(pairs.new < pairs.neighbours)


def measure_pairs(rows: Vectors, known: Vectors, a: Keys, b: Keys, least: float) -> Pairs:
    """Those of the pairs rows[a[i]] and known[b[i]] whose exact cosine is at least `least`."""
    cosines = np.empty(len(a))
    for at in range(0, len(a), KNOWN_ROWS):
        block = slice(at, at + KNOWN_ROWS)
        left, right = rows[a[block]].astype(np.float64), known[b[block]].astype(np.float64)
        cosines[block] = np.einsum("ij,ij->i", left, right)
    cosines = np.round(cosines, DECIMALS)
    return Pairs(a, b, cosines).select(cosines >= least)


def _compare_blocks(rows: Vectors, known: Vectors, new: int, start: int, least: float) -> Pairs:
    queries, block = rows[new : new + NEW_ROWS], np.asarray(known[start : start + KNOWN_ROWS])
    # The fast product selects candidates. The exact cosines below do not depend on the block size.
    candidates = np.flatnonzero((queries @ block.T).ravel() > np.float32(least - 2 * 10.0**-DECIMALS))
    a, b = np.divmod(candidates, max(1, len(block)))
    pairs = measure_pairs(queries, block, a, b, least)
    return Pairs(pairs.new + new, pairs.neighbours + start, pairs.cosines)


def _concatenate(found: Sequence[Pairs]) -> Pairs:
    if not found:
        return Pairs(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    return Pairs(
        np.concatenate([pairs.new for pairs in found]),
        np.concatenate([pairs.neighbours for pairs in found]),
        np.concatenate([pairs.cosines for pairs in found]),
    )
