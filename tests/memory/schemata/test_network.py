"""Lists of best partners, and links between passages, against a slow reading of equation 2."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.memory.schemata.graphs import make_passages
from tests.memory.schemata.slow_reading import list_partners

from tomewise.memory.schemata import network as module
from tomewise.memory.schemata.network import Links, Lists, Passages, complete_lists
from tomewise.memory.schemata.schemata_names import SchemataRules

NONE = np.empty(0, np.int64)


def list_all(passages: Passages, rules: SchemataRules) -> Lists:
    lists = Lists.from_entries(len(passages.rows), rules.k, NONE, NONE, np.empty(0))
    complete_lists(passages, lists, np.ones(len(passages.rows), np.bool_), rules)
    return lists


def select(passages: Passages, which) -> Passages:
    return Passages(passages.vectors, passages.rows[which], passages.documents[which], passages.positions[which])


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 40), st.integers(1, 5), st.integers(1, 6))
def test_lists_are_those_of_the_slow_reading(seed: int, count: int, documents: int, k: int) -> None:
    passages = make_passages(seed, count, documents)
    lists = list_all(passages, SchemataRules(alpha=0.6, sigma=1.5, k=k))
    slow = list_partners(passages.vectors, passages.documents, passages.positions, alpha=0.6, sigma=1.5, k=k)
    for vertex, entries in slow.items():
        assert lists.scores[vertex][: len(entries)] == pytest.approx([score for _, score in entries], abs=2e-5)
        assert (lists.partners[vertex][len(entries) :] == -1).all()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 40), st.integers(1, 3), st.integers(1, 5), st.data())
def test_lists_stay_exact_when_passages_come_and_go(seed: int, count: int, documents: int, k: int, data) -> None:
    passages, rules = make_passages(seed, count, documents), SchemataRules(k=k)
    states = np.array(data.draw(st.lists(st.sampled_from("goes stays comes".split()), min_size=count, max_size=count)))
    before, after = np.flatnonzero(states != "comes"), np.flatnonzero(states != "goes")
    if not len(before) or not len(after):
        return
    owners, partners, scores = list_all(select(passages, before), rules).list_entries()
    place = np.full(count, -1)
    place[after] = np.arange(len(after))
    owners, partners = place[before[owners]], place[before[partners]]
    is_left = (owners >= 0) & (partners >= 0)
    lists = Lists.from_entries(len(after), k, owners[is_left], partners[is_left], scores[is_left])
    complete_lists(select(passages, after), lists, states[after] == "comes", rules)
    whole = list_all(select(passages, after), rules)
    assert (lists.partners == whole.partners).all()
    assert (lists.scores == whole.scores).all(), "to the last bit"


def test_small_blocks_make_the_same_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    passages, rules = make_passages(3, 60, 3), SchemataRules(k=4)
    whole = list_all(passages, rules)
    monkeypatch.setattr(module, "_BLOCK", 7)
    small = list_all(passages, rules)
    assert (small.partners == whole.partners).all()
    assert (small.scores == whole.scores).all()


def test_links_need_both_lists_or_as_in_the_paper_one_and_a_threshold() -> None:
    passages = make_passages(5, 40, 4)
    lists = list_all(passages, SchemataRules(k=3))
    listed = {(a, b): score for a, b, score in zip(*(field.tolist() for field in lists.list_entries()), strict=True)}

    def read(links: Links) -> dict[tuple[int, int], float]:
        return dict(zip(zip(links.a.tolist(), links.b.tolist(), strict=True), links.weights.tolist(), strict=True))

    mutual = {(a, b): score for (a, b), score in listed.items() if (b, a) in listed and a < b}
    assert read(lists.link(SchemataRules(k=3))) == mutual
    high = {(min(pair), max(pair)): score for pair, score in listed.items() if score >= 0.5}
    assert read(lists.link(SchemataRules(k=3, theta=0.5))) == high
    assert mutual != high


def test_across_documents_only_the_cosine_counts() -> None:
    vectors = np.tile(np.array([[1, 0, 0]], np.float32), (4, 1))
    same = Passages(vectors, np.arange(4), np.zeros(4, np.int64), np.arange(4))
    apart = Passages(vectors, np.arange(4), np.arange(4), np.zeros(4, np.int64))
    rules = SchemataRules(k=1)
    assert list_all(apart, rules).scores[:, 0].tolist() == [0.7] * 4
    assert list_all(same, rules).scores[:, 0] == pytest.approx(0.7 + 0.3 * np.exp(-0.5), abs=1e-6)
