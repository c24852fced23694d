"""Edges as a layer holds them: in rows, in groups, or as whole spaces."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from tomewise.store.contract import Spaces, Write
from tomewise.store.lookups import read_edges, read_pairs

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def split_rows(rows: Iterable[tuple[int, int, float]]) -> tuple[Ints, Ints, Floats]:
    """Edges of key, key and weight as `Write.put_edges` takes them."""
    table = np.array(list(rows), np.float64).reshape(-1, 3)
    return table[:, 0].astype(np.int64), table[:, 1].astype(np.int64), table[:, 2]


def group_pairs(store: Spaces, space: str) -> defaultdict[int, set[int]]:
    """The second ends of the edges of a space by their first."""
    groups: defaultdict[int, set[int]] = defaultdict(set)
    for a, b in read_pairs(store, space).tolist():
        groups[a].add(b)
    return groups


def write_edges(change: Write, store: Spaces, space: str, a: Ints, b: Ints, weights: Floats) -> None:
    """Make the edges of a space equal to these, each pair once; only what differs is written."""
    old = read_edges(store, space).rows
    pairs = old[:, :2].astype(np.int64)
    old_codes, codes = pairs[:, 0] << 32 | pairs[:, 1], a << 32 | b
    _, at_old, at_new = np.intersect1d(old_codes, codes, assume_unique=True, return_indices=True)
    is_same = old[at_old, 2] == weights[at_new]
    fresh = np.delete(np.arange(len(a)), at_new[is_same])
    change.remove_edges(space, np.delete(pairs, at_old[is_same], axis=0))
    change.put_edges(space, a[fresh], b[fresh], weights[fresh])
