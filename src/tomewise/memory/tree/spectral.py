"""The spectral start of UMAP (Belkin, Niyogi 2003; McInnes et al. 2018, section 4.4), the same for the same graph.

umap-learn gives no generator to `eigsh`, which then draws from the entropy of the system whenever its search space
collapses, as it does for many equal points. This follows umap-learn 0.5 draw by draw, and hands in a generator, so that
all other graphs start as they do there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Array: TypeAlias = "NDArray[np.float64]"
Vectors: TypeAlias = "NDArray[np.floating[Any]]"
_TOLERANCE = 1e-4


def find_start(graph: Any, vectors: Vectors, dimensions: int, random: np.random.RandomState) -> Vectors:
    """Place the vertices of a weighted sparse graph by the eigenvectors of its Laplacian; returns (n, dimensions).

    `vectors`, shape (n, any), place the parts of a graph that falls into parts.
    """
    from scipy.sparse.csgraph import connected_components

    count, labels = connected_components(graph)
    if count == 1:
        return _place_connected(graph, dimensions, random)
    return _place_parts(graph.tocsr(), labels, _place_centres(vectors, labels, count, dimensions, random), random)


def _place_connected(graph: Any, dimensions: int, random: np.random.RandomState) -> Array:
    """Place the vertices of a connected graph; at random where the search for eigenvectors does not converge."""
    from scipy.sparse import identity, spdiags
    from scipy.sparse.linalg import ArpackError, eigsh

    count = graph.shape[0]
    wanted = dimensions + 1
    scale = spdiags(1.0 / np.sqrt(np.asarray(graph.sum(axis=0)).squeeze()), 0, count, count)
    random.normal(size=(count, wanted))  # umap-learn draws these and does not use them
    try:
        values, eigenvectors = eigsh(
            identity(count, dtype=np.float64) - scale * graph * scale,
            wanted,
            which="SM",
            ncv=max(2 * wanted + 1, int(np.sqrt(count))),
            tol=_TOLERANCE,
            v0=np.ones(count),
            maxiter=5 * count,
            rng=np.random.default_rng(0),
        )
    except ArpackError:
        return random.uniform(-10.0, 10.0, (count, dimensions))
    placed: Array = eigenvectors[:, np.argsort(values)[1:]]
    return placed


def _place_parts(graph: Any, labels: NDArray[np.int32], centres: Array, random: np.random.RandomState) -> Vectors:
    """Place each part around its centre, within half the distance to the next centre."""
    from sklearn.metrics.pairwise import euclidean_distances

    dimensions = centres.shape[1]
    placed = np.empty((len(labels), dimensions), np.float32)
    for label, centre in enumerate(centres):
        members = labels == label
        size = int(members.sum())
        far = euclidean_distances([centre], centres)
        radius = far[far > 0].min() / 2
        if size < 2 * dimensions or size <= dimensions + 1:
            offsets = random.uniform(-radius, radius, (size, dimensions))
        else:
            offsets = _place_connected(graph[members][:, members].tocoo(), dimensions, random)
            offsets *= radius / np.abs(offsets).max()
        placed[members] = offsets + centre
    return placed


def _place_centres(
    vectors: Vectors, labels: NDArray[np.int32], count: int, dimensions: int, random: np.random.RandomState
) -> Array:
    """Place the centres of parts: few on the axes, many by the eigenvectors of how alike their mean vectors are."""
    if count <= 2 * dimensions:
        axes = np.eye((count + 1) // 2, dimensions)
        return np.vstack([axes, -axes])[:count]
    from scipy.sparse.csgraph import laplacian
    from scipy.sparse.linalg import eigsh
    from sklearn.metrics.pairwise import cosine_distances

    means = np.array([vectors[labels == label].mean(axis=0) for label in range(count)], np.float64)
    parts: tuple[Any, Any] = laplacian(np.exp(-(cosine_distances(means) ** 2)), normed=True, return_diag=True)
    matrix, degrees = parts
    np.fill_diagonal(matrix, 1)
    # As scikit-learn does it: the least eigenvalues are those nearest to a small negative number.
    first = random.uniform(-1, 1, count)
    _, eigenvectors = eigsh(matrix, dimensions + 1, sigma=-1e-5, v0=first, rng=np.random.default_rng(0))
    rows = eigenvectors.T / degrees
    rows *= np.sign(rows[np.arange(len(rows)), np.abs(rows).argmax(axis=1)])[:, None]
    placed: Array = rows[1:].T / rows[1:].max()
    return placed
