"""Fit Gaussian mixtures with full covariances by expectation maximisation.

This replaces scikit-learn: the search for the number of clusters fits about five hundred small mixtures for a novel,
where scikit-learn spends most of the time on checking arguments (measured in `bench/tree.py`). The settings are the
same: a start from k-means, 1e-6 added to the diagonal of the covariances, an end once the mean log likelihood
gains less than 1e-3, and 100 steps at most.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

Array: TypeAlias = "NDArray[np.float64]"
Labels: TypeAlias = "NDArray[np.intp]"
_RIDGE = 1e-6
_GAIN = 1e-3
_STEPS = 100
_ROUNDS = 300  # of k-means


@dataclass(frozen=True, slots=True)
class Fit:
    """A mixture fitted to points (n, d): posteriors (n, components), the log likelihood of all points, the BIC."""

    posteriors: Array
    likelihood: float
    bic: float


def find_best_fit(
    points: NDArray[np.floating[Any]], most: int, seed: int, watch: Callable[[int], None] = lambda _: None
) -> Fit:
    """Fit mixtures with 1 .. `most` components and return that with the least BIC; ties go to fewer components.

    `watch` gets the number of components before each fit.
    """
    rows = np.asarray(points, np.float64)
    rows = rows - rows.mean(axis=0)
    # Each draw depends only on the draws before it, so every mixture starts from the first of the same centres.
    centres = rows[draw_centres(rows, most, np.random.RandomState(seed))]
    fits = []
    for count in range(1, len(centres) + 1):
        watch(count)
        fits.append(fit(rows, group_points(rows, centres[:count])))
    return min(fits, key=lambda found: found.bic)


def fit(points: Array, labels: Labels) -> Fit:
    """Fit a mixture that starts from groups of points (n, d), one component per group. Centre the points first."""
    from tomewise.memory.tree.mixture_kernels import run_em

    count, dimensions = points.shape
    first, second = np.triu_indices(dimensions)
    features = np.hstack((np.ones((count, 1)), points, points[:, first] * points[:, second]))
    posteriors = (labels[:, None] == np.unique(labels)).astype(np.float64)
    likelihood = count * run_em(features, posteriors, dimensions, _RIDGE, _GAIN, _STEPS)
    free_parameters = posteriors.shape[1] * features.shape[1] - 1
    return Fit(posteriors, likelihood, free_parameters * float(np.log(count)) - 2 * likelihood)


def group_points(points: Array, centres: Array) -> Labels:
    """Group points (n, d) by k-means, starting from these centres (groups, d). A group may stay empty."""
    from tomewise.memory.tree.mixture_kernels import run_kmeans

    labels: Labels = run_kmeans(points, centres.copy(), _ROUNDS)
    return labels


def draw_centres(points: Array, count: int, random: np.random.RandomState) -> list[int]:
    """Draw the positions of `count` first centres by k-means++ (Arthur, Vassilvitskii 2007).

    The probability of a point is proportional to its squared distance to the nearest centre so far. There are fewer
    centres where fewer points are distinct.
    """
    places = [int(random.randint(len(points)))]
    squares = ((points - points[places[0]]) ** 2).sum(axis=1)
    while len(places) < count and squares.any():
        bounds = np.cumsum(squares)
        place = np.searchsorted(bounds, random.random_sample() * bounds[-1], side="right")
        places.append(min(int(place), len(points) - 1))
        squares = np.minimum(squares, ((points - points[places[-1]]) ** 2).sum(axis=1))
    return places
