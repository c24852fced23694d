from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tomewise.evaluate.items import RankedPassage, Span
from tomewise.evaluate.metrics.span_overlap import (
    span_all_at,
    span_coverage_at,
    span_ndcg_at,
    span_recall_at,
    span_reciprocal_rank,
)


def passage(document: str, start: int, end: int) -> RankedPassage:
    return RankedPassage(id=f"{document}{start}", document=document, start=start, end=end)


def span(document: str, start: int, end: int) -> Span:
    return Span(document=document, start=start, end=end)


RANKED = [passage("m", 0, 10), passage("n", 40, 60), passage("m", 20, 30), passage("m", 30, 40)]
GOLD = [span("m", 25, 35), span("m", 5, 6), span("m", 100, 110)]


def test_recall_is_by_overlap_of_at_least_one_character_in_the_same_document() -> None:
    assert span_recall_at(RANKED, GOLD, 1) == pytest.approx(1 / 3)
    assert span_recall_at(RANKED, GOLD, 2) == pytest.approx(1 / 3)
    assert span_recall_at(RANKED, GOLD, 3) == pytest.approx(2 / 3)
    assert span_recall_at([passage("m", 0, 5)], [span("m", 5, 9)]) == 0.0  # they touch and share nothing
    assert span_recall_at([passage("m", 0, 9)], [span("m", 5, 5)]) == 0.0
    assert span_recall_at(RANKED, []) == 0.0


def test_all_and_reciprocal_rank() -> None:
    assert span_all_at(RANKED, GOLD[:2], 3) == 1.0
    assert span_all_at(RANKED, GOLD[:2], 2) == 0.0
    assert span_all_at(RANKED, []) == 0.0
    assert span_reciprocal_rank(RANKED, GOLD[:1]) == pytest.approx(1 / 3)
    assert span_reciprocal_rank(RANKED, GOLD[:1], 2) == 0.0


def test_ndcg_credits_a_span_once() -> None:
    # spans found at the places 3 and 1; the third is not found
    expected = (1 / log2(4) + 1) / (1 + 1 / log2(3) + 1 / log2(4))
    assert span_ndcg_at(RANKED, GOLD) == pytest.approx(expected)
    both = [span("m", 0, 3), span("m", 5, 8)]
    assert span_ndcg_at(RANKED, both) == 1.0  # one passage finds two


def test_coverage_counts_characters() -> None:
    # gold: 10 + 1 + 10 characters; found: 5 (25 to 30) at place 3, 1 at place 1
    assert span_coverage_at(RANKED, GOLD, 1) == pytest.approx(1 / 21)
    assert span_coverage_at(RANKED, GOLD, 3) == pytest.approx(6 / 21)
    assert span_coverage_at(RANKED, GOLD) == pytest.approx(11 / 21)
    assert span_coverage_at(RANKED, []) == 0.0


places = st.tuples(st.sampled_from("mn"), st.integers(0, 30), st.integers(0, 12))


@given(st.lists(places, max_size=6), st.lists(places, max_size=5), st.integers(1, 7))
def test_coverage_and_recall_against_sets_of_characters(
    retrieved: list[tuple[str, int, int]], wanted: list[tuple[str, int, int]], k: int
) -> None:
    ranked = [passage(document, start, start + length) for document, start, length in retrieved]
    gold = [span(document, start, start + length) for document, start, length in wanted]
    found = {(p.document, at) for p in ranked[:k] for at in range(p.start, p.end)}
    sets = [{(s.document, at) for at in range(s.start, s.end)} for s in gold]
    union = set().union(*sets)
    assert span_coverage_at(ranked, gold, k) == pytest.approx(len(union & found) / len(union) if union else 0.0)
    hits = sum(bool(characters & found) for characters in sets)
    assert span_recall_at(ranked, gold, k) == pytest.approx(hits / len(gold) if gold else 0.0)
    assert 0.0 <= span_ndcg_at(ranked, gold, k) <= 1.0
