"""Bounds from int8 rows hold for all vectors, and what they rule out is never among the best."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from tomewise.store import int8_rows
from tomewise.store.int8_rows import (
    are_worth_packing,
    bound_cosines,
    find_candidates,
    find_close_candidates,
    multiply_exactly,
    pack_rows,
)
from tomewise.store.nearest import find_top

# Few values make ties; spikes and very small numbers make rounding coarse.
NUMBERS = st.one_of(
    st.sampled_from([0.0, 1.0, -1.0, 0.5]), st.floats(-1, 1, width=32), st.floats(-(2.0**-100), 2.0**-100, width=32)
)


def draw_rows(width: int, most: int) -> st.SearchStrategy[NDArray[np.float32]]:
    return st.integers(1, most).flatmap(lambda count: arrays(np.float32, (count, width), elements=NUMBERS))


@st.composite
def rows_and_queries(draw: st.DrawFn) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    width = draw(st.integers(1, 9))
    rows = draw(draw_rows(width, 30))
    if draw(st.booleans()):
        rows = np.repeat(rows, 2, axis=0)  # ties
    queries = draw(draw_rows(width, 3))
    return rows, queries if draw(st.booleans()) else rows[: len(queries)]


def multiply(rows: NDArray[np.float32], queries: NDArray[np.float32]) -> NDArray[np.float64]:
    return rows.astype(np.float64) @ queries.astype(np.float64).T


@settings(deadline=None)  # the first example compiles
@given(rows_and_queries())
def test_the_exact_product_lies_within_the_bounds(given_rows: tuple[NDArray[np.float32], NDArray[np.float32]]) -> None:
    rows, queries = given_rows
    exact = multiply(rows, queries).max(axis=1)
    lower, upper = bound_cosines(pack_rows(rows), queries)
    slack = 1e-6 * np.abs(exact) + 1e-37
    assert (lower <= exact + slack).all()
    assert (upper >= exact - slack).all()


@settings(deadline=None)  # the first example compiles
@given(rows_and_queries(), st.integers(0, 40), st.sampled_from([1, 8]))
def test_candidates_hold_the_best_their_ties_and_the_lowest(
    given_rows: tuple[NDArray[np.float32], NDArray[np.float32]], limit: int, groups: int
) -> None:
    rows, queries = given_rows
    exact = multiply_exactly(rows, queries)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(int8_rows, "_GROUPS", groups)
        candidates = set(find_candidates(bound_cosines(pack_rows(rows), queries), limit).tolist())
    assert set(find_top(exact, limit).tolist()) <= candidates
    assert set(np.flatnonzero(exact == exact.min()).tolist()) <= candidates


@settings(deadline=None)  # the first example compiles
@given(rows_and_queries(), st.floats(-1, 1))
def test_close_candidates_hold_all_close_pairs(
    given_rows: tuple[NDArray[np.float32], NDArray[np.float32]], least: float
) -> None:
    rows, queries = given_rows
    found = set(
        zip(*(places.tolist() for places in find_close_candidates(pack_rows(rows), queries, least)), strict=True)
    )
    assert {(new, known) for known, new in np.argwhere(multiply(rows, queries) >= least + 1e-9).tolist()} <= found


def test_more_close_pairs_than_there_was_room_for_are_all_found() -> None:
    rows = np.ones((100, 3), np.float32)
    new, known = find_close_candidates(pack_rows(rows), rows, 2.9)
    assert len(set(zip(new.tolist(), known.tolist(), strict=True))) == len(new) == 10_000


def test_few_of_many_random_rows_are_candidates() -> None:
    random = np.random.default_rng(4)
    rows = random.standard_normal((5000, 384)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    assert len(find_candidates(bound_cosines(pack_rows(rows), rows[0]), 5)) < 100


@pytest.mark.parametrize("width", [384, 1536, 3072])
def test_sums_do_not_overflow(width: int) -> None:
    rows = np.vstack((np.ones((1, width)), -np.ones((1, width)))).astype(np.float32)
    lower, upper = bound_cosines(pack_rows(rows), rows[0])
    assert lower.tolist() == pytest.approx([width, -width], rel=1e-3)
    assert upper.tolist() == pytest.approx([width, -width], rel=1e-3)


def test_small_spaces_are_not_packed() -> None:
    assert not are_worth_packing(10_000)
