"""Cosines over spaces with dead and unordered rows."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tomewise.recall.cognirank import min_max
from tomewise.recall.similarity import cosines, cosines_at, find_places_of_known, live_keys, scale_to_all
from tomewise.store.sqlite.mirror import Columns

floats = st.sampled_from([0.0, -0.5, 0.25, 0.5, 1.0])


def columns(keys, live=None):
    rows = np.arange(3 * len(keys), dtype=np.float32).reshape(-1, 3)
    return Columns(1, np.array(keys, np.int64), rows, None if live is None else np.array(live, bool))


@given(st.lists(floats, max_size=12), st.data())
def test_scaled_is_min_max_of_all(values, data):
    places = data.draw(st.lists(st.integers(0, len(values) - 1), max_size=5) if values else st.just([]))
    scores = np.array(values, np.float32)
    at = np.array(places, np.int64)
    assert np.allclose(scale_to_all(scores, at), min_max(scores)[at] if values else [])


def test_dead_rows_do_not_count():
    space = columns([5, 7, 6, 9], [True, False, True, True])
    query = np.array([1, 0, 0], np.float32)
    keys, scores = cosines(space, query)
    assert dict(zip(keys.tolist(), scores.tolist(), strict=True)) == {5: 0, 6: 6, 9: 9}
    assert cosines(space, np.stack((query, query)))[1].shape == (3, 2)
    assert live_keys(space).tolist() == [5, 6, 9]
    assert live_keys(columns([3, 1, 2])).tolist() == [1, 2, 3]
    is_live, scores = cosines_at(space, np.array([9, 7, 6, 4]), query)
    assert (is_live.tolist(), scores.tolist()) == ([True, False, True, False], [9, 6])


def test_only_the_live_row_of_a_key_counts():
    space = columns([5, 7, 5], [False, True, True])
    is_live, scores = cosines_at(space, np.array([5, 7]), np.array([1, 0, 0], np.float32))
    assert (is_live.tolist(), scores.tolist()) == ([True, True], [6, 3])


def test_an_empty_space_has_no_cosines():
    query = np.ones(3, np.float32)
    assert cosines(columns([]), query)[1].shape == (0,)
    assert cosines(columns([]), query[None, :])[1].shape == (0, 1)
    assert live_keys(columns([])).tolist() == []
    assert cosines_at(columns([]), np.array([1]), query)[1].shape == (0,)
    assert find_places_of_known(np.array([1, 2]), np.array([], np.int64))[1].tolist() == [False, False]
