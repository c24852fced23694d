"""Seeds and scores, compared with values computed by hand from the papers' equations."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tomewise.recall.cognirank import (
    merge_rankings,
    scale_scores,
    score_passages,
    weigh_cogito_seeds,
    weigh_hippo_seeds,
)


@pytest.mark.parametrize(
    ("scores", "delta", "scaled"),
    [([0.3, 0.3], None, [0, 0]), ([1.0, 3.0, 2.0], None, [0, 1, 0.5]), ([1.0, 3.0], 2.0, [0, 0.5]), ([], None, [])],
)
def test_scores_are_scaled_to_1_and_equal_ones_to_0(scores, delta, scaled):
    found = scale_scores(scores) if delta is None else scale_scores(scores, delta)
    np.testing.assert_allclose(found, scaled)


@pytest.mark.parametrize(
    ("blend", "scores"), [(None, [0.95, 0.475 + 0.05, 0.025]), (0.0, [0, 1, 0.5]), (1.0, [1, 0.5, 0])]
)
def test_cognirank_blends_the_two_signals(blend, scores):
    settings = {} if blend is None else {"blend": blend}
    np.testing.assert_allclose(score_passages([0.4, 0.2, 0.0], [0.1, 0.9, 0.5], **settings), scores)


def list_seeds(found):
    entities, weights = found
    return dict(zip(entities.tolist(), weights.tolist(), strict=True))


def test_equal_seeds_are_in_the_order_of_their_numbers_and_the_lower_one_is_kept():
    assert list_seeds(weigh_cogito_seeds([[2, 1]], [0.5], [[1, 1]], alpha=0.0)) == {1: 0.5, 2: 0.5}
    ends, coverage = [[7, 3], [3, 9], [6, 5]], [[1, 2], [2, 4], [0, 1]]
    assert [*list_seeds(weigh_hippo_seeds(ends, [1.0, 0.5, 0.0], coverage))] == [7, 3, 9, 5, 6]
    assert [*list_seeds(weigh_hippo_seeds(ends, [1.0, 0.5, 0.0], coverage, keep=4))] == [7, 3, 9, 5]


facts = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(0, 20)), max_size=8)


@given(facts)
def test_seeds_agree_with_plain_loops(drawn):
    ends = [(a, b) for a, b, _ in drawn]
    scores = [c / 16 for *_, c in drawn]
    coverage = [(a % 4, b % 4) for a, b in ends]
    mean: dict[int, list[Fraction]] = {}
    parts: dict[int, list[Fraction]] = {}
    for pair, score in zip(ends, scores, strict=True):
        for entity in set(pair):
            mean.setdefault(entity, []).append(Fraction(score))
        for entity in pair:
            parts.setdefault(entity, []).append(Fraction(score) / max(1, entity % 4))
    cogito = list_seeds(weigh_cogito_seeds(ends, scores, coverage, alpha=3, beta=0.5))
    assert cogito == pytest.approx(
        {v: float(sum(x)) / len(x) * (1 + 3 * (1 - math.exp(-0.5 * len(x)))) / max(1, v % 4) for v, x in mean.items()}
    )
    hippo = list_seeds(weigh_hippo_seeds(ends, scores, coverage, keep=99))
    assert hippo == pytest.approx({v: float(sum(x) / len(x)) for v, x in parts.items()})


@pytest.mark.parametrize(
    ("rankings", "limit", "expected"),
    [
        (["a9 b8 c7 d6 e5 f4"], 5, "a9 b8 c7 d6 e5"),  # one question: its best
        (["a9 b8 c7", "x3 y2 z1"], 5, "a9 b8 c7 x3 y2"),  # 2 + 2 + 1
        (["a9 b8 c7", "a8 y2 z1"], 5, "a9 b8 c7 y2 z1"),  # a is taken, so the second gives y and z; c fills up
        (["a9 b8", "a9 b8 c1"], 5, "a9 b8 c1"),  # fewer than asked for
        (["a9 b8", "x3", "y1"], 2, "a9 x3"),  # more sub-questions than places
        (["a1", "b9"], 1, "a1"),
        (["a5 b5", "c5"], 3, "a5 b5 c5"),  # ties by id
        (["a2 b1", "a7"], 2, "a7 b1"),  # an id counts with its best score
        (["", "a5"], 3, "a5"),
        ([], 3, ""),
        (["a9"], 0, ""),
    ],
)
def test_merging_takes_two_of_each_and_the_best_of_the_rest(rankings, limit, expected):
    lists = [[(item[0], int(item[1:])) for item in text.split()] for text in rankings]
    assert " ".join(f"{node}{score}" for node, score in merge_rankings(lists, limit)) == expected


@given(st.lists(st.dictionaries(st.integers(0, 12), st.integers(0, 9)), max_size=4), st.integers(0, 9))
def test_merging_serves_every_question(drawn, limit):
    rankings = [sorted(scores.items(), key=lambda entry: -entry[1]) for scores in drawn]
    merged = merge_rankings(rankings, limit)
    nodes = [node for node, _ in merged]
    assert len(set(nodes)) == len(nodes) == min(limit, len(set().union(*drawn)))
    assert [score for _, score in merged] == sorted((score for _, score in merged), reverse=True)
    each = max(1, (limit - 1) // max(1, len(rankings)))
    for scores in drawn:
        if limit >= each * len(rankings):
            assert len(set(nodes) & set(scores)) >= min(each, len(scores))
