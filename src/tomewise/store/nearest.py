"""Rows of a space that are close: nearest to a query, or to each other, by exact comparison; and where keys are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.int64]
Vectors = NDArray[np.float32]

# The last bits of a sum of floats depend on the row's position; ties must not depend on them.
DECIMALS = 6
PAIR_DECIMALS = 4  # to which the cosines of pairs are rounded, for the same reason
NEW_ROWS, KNOWN_ROWS = 1024, 16384  # rows of one matrix product: 64 MB of cosines


@dataclass(frozen=True, slots=True, eq=False)
class Nearest:
    """The nearest rows of a space, in no order: keys (n,), cosines (n,), and the lowest cosine of all rows searched."""

    keys: Keys
    cosines: Vectors
    lowest: float

    def scale(self) -> NDArray[np.float64]:
        """The cosines scaled to 0..1 over all rows searched; if all of these are equal, 1, or 0 where they are 0."""
        cosines: NDArray[np.float64] = self.cosines.astype(np.float64)
        highest = float(cosines.max(initial=self.lowest))
        if self.lowest == highest:
            return np.ones_like(cosines) if highest else np.zeros_like(cosines)
        return np.asarray((cosines - self.lowest) / (highest - self.lowest))


def select_nearest(keys: Keys, cosines: Vectors, limit: int) -> Nearest:
    """The `limit` nearest of the rows under these keys, and all that tie with the last of them."""
    best = find_top(cosines, limit)
    return Nearest(keys[best], cosines[best], float(cosines.min()) if len(cosines) else 0.0)


def find_top(scores: NDArray[np.floating], limit: int) -> NDArray[np.intp]:
    """Positions of the `limit` best scores and of all scores that tie with the last of these, in no order."""
    if limit >= len(scores):
        return np.arange(len(scores))
    if limit <= 0:
        return np.empty(0, np.intp)
    least = np.partition(scores, len(scores) - limit)[len(scores) - limit]
    return np.flatnonzero(scores >= least - 10.0**-DECIMALS)


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
    cosines = np.round(cosines, PAIR_DECIMALS)
    return Pairs(a, b, cosines).select(cosines >= least)


def _compare_blocks(rows: Vectors, known: Vectors, new: int, start: int, least: float) -> Pairs:
    queries, block = rows[new : new + NEW_ROWS], np.asarray(known[start : start + KNOWN_ROWS])
    # The fast product selects candidates. The exact cosines below do not depend on the block size.
    candidates = np.flatnonzero((queries @ block.T).ravel() > np.float32(least - 2 * 10.0**-PAIR_DECIMALS))
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


def find_known_indices(keys: Keys, sorted_keys: Keys) -> tuple[Keys, NDArray[np.bool_]]:
    """The indices in `sorted_keys` of those keys that are in it, and a flag for each key: whether it is in it."""
    if not len(sorted_keys):
        return np.empty(0, np.int64), np.zeros(len(keys), np.bool_)
    indices = np.minimum(np.searchsorted(sorted_keys, keys), len(sorted_keys) - 1)
    is_known = sorted_keys[indices] == keys
    return indices[is_known], is_known
