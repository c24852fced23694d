"""Find entities whose names mean nearly the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from tomewise.store.sqlite.mirror import Columns

THRESHOLD = 0.8  # HippoRAG 2
DECIMALS = 4  # cosines are rounded to this, so that the last bits of vectors do not matter
_NEW, _OLD = 1024, 16384  # rows of one matrix product: 64 MB of cosines


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs of close rows: row `new[i]` of the query matrix is close to row `neighbours[i]` of the searched matrix."""

    new: NDArray[np.int64]
    neighbours: NDArray[np.int64]
    cosines: NDArray[np.float64]


def find_close_rows(rows: NDArray[np.float32], known: Columns) -> Pairs:
    """Find live rows of `known` with a cosine of at least `THRESHOLD`; `neighbours` index `known.stored_rows`.

    `rows` (n, dimensions) and the rows of `known` have unit length. The memory-mapped rows are read in place and
    released at once, because only building reads them.
    """
    found = []
    for new in range(0, len(rows), _NEW):
        for start in range(0, len(known.stored_rows), _OLD):
            found.append(_compare_blocks(rows, known.stored_rows, new, start))
            known.release_memory()
    pairs = _concatenate(found)
    if known.live is None:
        return pairs
    return _select(pairs, known.live[pairs.neighbours])


def find_close_pairs(rows: NDArray[np.float32]) -> Pairs:
    """Find pairs of rows with a cosine of at least `THRESHOLD`, each once, with `new` before `neighbours`."""
    found = [
        _compare_blocks(rows, rows, new, start)
        for new in range(0, len(rows), _NEW)
        for start in range(new - new % _OLD, len(rows), _OLD)
    ]
    pairs = _concatenate(found)
    return _select(pairs, pairs.new < pairs.neighbours)


def _compare_blocks(rows: NDArray[np.float32], known: NDArray[np.float32], new: int, start: int) -> Pairs:
    queries, block = rows[new : new + _NEW], np.asarray(known[start : start + _OLD])
    # The fast product selects candidates. The exact cosines below do not depend on the block size.
    candidates = np.flatnonzero((queries @ block.T).ravel() > np.float32(THRESHOLD - 2 * 10.0**-DECIMALS))
    a, b = np.divmod(candidates, max(1, len(block)))
    cosines = np.empty(len(a))
    for at in range(0, len(a), _OLD):
        left, right = queries[a[at : at + _OLD]].astype(np.float64), block[b[at : at + _OLD]].astype(np.float64)
        cosines[at : at + _OLD] = np.einsum("ij,ij->i", left, right)
    cosines = np.round(cosines, DECIMALS)
    return _select(Pairs(a + new, b + start, cosines), cosines >= THRESHOLD)


def _concatenate(found: Sequence[Pairs]) -> Pairs:
    if not found:
        return Pairs(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    return Pairs(
        np.concatenate([pairs.new for pairs in found]),
        np.concatenate([pairs.neighbours for pairs in found]),
        np.concatenate([pairs.cosines for pairs in found]),
    )


def _select(pairs: Pairs, keep: NDArray[np.bool_]) -> Pairs:
    return Pairs(pairs.new[keep], pairs.neighbours[keep], pairs.cosines[keep])
