"""The undirected weighted graph that walks run on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tomewise.errors import UsageError


@dataclass(frozen=True, slots=True, eq=False)
class CsrGraph:
    """A symmetric weighted graph in compressed rows; both directions of an edge are stored, with one weight.

    `indptr` int64 (nodes + 1), `indices` int32 (entries), `weights` float32 (entries), all positive. The neighbours of
    node u are `indices[indptr[u]:indptr[u + 1]]`, ascending. Treat the arrays as read-only.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    weights: NDArray[np.float32]

    @classmethod
    def from_edges(cls, nodes: int, rows: ArrayLike, cols: ArrayLike, weights: ArrayLike) -> CsrGraph:
        """The graph of `nodes` nodes with the undirected edges rows[i] - cols[i].

        Weights of parallel edges in either direction add up (in float64); self-loops are left out. A graph cannot be
        changed: building a new one takes about 0.1 s for a million edges.

        Raises `UsageError` when the arrays differ in length, a node is not in 0..nodes - 1, or a weight is not a
        positive finite number.
        """
        from scipy.sparse import coo_array

        a, b, w = np.asarray(rows), np.asarray(cols), np.asarray(weights, dtype=np.float64)
        _check(nodes, a, b, w)
        a, b = a.astype(np.int32), b.astype(np.int32)
        not_loop = a != b
        if not not_loop.all():
            a, b, w = a[not_loop], b[not_loop], w[not_loop]
        both = (np.concatenate((a, b)), np.concatenate((b, a)))
        matrix = coo_array((np.concatenate((w, w)), both), shape=(nodes, nodes)).tocsr()
        matrix.sort_indices()
        return cls(
            matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32, copy=False), matrix.data.astype(np.float32)
        )

    @property
    def nodes(self) -> int:
        """How many nodes there are, isolated ones included."""
        return self.indptr.size - 1

    def is_sound(self) -> bool:
        """Whether all rows are in the arrays, neighbours are nodes and ascend, and all weights are positive numbers.

        Whether each edge is stored in both directions is not checked: that would mean sorting all of them.
        """
        return bool(
            self.indptr[0] == 0
            and (self.indptr[1:] >= self.indptr[:-1]).all()
            and self.indptr[-1] == len(self.indices) == len(self.weights)
            and ((self.indices >= 0) & (self.indices < self.nodes)).all()
            and (np.isfinite(self.weights) & (self.weights > 0)).all()
            and self._ascends()
        )

    def _ascends(self) -> bool:
        """Whether the neighbours of each node ascend."""
        ascends = np.append(True, self.indices[1:] > self.indices[:-1])
        begins = self.indptr[:-1]
        ascends[begins[begins < len(self.indices)]] = True
        return bool(ascends.all())

    def degrees(self) -> NDArray[np.float64]:
        """The sum of the weights at each node, shape (nodes,); 0 for an isolated node."""
        has_edges = np.diff(self.indptr) > 0
        sums = np.zeros(self.nodes)
        sums[has_edges] = np.add.reduceat(self.weights, self.indptr[:-1][has_edges], dtype=np.float64)
        return sums

    def edges(self) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float32]]:
        """Each edge once, as (rows, cols, weights) with row < col, in ascending order."""
        rows = np.repeat(np.arange(self.nodes, dtype=np.int32), np.diff(self.indptr))
        once = rows < self.indices
        return rows[once], self.indices[once], self.weights[once]


def _check(nodes: int, a: NDArray[Any], b: NDArray[Any], w: NDArray[np.float64]) -> None:
    if not a.shape == b.shape == w.shape or a.ndim != 1:
        raise UsageError(f"rows, cols and weights have shapes {a.shape}, {b.shape}, {w.shape}: give three equal lists")
    if not a.size:
        return
    low, high = min(a.min(), b.min()), max(a.max(), b.max())
    if low < 0 or high >= nodes:
        raise UsageError(f"edges name the nodes {low} to {high}, but there are {nodes}: number nodes from 0")
    if not (np.isfinite(w).all() and w.min() > 0):
        bad = w[~(np.isfinite(w) & (w > 0))][0]
        raise UsageError(f"an edge has the weight {bad}: weights are positive finite numbers")
