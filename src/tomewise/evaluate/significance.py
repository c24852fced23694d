"""Could a difference between systems be chance? The bootstrap over questions.

Source: Efron and Tibshirani 1993, An Introduction to the Bootstrap: percentile intervals (section 13.3), and for
paired differences the test on resamples shifted to the null hypothesis (section 16.4).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Scores: TypeAlias = "NDArray[np.float64]"

RESAMPLES = 10_000
_TAILS = ((1 - 0.95) / 2, (1 + 0.95) / 2)  # outside of an interval
_AT_ONCE = 2_000_000  # drawn positions in memory at a time
_NEAR = 1e-12  # sums of equal numbers in another order differ by less


def resample_means(columns: Sequence[Scores], *, resamples: int = RESAMPLES, seed: int = 0) -> list[Scores]:
    """For each column of scores the means of its resamples, shape (resamples,); for an empty column shape (0,).

    Columns of equal length are drawn together: their i-th resamples hold the same questions.
    """
    means: list[Scores] = [np.empty(0)] * len(columns)
    for length in sorted({len(column) for column in columns} - {0}):
        numbers = [number for number, column in enumerate(columns) if len(column) == length]
        drawn = _draw_means(np.column_stack([columns[number] for number in numbers]), resamples, seed)
        for position, number in enumerate(numbers):
            means[number] = drawn[:, position]
    return means


def estimate_interval(means: Scores) -> tuple[float, float]:
    """The percentile interval that holds 95 % of the resampled means."""
    low, high = np.quantile(means, _TAILS)
    return float(low), float(high)


def compute_p_value(differences: Scores, means: Scores) -> float:
    """The two-sided p: how often the mean of a resample differs from the mean by as much as that differs from 0.

    `means` are those of resamples of `differences`. Numerator and denominator each get 1, so that p is never 0.
    """
    observed = float(differences.mean())
    extreme = np.abs(means - observed) >= abs(observed) - _NEAR
    return float((1 + extreme.sum()) / (1 + len(means)))


def correct_p_values(p_values: Sequence[float]) -> list[float]:
    """The p-values corrected for multiple tests, in their order: from the smallest on, times the number that remain.

    Rejecting those below a level keeps the chance of any false rejection below it, also where the tests are dependent.
    Source: Holm 1979, A Simple Sequentially Rejective Multiple Test Procedure.
    """
    raw = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(raw, kind="stable")
    stepped = np.maximum.accumulate(raw[order] * np.arange(len(raw), 0, -1))
    corrected = np.empty_like(raw)
    corrected[order] = np.minimum(stepped, 1.0)
    return [float(p) for p in corrected]


def _draw_means(scores: Scores, resamples: int, seed: int) -> Scores:
    count = len(scores)
    generator = np.random.default_rng(seed)
    most = max(1, _AT_ONCE // count)  # resamples at a time
    parts = []
    for start in range(0, resamples, most):
        size = min(most, resamples - start)
        drawn = generator.integers(count, size=(size, count)) + np.arange(size)[:, None] * count
        times = np.bincount(drawn.ravel(), minlength=size * count).reshape(size, count)
        parts.append(times.astype(np.float64) @ scores / count)
    return np.concatenate(parts)
