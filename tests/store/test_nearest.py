"""The nearest rows of a space, also with dead and unordered rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tomewise.store.key_indices import find_known_indices
from tomewise.store.nearest import Nearest, find_top
from tomewise.store.sql.mirror import Columns
from tomewise.store.sql.sql_store import SqlStore

floats = st.sampled_from([0.0, -0.5, 0.25, 0.5, 1.0])
QUERY = np.array([1, 0, 0], np.float32)


def columns(keys: list[int], live: list[bool] | None = None) -> Columns:
    rows = np.arange(3 * len(keys), dtype=np.float32).reshape(-1, 3)
    return Columns(1, np.array(keys, np.int64), rows, None if live is None else np.array(live, bool))


@pytest.fixture
def store(tmp_path: Path):
    """A store whose space `space` is what a test sets."""

    class OneSpace(SqlStore):
        content = columns([])

        def _read_vectors(self, space: str) -> Columns:
            return self.content

    opened = OneSpace.open(tmp_path / "a.tome")
    yield opened
    opened.close()


def by_key(keys, cosines):
    return dict(zip(keys.tolist(), cosines.tolist(), strict=True))


def min_max(scores):
    """Scores scaled to 0..1. Equal scores all become 1 (as in HippoRAG 2), but scores that are all 0 stay 0."""
    x = np.asarray(scores, dtype=np.float64)
    if np.ptp(x) == 0:
        return np.where(x == 0, 0.0, 1.0)
    return (x - x.min()) / np.ptp(x)


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([2.0, 4.0, 3.0], [0.0, 1.0, 0.5]),
        ([0.7, 0.7], [1.0, 1.0]),
        ([0.7], [1.0]),
        ([-3.0, -3.0], [1.0, 1.0]),
        ([0.0, 0.0], [0.0, 0.0]),
        ([], []),
    ],
)
def test_equal_scores_are_scaled_to_one_unless_they_are_zero(scores, expected):
    found = Nearest(np.arange(len(scores)), np.array(scores, np.float32), min(scores, default=0.0))
    np.testing.assert_allclose(found.scale(), expected)


@given(st.lists(floats, max_size=12), st.integers(0, 5))
def test_scaled_is_min_max_of_all(values, limit):
    scores = np.array(values, np.float32)
    best = find_top(scores, limit)
    found = Nearest(best, scores[best], min(values, default=0.0))
    assert np.allclose(found.scale(), min_max(values)[best] if values else [])


def test_dead_rows_do_not_count(store):
    store.content = columns([5, 7, 6, 9], [True, False, True, True])
    found = store.nearest("space", QUERY, 9)
    assert by_key(found.keys, found.cosines) == {5: 0, 6: 6, 9: 9}
    assert found.lowest == 0
    two = store.nearest("space", np.stack((QUERY, -QUERY)), 1)
    assert by_key(two.keys, two.cosines) == {9: 9}
    assert store.content.keys.tolist() == [5, 6, 9]
    assert columns([3, 1, 2]).keys.tolist() == [1, 2, 3]
    assert by_key(*store.scores("space", QUERY)) == {5: 0, 6: 6, 9: 9}
    keys, cosines = store.scores("space", QUERY, among=np.array([4, 6, 7, 9]))
    assert (keys.tolist(), cosines.tolist()) == ([6, 9], [6, 9])


def test_only_keys_among_those_given_count(store):
    store.content = columns([5, 7, 6, 9], [True, False, True, True])
    found = store.nearest("space", QUERY, 1, among=np.array([4, 5, 6, 7]))
    assert by_key(found.keys, found.cosines) == {6: 6}
    assert store.nearest("space", QUERY, 9, among=np.array([6, 9])).lowest == 6
    assert len(store.nearest("space", QUERY, 9, among=np.empty(0, np.int64)).keys) == 0


def test_only_the_live_row_of_a_key_counts(store):
    store.content = columns([5, 7, 5], [False, True, True])
    keys, cosines = store.scores("space", QUERY, among=np.array([5, 7]))
    assert (keys.tolist(), cosines.tolist()) == ([5, 7], [6, 3])
    assert store.rows("space", [7, 5])[:, 0].tolist() == [3, 6]


def test_an_empty_space_has_no_cosines(store):
    assert len(store.nearest("space", QUERY, 3).keys) == 0
    assert len(store.nearest("space", QUERY[None, :], 3).scale()) == 0
    assert store.scores("space", QUERY, among=np.array([1]))[1].shape == (0,)
    assert find_known_indices(np.array([1, 2]), np.array([], np.int64))[1].tolist() == [False, False]


def test_close_rows_are_live_and_have_keys(store):
    rows = np.array([[1, 0], [0.9, 0.43588989], [0, 1], [1, 0]], np.float32)
    store.content = Columns(1, np.array([8, 5, 7, 6]), rows, np.array([True, True, True, False]))
    pairs = store.alike("space", rows[:1], 0.8)
    assert sorted(zip(pairs.new.tolist(), pairs.neighbours.tolist(), pairs.cosines.tolist(), strict=True)) == [
        (0, 5, 0.9),
        (0, 8, 1.0),
    ]
