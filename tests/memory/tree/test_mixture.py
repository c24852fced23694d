"""Gaussian mixtures: as scikit-learn from the same start, and robust where points coincide."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.mixture import GaussianMixture

from tomewise.memory.tree.mixture import draw_centres, find_best_fit, fit, group_points


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


def test_the_number_of_components_is_that_of_the_groups() -> None:
    dice = np.random.default_rng(3)
    rows = np.concatenate([centre + 0.1 * dice.normal(size=(30, 2)) for centre in ([0, 0], [5, 0], [0, 5], [5, 5])])
    found = find_best_fit(rows, 12, 0)
    assert found.posteriors.shape == (120, 4)
    assert len({tuple(row) for row in found.posteriors.round().reshape(4, 30, 4).mean(axis=1)}) == 4


def test_the_least_bic_wins() -> None:
    points = make_points(5)
    bics = [fit(points, make_labels(points, count, 1)).bic for count in range(1, 9)]
    assert find_best_fit(points, 8, 1).bic == pytest.approx(min(bics))


@given(st.integers(0, 99), st.integers(1, 20), st.integers(1, 20))
def test_centres_drawn_for_few_are_the_first_of_those_for_many(seed: int, few: int, many: int) -> None:
    points = make_points(seed, count=25)
    first, more = (draw_centres(points, count, np.random.RandomState(seed)) for count in sorted((few, many)))
    assert more[: len(first)] == first
    assert len(set(more)) == max(few, many)


def test_groups_are_where_no_point_is_nearer_to_another_mean() -> None:
    points = make_points(7)
    labels = make_labels(points, 5, 0)
    means = np.array([points[labels == label].mean(axis=0) for label in np.unique(labels)])
    distances = ((points[:, None] - means) ** 2).sum(axis=2)
    assert np.array_equal(np.unique(labels)[distances.argmin(axis=1)], labels)


@pytest.mark.parametrize("distinct", [1, 2, 5])
def test_points_that_coincide_do_no_harm(distinct: int) -> None:
    points = np.repeat(np.arange(distinct, dtype=float)[:, None] * np.ones(4), 6, axis=0)
    found = find_best_fit(points, 20, 0)
    assert np.isfinite(found.bic)
    assert found.posteriors.shape[1] <= distinct
    assert found.posteriors.sum(axis=1) == pytest.approx(np.ones(len(points)))
