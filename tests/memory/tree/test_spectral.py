"""The spectral start: that of umap-learn for ordinary graphs, and the same each time for every graph."""

from __future__ import annotations

import warnings
from math import isqrt

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg
from tests.memory.tree.test_clustering import make_groups

from tomewise.memory.tree.clustering import reduce_by_umap
from tomewise.memory.tree.spectral import find_start


def make_graph(vectors: np.ndarray, nearest: int) -> scipy.sparse.coo_matrix:
    """Each row linked with its nearest rows, in both directions."""
    cosines = vectors @ vectors.T
    linked = np.zeros_like(cosines, bool)
    np.put_along_axis(linked, np.argsort(-cosines, axis=1, kind="stable")[:, :nearest], True, axis=1)
    weights = np.where(linked | linked.T, np.maximum(cosines, 0.01), 0)
    np.fill_diagonal(weights, 0)
    return scipy.sparse.coo_matrix(weights)


@pytest.mark.parametrize(
    ("sizes", "parts"), [([60], 1), ([30, 25, 4], 3), ([9] * 24, 24)], ids=["connected", "parts", "many parts"]
)
def test_ordinary_graphs_start_as_in_umap(sizes: list[int], parts: int) -> None:
    spectral = pytest.importorskip("umap.spectral")
    vectors = make_groups(sizes, spread=0.1)
    graph = make_graph(vectors, 4 if parts > 1 else 8)
    assert scipy.sparse.csgraph.connected_components(graph)[0] == parts
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = spectral.spectral_layout(vectors, graph, 10, np.random.RandomState(7), "cosine")
    np.testing.assert_array_equal(find_start(graph, vectors, 10, np.random.RandomState(7)), expected)


def test_a_search_that_does_not_converge_starts_at_random_and_the_same_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise scipy.sparse.linalg.ArpackNoConvergence("no", np.empty(0), np.empty((0, 0)))

    vectors = make_groups([30])
    monkeypatch.setattr(scipy.sparse.linalg, "eigsh", fail)
    starts = [find_start(make_graph(vectors, 8), vectors, 10, np.random.RandomState(7)) for _ in range(2)]
    np.testing.assert_array_equal(*starts)
    assert starts[0].shape == (30, 10)
    assert np.unique(starts[0]).size == 300


@pytest.mark.parametrize(("count", "distinct"), [(12, 1), (20, 1), (40, 2), (80, 3)])
def test_equal_passages_are_reduced_the_same_way_each_time(count: int, distinct: int) -> None:
    pytest.importorskip("umap")
    dice = np.random.default_rng(0)
    vectors = make_groups([1] * distinct)[dice.integers(0, distinct, count)]
    reduced = [reduce_by_umap(vectors, isqrt(count - 1), 10) for _ in range(4)]
    for repeated in reduced[1:]:
        np.testing.assert_array_equal(repeated, reduced[0])
