"""Cosines with what a space of vectors holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tomewise.store.sqlite.mirror import Columns

_BLOCK = 1024


def cosines(columns: Columns, queries: NDArray[np.float32]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Keys (n,) of all that lives in a space, and their cosines: (n,) for one query (d,), (n, q) for several (q, d)."""
    if not len(columns.stored_keys):
        return columns.stored_keys, np.empty((0, *queries.shape[:-1]), np.float32)
    scores = np.empty((len(columns.stored_keys), *queries.shape[:-1]), np.float32)
    # By blocks that stay in cache, or several queries would cost as many readings of memory; one is best in one go.
    block = len(scores) if queries.ndim == 1 else _BLOCK
    for start in range(0, len(scores), block):
        np.matmul(columns.stored_rows[start : start + block], queries.T, out=scores[start : start + block])
    if columns.live is None:
        return columns.stored_keys, scores
    return columns.stored_keys[columns.live], scores[columns.live]


def cosines_at(
    columns: Columns, keys: NDArray[np.int64], query: NDArray[np.float32]
) -> tuple[NDArray[np.bool_], NDArray[np.float32]]:
    """Which of some keys live in a space, and the cosines of those with a query (d,)."""
    places = np.arange(len(columns.stored_keys)) if columns.live is None else np.flatnonzero(columns.live)
    there = columns.stored_keys[places]
    if not _ascending(there):
        order = np.argsort(there)
        places, there = places[order], there[order]
    found, held = known_with(keys, there)
    return held, np.asarray(columns.stored_rows[places[found]] @ query)


def live_keys(columns: Columns) -> NDArray[np.int64]:
    """The keys of all that lives in a space, ascending. (`Columns.keys` copies all rows too where some are dead.)"""
    keys = columns.stored_keys if columns.live is None else columns.stored_keys[columns.live]
    return keys if _ascending(keys) else np.sort(keys)


def scaled(scores: NDArray[np.floating], places: NDArray[np.integer]) -> NDArray[np.float64]:
    """Some of the scores moved to 0..1 over all of them: `cognirank.min_max(scores)[places]`, without copying all."""
    some: NDArray[np.float64] = np.asarray(scores[places], np.float64)
    if not len(scores):
        return some
    low, high = float(scores.min()), float(scores.max())
    if low == high:
        return np.ones_like(some) if low else np.zeros_like(some)
    return np.asarray((some - low) / (high - low))


def known(keys: NDArray[np.int64], sorted_keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Places of those keys that are there."""
    return known_with(keys, sorted_keys)[0]


def known_with(keys: NDArray[np.int64], sorted_keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Places of those keys that are there, and which of the keys these are."""
    if not len(sorted_keys):
        return np.empty(0, np.int64), np.zeros(len(keys), np.bool_)
    places = np.minimum(np.searchsorted(sorted_keys, keys), len(sorted_keys) - 1)
    held = sorted_keys[places] == keys
    return places[held], held


def _ascending(keys: NDArray[np.int64]) -> bool:
    return bool((keys[1:] > keys[:-1]).all())
