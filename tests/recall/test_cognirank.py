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


def test_norm_makes_equal_scores_zero() -> None:
    np.testing.assert_allclose(scale_scores([0.3, 0.3]), [0, 0])
    np.testing.assert_allclose(scale_scores([1.0, 3.0, 2.0]), [0, 1, 0.5])
    np.testing.assert_allclose(scale_scores([1.0, 3.0], delta=2.0), [0, 0.5])
    assert scale_scores([]).size == 0


def test_cognirank_blends_the_two_signals() -> None:
    diffusion, cosines = [0.4, 0.2, 0.0], [0.1, 0.9, 0.5]
    np.testing.assert_allclose(score_passages(diffusion, cosines), [0.95, 0.475 + 0.05, 0.025])
    np.testing.assert_allclose(score_passages(diffusion, cosines, blend=0.0), [0, 1, 0.5])
    np.testing.assert_allclose(score_passages(diffusion, cosines, blend=1.0), [1, 0.5, 0])


def test_cogito_seeds() -> None:
    # Facts (7, 3), (3, 9), (9, 9) of cosine 0.8, 0.4, -0.5; entity 3 stands in 2 passages, 7 in none, 9 in 4.
    entities, weights = weigh_cogito_seeds([[7, 3], [3, 9], [9, 9]], [0.8, 0.4, -0.5], [[0, 2], [2, 4], [4, 4]])
    once, twice = 1 + 2 * (1 - math.exp(-1)), 1 + 2 * (1 - math.exp(-2))
    assert entities.tolist() == [7, 3, 9]
    np.testing.assert_allclose(weights, [0.8 * once, 0.6 * twice / 2, 0.2 * twice / 4])


def test_cogito_seeds_without_reward_are_mean_cosines() -> None:
    entities, weights = weigh_cogito_seeds([[1, 2]], [0.5], [[1, 1]], alpha=0.0)
    assert entities.tolist() == [1, 2]  # a tie goes to the lower number
    np.testing.assert_allclose(weights, [0.5, 0.5])


def test_hippo_seeds() -> None:
    ends = [[7, 3], [3, 9], [5, 6]]
    entities, weights = weigh_hippo_seeds(ends, [1.0, 0.5, 0.0], [[1, 2], [2, 4], [0, 1]], keep=4)
    assert entities.tolist() == [7, 3, 9, 5]  # 5 and 6 weigh 0; the lower number is kept
    np.testing.assert_allclose(weights, [1.0, (1.0 / 2 + 0.5 / 2) / 2, 0.5 / 4, 0.0])
    assert weigh_hippo_seeds(ends, [1.0, 0.5, 0.0], [[1, 2], [2, 4], [0, 1]])[0].tolist() == [7, 3, 9, 5, 6]


def test_no_facts_give_no_seeds() -> None:
    for seeds in (weigh_cogito_seeds, weigh_hippo_seeds):
        entities, weights = seeds([], [], [])
        assert entities.size == weights.size == 0


facts = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(0, 20)), max_size=8)


@given(facts)
def test_seeds_agree_with_plain_loops(drawn: list[tuple[int, int, int]]) -> None:
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
    cogito = dict(
        zip(*(x.tolist() for x in weigh_cogito_seeds(ends, scores, coverage, alpha=3, beta=0.5)), strict=True)
    )
    hippo = dict(zip(*(x.tolist() for x in weigh_hippo_seeds(ends, scores, coverage, keep=99)), strict=True))
    assert cogito == pytest.approx(
        {v: float(sum(x)) / len(x) * (1 + 3 * (1 - math.exp(-0.5 * len(x)))) / max(1, v % 4) for v, x in mean.items()}
    )
    assert hippo == pytest.approx({v: float(sum(x) / len(x)) for v, x in parts.items()})


def parse_ranking(text: str) -> list[tuple[str, float]]:
    """ "a9 b5" as [("a", 0.9), ("b", 0.5)]."""
    return [(item[0], int(item[1:]) / 10) for item in text.split()]


@pytest.mark.parametrize(
    ("rankings", "limit", "expected"),
    [
        (["a9 b8 c7 d6 e5 f4"], 5, "abcde"),  # one question: its best
        (["a9 b8 c7", "x3 y2 z1"], 5, "abcxy"),  # 2 + 2 + 1
        (["a9 b8 c7", "a8 y2 z1"], 5, "abcyz"),  # a is taken, so the second gives y and z; c fills up
        (["a9 b8", "a9 b8 c1"], 5, "abc"),  # fewer than asked for
        (["a9 b8", "x3", "y1"], 2, "ax"),  # more sub-questions than places
        (["a1", "b9"], 1, "a"),
        (["a5 b5", "c5"], 3, "abc"),  # ties by id
        (["", "a5"], 3, "a"),
        ([], 3, ""),
        (["a9"], 0, ""),
    ],
)
def test_merge(rankings: list[str], limit: int, expected: str) -> None:
    assert "".join(node for node, _ in merge_rankings([parse_ranking(text) for text in rankings], limit)) == expected


def test_an_id_counts_with_its_best_score() -> None:
    assert merge_rankings([[("a", 0.2), ("b", 0.1)], [("a", 0.7)]], 2) == [("a", 0.7), ("b", 0.1)]


@given(st.lists(st.dictionaries(st.integers(0, 12), st.integers(0, 9)), max_size=4), st.integers(0, 9))
def test_merge_serves_every_question(drawn: list[dict[int, int]], limit: int) -> None:
    rankings = [sorted(scores.items(), key=lambda entry: -entry[1]) for scores in drawn]
    merged = merge_rankings(rankings, limit)
    nodes = [node for node, _ in merged]
    everything = set().union(*drawn) if drawn else set()
    assert len(set(nodes)) == len(nodes) == min(limit, len(everything))
    assert [score for _, score in merged] == sorted((score for _, score in merged), reverse=True)
    each = max(1, (limit - 1) // max(1, len(rankings)))
    for scores in drawn:
        if limit >= each * len(rankings):
            assert len(set(nodes) & set(scores)) >= min(each, len(scores))
