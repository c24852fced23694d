"""Soft clusters by mixtures: who is a member, the length limit, equal clusters for equal vectors, and threads."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from math import isqrt
from threading import Event

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_info

from tomewise.memory.tree.clustering import (
    DIMENSIONS,
    SMALL,
    Reduction,
    assign_clusters,
    choose_reduction,
    cluster_in_two_stages,
    cut_cluster,
    draw_centres,
    find_best_fit,
    find_clusters,
    find_nearest,
    fit,
    group_points,
    reduce_by_pca,
    reduce_by_umap,
)

PCA = Reduction("pca", reduce_by_pca)


def make_groups(sizes: list[int], spread: float = 0.01, seed: int = 0) -> np.ndarray:
    """Groups of unit vectors in 24 dimensions, each around its own direction."""
    dice = np.random.default_rng(seed)
    centres = np.repeat(np.eye(24)[: len(sizes)], sizes, axis=0)
    rows = centres + spread * dice.normal(size=(sum(sizes), 24))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize(
    ("posteriors", "clusters"),
    [
        # 0.1 itself does not pass; an empty component is not a cluster.
        ([[0.95, 0.05, 0.0], [0.45, 0.55, 0.0], [0.1, 0.9, 0.0], [0.85, 0.15, 0.0]], [(0, 1, 3), (1, 2, 3)]),
        ([[1 / 12] * 12, [1 / 12] * 5 + [1 / 12 + 0.01] + [1 / 12] * 6], [(0,), (1,)]),  # else the likeliest
        ([[0.5, 0.5], [0.4, 0.6]], [(0, 1)]),  # equal members are one cluster
    ],
)
def test_a_point_joins_all_components_above_the_threshold_else_the_likeliest(posteriors, clusters) -> None:
    assert assign_clusters(np.array(posteriors)) == clusters


def test_small_global_clusters_stay_and_large_ones_are_clustered_on_the_original_vectors() -> None:
    asked: list[tuple[tuple[int, ...], int, int]] = []

    def reduce(rows: np.ndarray, neighbours: int, dimensions: int) -> np.ndarray:
        asked.append((rows.shape, neighbours, dimensions))
        return reduce_by_pca(rows, neighbours, 2)

    found = cluster_in_two_stages(make_groups([SMALL, SMALL + 1]), Reduction("spy", reduce))
    assert tuple(range(SMALL)) in found
    count = 2 * SMALL + 1
    assert asked == [((count, 24), isqrt(count - 1), DIMENSIONS), ((SMALL + 1, 24), 10, DIMENSIONS)]
    assert set().union(*found) == set(range(count))


def test_equal_vectors_stay_apart() -> None:
    found = find_clusters(np.ones((30, 8), np.float32), [100] * 30, PCA, 1000)
    assert sorted(place for cluster in found for place in cluster) == list(range(30))
    assert [len(cluster) for cluster in found] == [10, 10, 10]  # only their places differ


def test_a_cluster_too_long_is_cut_in_order_and_one_long_text_stays_whole() -> None:
    assert cut_cluster((2, 3, 5, 7, 8), [0, 0, 4, 4, 0, 20, 0, 1, 9], 10) == [(2, 3), (5,), (7, 8)]


@settings(max_examples=15)
@given(st.lists(st.integers(1, 20), min_size=1, max_size=4), st.integers(0, 9), st.integers(5, 400))
def test_each_point_has_a_cluster_none_is_too_long_and_results_repeat(sizes: list[int], seed: int, most: int) -> None:
    vectors = make_groups(sizes, spread=0.3, seed=seed)
    tokens = np.random.default_rng(seed).integers(1, 60, len(vectors)).tolist()
    found = find_clusters(vectors, tokens, PCA, most)
    assert set().union(*found) == set(range(len(vectors)))
    assert found == sorted(set(found))
    assert all(list(cluster) == sorted(set(cluster)) for cluster in found)
    assert all(len(cluster) == 1 or sum(tokens[place] for place in cluster) <= most for cluster in found)
    assert find_clusters(vectors.copy(), tokens, PCA, most) == found


def test_neighbours_are_those_of_a_plain_search() -> None:
    pytest.importorskip("sklearn")
    vectors = make_groups([5, 6], spread=0.2)
    vectors[3] = vectors[9] = vectors[0]
    indices, distances = find_nearest(vectors, 4)
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, 1.0)
    assert indices[:, 0].tolist() == list(range(11))
    assert all(len(set(row)) == 4 for row in indices.tolist())
    np.testing.assert_allclose(distances, 1 - np.take_along_axis(cosines, indices, axis=1), atol=1e-6)
    np.testing.assert_allclose(distances, np.sort(1 - cosines, axis=1)[:, :4], atol=1e-6)


def test_pca_is_the_projection_of_most_variance_and_stands_in_for_umap_with_a_note(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    vectors = make_groups([5, 6, 7], spread=0.2)
    reduced = reduce_by_pca(vectors, 0, 4)
    centred = vectors - vectors.mean(axis=0, dtype=np.float64)
    values = np.linalg.eigvalsh(centred.T @ centred)[::-1][:4]
    assert reduced.T @ reduced == pytest.approx(np.diag(values), abs=1e-5)
    monkeypatch.setitem(sys.modules, "umap", None)
    reduction = choose_reduction()
    assert (reduction.name, reduction.reduce) == ("pca", reduce_by_pca)
    assert "tomewise[umap]" in reduction.note


def test_umap_separates_groups_the_same_way_each_time() -> None:
    pytest.importorskip("umap")
    reduction = choose_reduction()
    assert (reduction.name, reduction.note) == ("umap", "")
    vectors = make_groups([20, 25], spread=0.1)
    found = find_clusters(vectors, [1] * 45, reduction, 3500)
    assert found == find_clusters(vectors, [1] * 45, reduction, 3500)
    assert set().union(*found) == set(range(45))
    assert all(max(cluster) < 20 or min(cluster) >= 20 for cluster in found)
    for count in (2, 3, 4, 12):  # the smallest counts that a recursion may reach
        assert set().union(*cluster_in_two_stages(vectors[:count], reduction)) == set(range(count))


@pytest.mark.parametrize(("count", "distinct"), [(3, 2), (12, 1), (80, 3)])
def test_equal_and_opposite_passages_are_reduced_the_same_way_each_time(count: int, distinct: int) -> None:
    pytest.importorskip("umap")
    dice = np.random.default_rng(0)
    vectors = make_groups([1] * distinct)[dice.integers(0, distinct, count)]
    first, *others = (reduce_by_umap(vectors, max(2, isqrt(count - 1)), min(10, count - 2)) for _ in range(3))
    assert np.isfinite(first).all()
    for repeated in others:
        np.testing.assert_array_equal(repeated, first)
    opposite = make_groups([1, 1, 1])
    opposite[0] = -opposite[1]
    assert np.isfinite(reduce_by_umap(opposite, 2, 1)).all()


def count_threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_a_tree_that_is_done_does_not_give_threads_to_another() -> None:
    """BLAS has one thread while anything is clustered, and afterwards as many as before."""
    second_begins, first_ended = Event(), Event()
    seen: list[set[int]] = []

    def reduce_first(rows: np.ndarray, neighbours: int, dimensions: int) -> np.ndarray:
        assert second_begins.wait(60)
        return reduce_by_pca(rows, neighbours, dimensions)

    def reduce_second(rows: np.ndarray, neighbours: int, dimensions: int) -> np.ndarray:
        second_begins.set()
        assert first_ended.wait(60)
        seen.append(count_threads())
        return reduce_by_pca(rows, neighbours, dimensions)

    vectors = make_groups([5])
    before = count_threads()
    with ThreadPoolExecutor(2) as pool:
        first, second = (
            pool.submit(find_clusters, vectors, [1] * 5, Reduction("waiting", reduce), 100)
            for reduce in (reduce_first, reduce_second)
        )
        first.result()
        first_ended.set()
        second.result()
    assert seen == [{1}]
    assert count_threads() == before


def make_points(seed: int, count: int = 80, dimensions: int = 3) -> np.ndarray:
    dice = np.random.default_rng(seed)
    rows = dice.normal(size=(count, dimensions)) + 4 * dice.integers(0, 3, (count, 1))
    return rows - rows.mean(axis=0)


def make_labels(points: np.ndarray, count: int, seed: int) -> np.ndarray:
    return group_points(points, points[draw_centres(points, count, np.random.RandomState(seed))])


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 99), st.integers(1, 4))
def test_fits_as_scikit_learn_does_from_the_same_groups(seed: int, count: int) -> None:
    points = make_points(seed)
    labels = make_labels(points, count, seed)
    groups = [points[labels == label] for label in np.unique(labels)]
    spreads = [np.cov(group.T, bias=True) + 1e-6 * np.eye(3) for group in groups]
    theirs = GaussianMixture(
        len(groups),
        weights_init=[len(group) / len(points) for group in groups],
        means_init=[group.mean(axis=0) for group in groups],
        precisions_init=[np.linalg.inv(spread) for spread in spreads],
    ).fit(points)
    ours = fit(points, labels)
    # scikit-learn takes one more step after the last likelihood that it compares.
    assert np.abs(ours.posteriors - theirs.predict_proba(points)).mean() < 0.01
    assert ours.likelihood == pytest.approx(theirs.score(points) * len(points), rel=1e-3)
    assert ours.bic == pytest.approx(theirs.bic(points), rel=2e-3)


def test_the_least_bic_wins() -> None:
    points = make_points(5)
    bics = [fit(points, make_labels(points, count, 1)).bic for count in range(1, 9)]
    assert find_best_fit(points, 8, 1).bic == pytest.approx(min(bics))


@pytest.mark.parametrize("distinct", [1, 2, 5])
def test_points_that_coincide_do_no_harm(distinct: int) -> None:
    points = np.repeat(np.arange(distinct, dtype=float)[:, None] * np.ones(4), 6, axis=0)
    found = find_best_fit(points, 20, 0)
    assert np.isfinite(found.bic)
    assert found.posteriors.shape[1] <= distinct
    assert found.posteriors.sum(axis=1) == pytest.approx(np.ones(len(points)))
