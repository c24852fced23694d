"""The compiled kernels of mixtures. Importing this module imports Numba: only `mixture` does so, lazily.

They release Python's lock, so that model calls go on during clustering. They add up in a fixed order, so that the
results are equal on every machine. Loops are written out, also because array expressions take long to compile.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def run_kmeans(points: Any, centres: Any, rounds: Any) -> Any:
    """Run k-means until no point (n, d) changes its group; returns groups (n,). Overwrites `centres` (groups, d)."""
    count, dimensions = points.shape
    labels = np.zeros(count, np.int64)
    for turn in range(rounds):
        changed = turn == 0
        sums = np.zeros(centres.shape)
        sizes = np.zeros(len(centres))
        for n in range(count):
            nearest, least = 0, np.inf
            for k in range(len(centres)):
                far = 0.0
                for d in range(dimensions):
                    far += (points[n, d] - centres[k, d]) ** 2
                if far < least:
                    nearest, least = k, far
            changed |= labels[n] != nearest
            labels[n] = nearest
            sizes[nearest] += 1
            for d in range(dimensions):
                sums[nearest, d] += points[n, d]
        if not changed:
            break
        for k in range(len(centres)):
            if sizes[k]:  # a group that lost all its points keeps its centre
                for d in range(dimensions):
                    centres[k, d] = sums[k, d] / sizes[k]
    return labels


@njit(cache=True, nogil=True)
def run_em(features: Any, posteriors: Any, dimensions: Any, ridge: Any, gain: Any, steps: Any) -> Any:
    """Run expectation maximisation from `posteriors` (n, components), overwrite them, return the mean log likelihood.

    The log density of a Gaussian is linear in the `features` of a point: 1, its coordinates, and the products of two
    coordinates. So each step sums the features by component, computes factors from the sums, and multiplies both.
    """
    count, width = features.shape
    components = posteriors.shape[1]
    factors = np.empty((width, components))
    likelihood = before = -np.inf
    for _ in range(steps):
        sums = np.zeros((components, width))
        for n in range(count):
            for k in range(components):
                for f in range(width):
                    sums[k, f] += posteriors[n, k] * features[n, f]
        for k in range(components):
            _put_density(sums[k], dimensions, count, ridge, factors[:, k])
        likelihood = 0.0
        for n in range(count):
            joint = posteriors[n]
            for k in range(components):
                joint[k] = 0
            for f in range(width):
                for k in range(components):
                    joint[k] += features[n, f] * factors[f, k]
            likelihood += _scale_to_shares(joint) / count
        if abs(likelihood - before) < gain:
            break
        before = likelihood
    return likelihood


@njit(cache=True, nogil=True)
def _put_density(sums: Any, dimensions: Any, count: Any, ridge: Any, factors: Any) -> Any:
    """Put into `factors` the factors of the features in the log density of a component.

    `sums` are the sums of the features, where each point is weighted by its share in the component.
    """
    size = sums[0] + 1e-15  # a component may have lost all its points
    spread = np.empty((dimensions, dimensions))
    at = dimensions + 1
    for i in range(dimensions):
        for j in range(i, dimensions):
            spread[i, j] = spread[j, i] = (sums[at] - sums[i + 1] * sums[j + 1] / size) / size
            at += 1
        spread[i, i] += ridge
    volume = _invert(spread)
    factors[0] = np.log(size / count) - (volume + dimensions * np.log(2 * np.pi)) / 2
    at = dimensions + 1
    for i in range(dimensions):
        coefficient = 0.0
        for j in range(dimensions):
            coefficient += spread[i, j] * sums[j + 1] / size
        factors[i + 1] = coefficient
        factors[0] -= coefficient * sums[i + 1] / size / 2
        for j in range(i, dimensions):
            factors[at] = -spread[i, j] / 2 if i == j else -spread[i, j]
            at += 1


@njit(cache=True, nogil=True)
def _invert(matrix: Any) -> Any:
    """Invert a positive definite matrix in place (Gauss-Jordan); returns the logarithm of its determinant."""
    size = len(matrix)
    logarithm = 0.0
    for k in range(size):
        pivot = matrix[k, k]
        logarithm += np.log(pivot)
        matrix[k, k] = 1
        for j in range(size):
            matrix[k, j] /= pivot
        for i in range(size):
            if i != k:
                multiple = matrix[i, k]
                matrix[i, k] = 0
                for j in range(size):
                    matrix[i, j] -= multiple * matrix[k, j]
    return logarithm


@njit(cache=True, nogil=True)
def _scale_to_shares(joint: Any) -> Any:
    """Turn log densities into shares that sum to 1; returns the logarithm of the sum of the densities."""
    peak = -np.inf
    for k in range(len(joint)):
        peak = max(peak, joint[k])
    total = 0.0
    for k in range(len(joint)):
        joint[k] = np.exp(joint[k] - peak)
        total += joint[k]
    for k in range(len(joint)):
        joint[k] /= total
    return peak + np.log(total)
