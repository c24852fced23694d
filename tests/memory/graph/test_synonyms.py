"""Close names are found among all, the same ones whatever the order, and no dead ones."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from tomewise.memory.graph import synonyms
from tomewise.memory.graph.synonyms import find_close_pairs, find_close_rows
from tomewise.store.sqlite.mirror import Columns


def unit_rows(count: int) -> NDArray[np.float32]:
    rows = np.random.default_rng(3).normal(size=(count, 5)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def slowly(a: NDArray[np.float32], b: NDArray[np.float32]) -> dict[tuple[int, int], float]:
    cosines = np.round(a.astype(np.float64) @ b.astype(np.float64).T, 4)
    return {(i, j): cosines[i, j] for i, j in np.argwhere(cosines >= 0.8).tolist()}


@pytest.mark.parametrize("block", [3, 1000])
def test_they_are_those_that_a_plain_comparison_finds(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(synonyms, "_NEW", block)
    monkeypatch.setattr(synonyms, "_OLD", 2 * block)
    rows = unit_rows(40)
    live = np.arange(40) % 4 != 0
    found = find_close_rows(rows[:9], Columns(1, np.arange(40), rows, live))
    expected = {pair: cosine for pair, cosine in slowly(rows[:9], rows).items() if live[pair[1]]}
    assert (
        dict(zip(zip(found.new.tolist(), found.neighbours.tolist(), strict=True), found.cosines, strict=True))
        == expected
    )
    among = find_close_pairs(rows)
    expected = {pair: cosine for pair, cosine in slowly(rows, rows).items() if pair[0] < pair[1]}
    assert len(expected) > 10
    assert (
        dict(zip(zip(among.new.tolist(), among.neighbours.tolist(), strict=True), among.cosines, strict=True))
        == expected
    )


def test_nothing_is_close_to_nothing() -> None:
    empty = np.empty((0, 5), np.float32)
    assert len(find_close_pairs(empty).new) == 0
    assert len(find_close_rows(unit_rows(2), Columns(1, np.empty(0, np.int64), empty)).new) == 0
