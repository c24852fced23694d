"""Links between passages, against a slow reading of equation 2."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.memory.schemata.slow_reading import link_passages

from tomewise.memory.schemata import network as module
from tomewise.memory.schemata.levels import FIRST_LABEL
from tomewise.memory.schemata.network import LinkRules, Links, Passages, find_links, match_pairs

EMPTY = Links(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))


def make_passages(seed: int, count: int, documents: int) -> Passages:
    random = np.random.default_rng(seed)
    vectors = random.normal(size=(count, 6)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    homes = np.sort(random.integers(0, documents, count))
    positions = np.arange(count) - np.searchsorted(homes, homes)
    return Passages(vectors, np.arange(count), homes, positions)


def pairs_of(links: Links) -> dict[tuple[int, int], float]:
    return {(a, b): round(w, 4) for a, b, w in zip(links.a.tolist(), links.b.tolist(), links.weights, strict=True)}


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 30), st.integers(1, 5), st.integers(1, 4))
def test_links_of_new_passages_are_those_of_the_slow_reading(seed: int, count: int, documents: int, k: int) -> None:
    passages = make_passages(seed, count, documents)
    rules = LinkRules(alpha=0.6, sigma=1.5, k=k, theta=0.3)
    found, theta = find_links(passages, EMPTY, np.arange(count), rules)
    graph = link_passages(
        passages.vectors, passages.documents, passages.positions, alpha=0.6, sigma=1.5, k=k, theta=0.3
    )
    expected = {(a, b): round(w, 4) for a, near in graph.items() for b, w in near.items() if a < b}
    assert pairs_of(found) == pytest.approx(expected, abs=2e-4)
    assert theta == 0.3


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10_000), st.integers(4, 30), st.integers(1, 3), st.data())
def test_a_batch_adds_links_of_both_sides_and_drops_none(seed: int, count: int, documents: int, data) -> None:
    passages = make_passages(seed, count, documents)
    fresh = np.array(sorted(data.draw(st.sets(st.integers(0, count - 1), min_size=1, max_size=count - 1))))
    old = np.setdiff1d(np.arange(count), fresh)
    rules = LinkRules(k=3, theta=0.2)
    part = Passages(passages.vectors, old, passages.documents[old], passages.positions[old])
    before, _ = find_links(part, EMPTY, np.arange(len(old)), rules)
    known = Links(old[before.a], old[before.b], before.weights)
    added, _ = find_links(passages, known, fresh, rules)
    whole, _ = find_links(passages, EMPTY, np.arange(count), rules)
    assert all(a in fresh or b in fresh for a, b in pairs_of(added))
    # A passage that ranks a partner among its best of all ranks it so among those known at the time.
    assert pairs_of(whole).keys() <= pairs_of(added).keys() | pairs_of(known).keys()


def test_small_blocks_find_the_same_links(monkeypatch: pytest.MonkeyPatch) -> None:
    passages = make_passages(3, 40, 3)
    whole = find_links(passages, EMPTY, np.arange(40), LinkRules(theta=0.1))[0]
    monkeypatch.setattr(module, "_BLOCK", 7)
    assert pairs_of(find_links(passages, EMPTY, np.arange(40), LinkRules(theta=0.1))[0]) == pairs_of(whole)


ENDS = st.one_of(st.integers(0, 5), st.integers(FIRST_LABEL, FIRST_LABEL + 3))  # keys, and labels of new clusters


@settings(deadline=None)
@given(st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5))), st.lists(st.tuples(ENDS, ENDS)))
def test_pairs_are_matched_as_a_dictionary_matches_them(known, wanted) -> None:
    places = {pair: place for place, pair in enumerate(known)}
    columns = [np.array(pairs, np.int64).reshape(-1, 2) for pairs in (list(known), wanted)]
    found = match_pairs(*columns[0].T, *columns[1].T)
    assert found.tolist() == [places.get(pair, -1) for pair in wanted]


def test_the_threshold_links_nine_of_ten_passages() -> None:
    passages = make_passages(5, 400, 400)
    links, theta = find_links(passages, EMPTY, np.arange(400), LinkRules())
    linked = len(np.unique(np.concatenate((links.a, links.b))))
    assert 0.88 <= linked / 400 <= 0.96
    assert 0 < theta < 1


def test_positions_count_within_a_document_alone() -> None:
    vectors = np.eye(4, dtype=np.float32)
    same = Passages(vectors, np.arange(4), np.zeros(4, np.int64), np.arange(4))
    apart = Passages(vectors, np.arange(4), np.arange(4), np.zeros(4, np.int64))
    rules = LinkRules(alpha=0.5, sigma=1.0, k=10, theta=0.25)
    assert pairs_of(find_links(same, EMPTY, np.arange(4), rules)[0]).keys() == {(0, 1), (1, 2), (2, 3)}
    assert not pairs_of(find_links(apart, EMPTY, np.arange(4), rules)[0])
