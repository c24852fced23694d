"""Close names are found among all live names, in any order."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from tomewise.memory.graph import synonyms
from tomewise.memory.graph.synonyms import find_close_pairs, find_close_rows
from tomewise.store.sqlite.mirror import Columns


def make_unit_rows(count: int) -> NDArray[np.float32]:
    rows = np.random.default_rng(3).normal(size=(count, 5)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def compare_slowly(a: NDArray[np.float32], b: NDArray[np.float32]) -> dict[tuple[int, int], float]:
    cosines = np.round(a.astype(np.float64) @ b.astype(np.float64).T, 4)
    return {(i, j): cosines[i, j] for i, j in np.argwhere(cosines >= 0.8).tolist()}


@pytest.mark.parametrize("block", [3, 1000])
def test_close_names_are_those_of_a_plain_comparison(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(synonyms, "_NEW", block)
    monkeypatch.setattr(synonyms, "_OLD", 2 * block)
    rows = make_unit_rows(40)
    live = np.arange(40) % 4 != 0
    found = find_close_rows(rows[:9], Columns(1, np.arange(40), rows, live))
    expected = {pair: cosine for pair, cosine in compare_slowly(rows[:9], rows).items() if live[pair[1]]}
    assert (
        dict(zip(zip(found.new.tolist(), found.neighbours.tolist(), strict=True), found.cosines, strict=True))
        == expected
    )
    among = find_close_pairs(rows)
    expected = {pair: cosine for pair, cosine in compare_slowly(rows, rows).items() if pair[0] < pair[1]}
    assert len(expected) > 10
    assert (
        dict(zip(zip(among.new.tolist(), among.neighbours.tolist(), strict=True), among.cosines, strict=True))
        == expected
    )


def test_empty_matrices_have_no_close_rows() -> None:
    empty = np.empty((0, 5), np.float32)
    assert len(find_close_pairs(empty).new) == 0
    assert len(find_close_rows(make_unit_rows(2), Columns(1, np.empty(0, np.int64), empty)).new) == 0
