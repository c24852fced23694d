"""Entities whose names mean nearly the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from tomewise.store.sqlite.mirror import Columns

THRESHOLD = 0.8  # HippoRAG 2
DECIMALS = 4  # cosines are compared and kept so, beyond the noise of a vector's last bits
_NEW, _OLD = 1024, 16384  # rows of one product: 64 MB of cosines


@dataclass(frozen=True, slots=True)
class Pairs:
    """Rows `new[i]` of the matrix asked about that are close to rows `other[i]` of the one searched."""

    new: NDArray[np.int64]
    other: NDArray[np.int64]
    cosines: NDArray[np.float64]


def close_to(rows: NDArray[np.float32], known: Columns) -> Pairs:
    """Live rows of `known` with a cosine of at least `THRESHOLD`; `other` are places in `known.stored_rows`.

    `rows` (n, dimensions) and those of `known` are of unit length. The mapped rows are read in place, not copied, and
    let go of at once: only building reads them.
    """
    found = []
    for new in range(0, len(rows), _NEW):
        for start in range(0, len(known.stored_rows), _OLD):
            found.append(_close(rows, known.stored_rows, new, start))
            known.release_memory()
    pairs = _together(found)
    if known.live is None:
        return pairs
    return _where(pairs, known.live[pairs.other])


def close_among(rows: NDArray[np.float32]) -> Pairs:
    """Pairs of rows with a cosine of at least `THRESHOLD`, each once, `new` before `other`."""
    found = [
        _close(rows, rows, new, start)
        for new in range(0, len(rows), _NEW)
        for start in range(new - new % _OLD, len(rows), _OLD)
    ]
    pairs = _together(found)
    return _where(pairs, pairs.new < pairs.other)


def _close(rows: NDArray[np.float32], known: NDArray[np.float32], new: int, start: int) -> Pairs:
    some, block = rows[new : new + _NEW], np.asarray(known[start : start + _OLD])
    # Near enough by the fast product; the sum that counts is one that no block size changes.
    near = np.flatnonzero((some @ block.T).ravel() > np.float32(THRESHOLD - 2 * 10.0**-DECIMALS))
    a, b = np.divmod(near, max(1, len(block)))
    cosines = np.empty(len(a))
    for at in range(0, len(a), _OLD):
        left, right = some[a[at : at + _OLD]].astype(np.float64), block[b[at : at + _OLD]].astype(np.float64)
        cosines[at : at + _OLD] = np.einsum("ij,ij->i", left, right)
    cosines = np.round(cosines, DECIMALS)
    return _where(Pairs(a + new, b + start, cosines), cosines >= THRESHOLD)


def _together(found: Sequence[Pairs]) -> Pairs:
    if not found:
        return Pairs(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    return Pairs(
        np.concatenate([pairs.new for pairs in found]),
        np.concatenate([pairs.other for pairs in found]),
        np.concatenate([pairs.cosines for pairs in found]),
    )


def _where(pairs: Pairs, keep: NDArray[np.bool_]) -> Pairs:
    return Pairs(pairs.new[keep], pairs.other[keep], pairs.cosines[keep])
