"""Cosines with the vectors of a space."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tomewise.store.sqlite.mirror import Columns

_BLOCK = 1024


def cosines(
    columns: Columns, queries: NDArray[np.float32], *, among: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Keys (n,) of all live rows of a space, and their cosines: (n,) for one query (d,), (n, q) for several (q, d).

    With `among`, ascending keys, only those of these rows.
    """
    if not len(columns.stored_keys):
        return columns.stored_keys, np.empty((0, *queries.shape[:-1]), np.float32)
    if among is not None:
        return _cosines_among(columns, queries, among)
    scores = np.empty((len(columns.stored_keys), *queries.shape[:-1]), np.float32)
    # Several queries share a block of rows while it is in the processor's cache. One query needs no blocks.
    block = len(scores) if queries.ndim == 1 else _BLOCK
    for start in range(0, len(scores), block):
        np.matmul(columns.stored_rows[start : start + block], queries.T, out=scores[start : start + block])
    if columns.live is None:
        return columns.stored_keys, scores
    return columns.stored_keys[columns.live], scores[columns.live]


def _cosines_among(
    columns: Columns, queries: NDArray[np.float32], among: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    is_wanted = np.isin(columns.stored_keys, among)
    places = np.flatnonzero(is_wanted if columns.live is None else is_wanted & columns.live)
    scores = np.empty((len(places), *queries.shape[:-1]), np.float32)
    # In blocks, so that a large scope is not copied whole.
    for start in range(0, len(places), _BLOCK):
        block = slice(start, start + _BLOCK)
        np.matmul(columns.stored_rows[places[block]], queries.T, out=scores[block])
    return columns.stored_keys[places], scores


def cosines_at(
    columns: Columns, keys: NDArray[np.int64], query: NDArray[np.float32]
) -> tuple[NDArray[np.bool_], NDArray[np.float32]]:
    """A flag for each key, whether it is live in a space, and the cosines of the live keys with a query (d,)."""
    places = np.arange(len(columns.stored_keys)) if columns.live is None else np.flatnonzero(columns.live)
    live = columns.stored_keys[places]
    if not _is_ascending(live):
        order = np.argsort(live)
        places, live = places[order], live[order]
    found, is_live = find_places_of_known(keys, live)
    return is_live, np.asarray(columns.stored_rows[places[found]] @ query)


def live_keys(columns: Columns) -> NDArray[np.int64]:
    """The live keys of a space, ascending. `Columns.keys` would copy all rows too if some of them are dead."""
    keys = columns.stored_keys if columns.live is None else columns.stored_keys[columns.live]
    return keys if _is_ascending(keys) else np.sort(keys)


def scale_to_all(scores: NDArray[np.floating], places: NDArray[np.integer]) -> NDArray[np.float64]:
    """The scores at `places`, scaled to 0..1 over all: `cognirank.min_max(scores)[places]` without copying all."""
    picked: NDArray[np.float64] = np.asarray(scores[places], np.float64)
    if not len(scores):
        return picked
    low, high = float(scores.min()), float(scores.max())
    if low == high:
        return np.ones_like(picked) if low else np.zeros_like(picked)
    return np.asarray((picked - low) / (high - low))


def find_places(keys: NDArray[np.int64], sorted_keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """The places in `sorted_keys` of those keys that are in it."""
    return find_places_of_known(keys, sorted_keys)[0]


def find_places_of_known(
    keys: NDArray[np.int64], sorted_keys: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The places in `sorted_keys` of those keys that are in it, and a flag for each key: whether it is in it."""
    if not len(sorted_keys):
        return np.empty(0, np.int64), np.zeros(len(keys), np.bool_)
    places = np.minimum(np.searchsorted(sorted_keys, keys), len(sorted_keys) - 1)
    is_known = sorted_keys[places] == keys
    return places[is_known], is_known


def _is_ascending(keys: NDArray[np.int64]) -> bool:
    return bool((keys[1:] > keys[:-1]).all())
