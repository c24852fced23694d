"""Gaussian mixtures with full covariances, fitted by expectation maximisation.

Not scikit-learn's: looking for the number of clusters fits some five hundred small mixtures for a novel, and there most
of the time goes into checking arguments (measured in `bench/tree.py`). Its settings are kept: a start from k-means,
1e-6 on the diagonal of the covariances, an end once the mean log likelihood gains less than 1e-3, 100 steps at most.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
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


def find_best_fit(points: NDArray[np.floating[Any]], most: int, seed: int) -> Fit:
    """Of the mixtures with 1 .. `most` components the one with the least BIC, the smaller where two are equal."""
    rows = np.asarray(points, np.float64)
    rows = rows - rows.mean(axis=0)
    # The draws do not hang on how many follow, so that every mixture starts from the first of the same centres.
    centres = rows[draw_centres(rows, most, np.random.RandomState(seed))]
    fits = (fit(rows, group_points(rows, centres[: count + 1])) for count in range(len(centres)))
    return min(fits, key=lambda found: found.bic)


def fit(points: Array, labels: Labels) -> Fit:
    """The mixture that grows from these groups of points (n, d), one component a group. Points should be centred."""
    from tomewise.memory.tree.mixture_kernels import run_em

    count, dimensions = points.shape
    first, second = np.triu_indices(dimensions)
    features = np.hstack((np.ones((count, 1)), points, points[:, first] * points[:, second]))
    posteriors = (labels[:, None] == np.unique(labels)).astype(np.float64)
    likelihood = count * run_em(features, posteriors, dimensions, _RIDGE, _GAIN, _STEPS)
    free = posteriors.shape[1] * features.shape[1] - 1
    return Fit(posteriors, likelihood, free * float(np.log(count)) - 2 * likelihood)


def group_points(points: Array, centres: Array) -> Labels:
    """k-means: a group for each point (n, d), starting from these centres (groups, d). A group may be left empty."""
    from tomewise.memory.tree.mixture_kernels import run_kmeans

    labels: Labels = run_kmeans(points, centres.copy(), _ROUNDS)
    return labels


def draw_centres(points: Array, count: int, random: np.random.RandomState) -> list[int]:
    """Positions of the first centres, by k-means++ (Arthur, Vassilvitskii 2007); fewer where fewer points differ.

    Each is drawn with the square of its distance to the nearest drawn before.
    """
    places = [int(random.randint(len(points)))]
    far = ((points - points[places[0]]) ** 2).sum(axis=1)
    while len(places) < count and far.any():
        bounds = np.cumsum(far)
        place = np.searchsorted(bounds, random.random_sample() * bounds[-1], side="right")
        places.append(min(int(place), len(points) - 1))
        far = np.minimum(far, ((points - points[places[-1]]) ** 2).sum(axis=1))
    return places
