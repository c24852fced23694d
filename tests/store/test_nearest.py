"""The algorithms by which near rows are found: scaled cosines, close rows by blocks, and bounds from int8 rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from tomewise.store import int8_rows, nearest
from tomewise.store.int8_rows import (
    bound_cosines,
    find_candidates,
    find_close_candidates,
    multiply_exactly,
    pack_rows,
)
from tomewise.store.nearest import Nearest, Pairs, find_close_pairs, find_close_rows, find_top

Rows = NDArray[np.float32]

# ---------------------------------------------------------------- scaled cosines


def scale_slowly(scores: NDArray[np.float32]) -> NDArray[np.float64]:
    """Scores scaled to 0..1. Equal scores all become 1 (as in HippoRAG 2), but scores that are all 0 stay 0."""
    x = np.asarray(scores, dtype=np.float64)
    if not len(x) or np.ptp(x) == 0:
        return np.where(x == 0, 0.0, 1.0)
    return (x - x.min()) / np.ptp(x)


@given(st.lists(st.sampled_from([0.0, -0.5, 0.25, 0.5, 1.0]), max_size=12), st.integers(0, 5))
def test_the_best_are_scaled_by_the_lowest_of_all(values: list[float], limit: int) -> None:
    scores = np.array(values, np.float32)
    best = find_top(scores, limit)
    found = Nearest(best, scores[best], min(values, default=0.0))
    np.testing.assert_allclose(found.scale(), scale_slowly(scores)[best])


# ---------------------------------------------------------------- close rows


def make_unit_rows(count: int, width: int = 5) -> Rows:
    rows = np.random.default_rng(3).normal(size=(count, width)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def compare_slowly(a: Rows, b: Rows) -> dict[tuple[int, int], float]:
    cosines = np.round(a.astype(np.float64) @ b.astype(np.float64).T, 4)
    return {(i, j): cosines[i, j] for i, j in np.argwhere(cosines >= 0.8).tolist()}


def as_dict(pairs: Pairs) -> dict[tuple[int, int], float]:
    return dict(zip(zip(pairs.new.tolist(), pairs.neighbours.tolist(), strict=True), pairs.cosines, strict=True))


@pytest.mark.parametrize("block", [3, 1000])
def test_close_rows_are_those_of_a_plain_comparison(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(nearest, "NEW_ROWS", block)
    monkeypatch.setattr(nearest, "KNOWN_ROWS", 2 * block)
    rows = make_unit_rows(40)
    assert as_dict(find_close_rows(rows[:9], rows, 0.8)) == compare_slowly(rows[:9], rows)
    expected = {pair: cosine for pair, cosine in compare_slowly(rows, rows).items() if pair[0] < pair[1]}
    assert len(expected) > 10
    assert as_dict(find_close_pairs(rows, 0.8)) == expected
    empty = rows[:0]
    assert as_dict(find_close_pairs(empty, 0.8)) == as_dict(find_close_rows(rows[:2], empty, 0.8)) == {}


# ---------------------------------------------------------------- bounds from int8 rows

# Few values make ties; spikes and very small numbers make rounding coarse.
NUMBERS = st.one_of(
    st.sampled_from([0.0, 1.0, -1.0, 0.5]), st.floats(-1, 1, width=32), st.floats(-(2.0**-100), 2.0**-100, width=32)
)


def draw_rows(width: int, most: int) -> st.SearchStrategy[Rows]:
    return st.integers(1, most).flatmap(lambda count: arrays(np.float32, (count, width), elements=NUMBERS))


@st.composite
def rows_and_queries(draw: st.DrawFn) -> tuple[Rows, Rows]:
    width = draw(st.integers(1, 9))
    rows = draw(draw_rows(width, 30))
    if draw(st.booleans()):
        rows = np.repeat(rows, 2, axis=0)  # ties
    queries = draw(draw_rows(width, 3))
    return rows, queries if draw(st.booleans()) else rows[: len(queries)]


@settings(max_examples=60)
@given(rows_and_queries(), st.integers(0, 40), st.sampled_from([1, 8]), st.floats(-1, 1))
def test_bounds_hold_and_what_they_rule_out_is_never_among_the_best_or_close(
    given_rows: tuple[Rows, Rows], limit: int, groups: int, least: float
) -> None:
    rows, queries = given_rows
    products = rows.astype(np.float64) @ queries.astype(np.float64).T
    greatest, packed = products.max(axis=1), pack_rows(rows)
    lower, upper = bound_cosines(packed, queries)
    slack = 1e-6 * np.abs(greatest) + 1e-37
    assert (lower <= greatest + slack).all()
    assert (upper >= greatest - slack).all()

    exact = multiply_exactly(rows, queries)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(int8_rows, "GROUPS", groups)
        candidates = set(find_candidates((lower, upper), limit).tolist())
    assert set(find_top(exact, limit).tolist()) <= candidates, "the best and their ties"
    assert set(np.flatnonzero(exact == exact.min()).tolist()) <= candidates, "the lowest"

    new, known = find_close_candidates(packed, queries, least)
    close = {(query, row) for row, query in np.argwhere(products >= least + 1e-9).tolist()}
    assert close <= set(zip(new.tolist(), known.tolist(), strict=True))


def test_more_close_pairs_than_there_was_room_for_are_all_found() -> None:
    rows = np.ones((100, 3), np.float32)
    new, known = find_close_candidates(pack_rows(rows), rows, 2.9)
    assert len(set(zip(new.tolist(), known.tolist(), strict=True))) == len(new) == 10_000


def test_few_of_many_random_rows_are_candidates() -> None:
    rows = make_unit_rows(5000, 384)
    assert len(find_candidates(bound_cosines(pack_rows(rows), rows[0]), 5)) < 100


def test_bounds_that_are_no_numbers_rule_out_nothing() -> None:
    lower, upper = np.zeros(50, np.float32), np.ones(50, np.float32)
    lower[3] = upper[3] = np.nan
    assert find_candidates((lower, upper), 2).tolist() == list(range(50))


@pytest.mark.parametrize("width", [384, 1536, 3072])
def test_sums_do_not_overflow(width: int) -> None:
    rows = np.vstack((np.ones((1, width)), -np.ones((1, width)))).astype(np.float32)
    for bounds in bound_cosines(pack_rows(rows), rows[0]):
        assert bounds.tolist() == pytest.approx([width, -width], rel=1e-3)
