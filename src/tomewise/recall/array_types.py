"""The arrays that retrievers hand on to one another."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Keys: TypeAlias = NDArray[np.int64]
"""Keys of nodes in the store, or vertices of a graph, shape (n,)."""
Vertices: TypeAlias = NDArray[np.int32]
"""Vertices in the arrays of a graph, shape (n,)."""
Floats: TypeAlias = NDArray[np.float64]
"""Scores, weights or masses, shape (n,)."""
Vectors: TypeAlias = NDArray[np.float32]
"""A vector (d,), several (n, d), or values as exact as these, such as cosines (n,)."""
Flags: TypeAlias = NDArray[np.bool_]
"""Whether each of several is wanted, shape (n,)."""
Ranking: TypeAlias = tuple[Keys, Floats]
"""Keys and scores, best first."""


def sort_keys(keys: Iterable[int]) -> Keys:
    """Keys as an array, ascending, as a search `among` them takes it."""
    return np.array(sorted(keys), np.int64)


def join_keys(first: Keys, second: Keys) -> Keys:
    """One number for each pair of keys; keys are below 2 ** 31."""
    return (first << 32) | second
