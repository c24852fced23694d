from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tomewise.evaluate.results import compute_p_value, correct_p_values, estimate_interval, resample_means


def resample_slowly(scores, resamples, seed):
    """One resample after the other, with the same draws."""
    drawn = np.random.default_rng(seed).integers(len(scores), size=(resamples, len(scores)))
    return np.array([sum(scores[place] for place in places) / len(scores) for places in drawn])


def test_resamples_are_those_of_a_slow_loop():
    generator = np.random.default_rng(5)
    columns = [generator.random(30), generator.random(30), generator.random(7), np.empty(0)]
    found = resample_means(columns, resamples=200, seed=3)
    for column, means in zip(columns[:3], found[:3], strict=True):
        assert np.allclose(means, resample_slowly(column, 200, 3), atol=1e-12)
    assert len(found[3]) == 0


def test_draws_in_parts_have_the_right_spread():
    scores = np.arange(5000.0)  # too many draws to be in memory at a time
    means = resample_means([scores], resamples=1001)[0]
    assert len(means) == 1001
    assert means.mean() == pytest.approx(scores.mean(), rel=0.002)
    assert means.std() == pytest.approx(scores.std() / np.sqrt(5000), rel=0.1)


def test_a_clear_difference_is_significant_and_none_is_not():
    clear, none = np.array([1.0] * 18 + [0.0] * 2), np.array([1.0, -1.0] * 10)
    means = resample_means([clear, none])
    assert compute_p_value(clear, means[0]) < 0.001
    assert compute_p_value(none, means[1]) == 1.0
    assert compute_p_value(np.zeros(20), resample_means([np.zeros(20)])[0]) == 1.0


def test_p_agrees_with_the_exact_sign_flip_test_on_a_middling_case():
    scores = np.array([1.0] * 9 + [-1.0] * 3 + [0.0] * 8)
    p = compute_p_value(scores, resample_means([scores])[0])
    assert 0.04 < p < 0.15  # a sign test over 12 questions gives 0.146, the normal approximation 0.070


@settings(max_examples=30)
@given(st.lists(st.sampled_from([0.0, 0.25, 1.0]), min_size=1, max_size=12), st.integers(0, 5))
def test_intervals_stay_among_the_scores_and_repeat(values, seed):
    scores = np.array(values)
    means = resample_means([scores], resamples=100, seed=seed)[0]
    low, high = estimate_interval(means)
    assert min(values) - 1e-12 <= low <= high <= max(values) + 1e-12
    assert np.array_equal(means, resample_means([scores], resamples=100, seed=seed)[0])
    assert estimate_interval(np.arange(1001.0)) == pytest.approx((25.0, 975.0)), "the middle"


def test_holm_by_hand():
    assert correct_p_values([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert correct_p_values([0.6, 0.7]) == [1.0, 1.0]
    assert correct_p_values([]) == []
