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
    """Make the edges of a space equal to these; only what differs is written."""
    old = read_edges(store, space).rows
    old_a, old_b = old[:, 0].astype(np.int64), old[:, 1].astype(np.int64)
    codes, wanted = old_a << 32 | old_b, a << 32 | b
    order = np.argsort(codes, kind="stable")  # takes sorted runs as they are: edges are stored in a few of them
    at = np.searchsorted(codes, wanted, sorter=order)
    at = order[np.minimum(at, len(order) - 1)] if len(order) else np.zeros(len(wanted), np.int64)
    is_same = (codes[at] == wanted) & (old[at, 2] == weights) if len(order) else np.zeros(len(wanted), np.bool_)
    is_gone = np.ones(len(old), np.bool_)
    is_gone[at[is_same]] = False
    change.remove_edges(space, np.column_stack((old_a, old_b))[is_gone])
    change.put_edges(space, a[~is_same], b[~is_same], weights[~is_same])
