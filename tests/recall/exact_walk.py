"""What the walk approximates: personalised PageRank by power iteration."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from tomewise.recall.walk import CsrGraph


def list_edges(graph: CsrGraph) -> list[tuple[int, int, float]]:
    """Each edge once, as (a, b, weight) with a < b, in ascending order."""
    rows = np.repeat(np.arange(graph.nodes), np.diff(graph.indptr))
    edges = zip(rows.tolist(), graph.indices.tolist(), graph.weights.tolist(), strict=True)
    return [(a, b, weight) for a, b, weight in edges if a < b]


def power_iteration(
    graph: CsrGraph, seeds: ArrayLike, *, restart: float = 0.5, tolerance: float = 1e-12
) -> NDArray[np.float64]:
    """The exact mass of each node, shape (graph.nodes,), sum 1; `seeds`, of the same shape, may have any sum.

    Iterates in float64 until one step moves a mass of at most `tolerance` in total.
    """
    start = np.asarray(seeds, dtype=np.float64)
    r = start / start.sum()
    degrees = graph.degrees()
    isolated = degrees == 0
    scale = np.divide(1 - restart, degrees, out=np.zeros_like(degrees), where=~isolated)
    shape = (graph.nodes, graph.nodes)
    matrix = csr_array((graph.weights.astype(np.float64), graph.indices, graph.indptr), shape=shape)
    pi = r
    while True:
        following = matrix @ (scale * pi) + (restart + (1 - restart) * pi[isolated].sum()) * r
        if np.abs(following - pi).sum() <= tolerance:
            return np.asarray(following)
        pi = following
