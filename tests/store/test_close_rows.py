"""Close rows are found by blocks as by a plain comparison."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from tomewise.store import close_rows
from tomewise.store.close_rows import Pairs, find_close_pairs, find_close_rows


def make_unit_rows(count: int) -> NDArray[np.float32]:
    rows = np.random.default_rng(3).normal(size=(count, 5)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def compare_slowly(a: NDArray[np.float32], b: NDArray[np.float32]) -> dict[tuple[int, int], float]:
    cosines = np.round(a.astype(np.float64) @ b.astype(np.float64).T, 4)
    return {(i, j): cosines[i, j] for i, j in np.argwhere(cosines >= 0.8).tolist()}


@pytest.mark.parametrize("block", [3, 1000])
def test_close_names_are_those_of_a_plain_comparison(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(close_rows, "_NEW", block)
    monkeypatch.setattr(close_rows, "_OLD", 2 * block)
    rows = make_unit_rows(40)
    assert as_dict(find_close_rows(rows[:9], rows, 0.8)) == compare_slowly(rows[:9], rows)
    expected = {pair: cosine for pair, cosine in compare_slowly(rows, rows).items() if pair[0] < pair[1]}
    assert len(expected) > 10
    assert as_dict(find_close_pairs(rows, 0.8)) == expected


def test_empty_matrices_have_no_close_rows() -> None:
    empty = np.empty((0, 5), np.float32)
    assert len(find_close_pairs(empty, 0.8).new) == 0
    assert len(find_close_rows(make_unit_rows(2), empty, 0.8).new) == 0


def as_dict(pairs: Pairs) -> dict[tuple[int, int], float]:
    return dict(zip(zip(pairs.new.tolist(), pairs.neighbours.tolist(), strict=True), pairs.cosines, strict=True))
