"""Lists of best partners, and links between passages, against a slow reading of equation 2."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.memory.schemata.graphs import list_partners, make_passages

from tomewise.memory.schemata.network import Links, Lists, Passages, complete_lists, describe_network
from tomewise.memory.schemata.schemata_names import SchemataRules

NONE = np.empty(0, np.int64)


def list_all(passages: Passages, rules: SchemataRules, **more: int) -> Lists:
    lists = Lists.from_entries(len(passages.rows), rules.k, NONE, NONE, np.empty(0))
    complete_lists(passages, lists, np.ones(len(passages.rows), np.bool_), rules, **more)
    return lists


def select(passages: Passages, which) -> Passages:
    return Passages(passages.vectors, passages.rows[which], passages.documents[which], passages.positions[which])


def assert_equal(lists: Lists, whole: Lists) -> None:
    assert (lists.partners == whole.partners).all()
    assert (lists.scores == whole.scores).all(), "to the last bit"


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.integers(1, 40), st.integers(1, 5), st.integers(1, 6))
def test_lists_are_those_of_the_slow_reading_whatever_the_blocks(seed, count, documents, k) -> None:
    passages, rules = make_passages(seed, count, documents), SchemataRules(alpha=0.6, sigma=1.5, k=k)
    lists = list_all(passages, rules)
    for vertex, entries in list_partners(passages, alpha=0.6, sigma=1.5, k=k).items():
        assert lists.scores[vertex][: len(entries)] == pytest.approx([score for _, score in entries], abs=2e-5)
        assert (lists.partners[vertex][len(entries) :] == -1).all()
    assert_equal(list_all(passages, rules, block=7), lists)


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.integers(2, 40), st.integers(1, 3), st.integers(1, 5), st.data())
def test_lists_stay_exact_when_passages_come_and_go(seed, count, documents, k, data) -> None:
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
    assert_equal(lists, list_all(select(passages, after), rules))


def test_links_need_both_lists_or_as_in_the_paper_one_and_a_threshold() -> None:
    lists = list_all(make_passages(5, 40, 4), SchemataRules(k=3))
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


RULES = {"alpha": 0.7, "sigma": 1.0, "k": 10, "theta": None}
TOME = {**RULES, "passages": 90, "outside": 1, "clusters": [20, 3], "older": 2, "calls": 30}
ALONE = {**RULES, "passages": 2, "outside": 2, "clusters": [], "older": 0, "calls": 0}


@pytest.mark.parametrize(
    ("tomes", "line"),
    [
        (
            [TOME],
            "alpha 0.7, sigma 1, k 10; 90 passages, 1 in no cluster; clusters by level 20, 3; 2 summaries older than "
            "their members; the last build asked for 30",
        ),
        (
            [TOME, ALONE, {**TOME, "clusters": [1, 1, 1]}],
            "alpha 0.7, sigma 1, k 10; 182 passages, 4 in no cluster; clusters by level 21, 4, 1; 4 summaries older "
            "than their members; the last build asked for 60",
        ),
        (
            [{**ALONE, "theta": 0.5}],
            "alpha 0.7, sigma 1, k 10, theta 0.5; 2 passages, 2 in no cluster; no clusters; 0 summaries older than "
            "their members; the last build asked for 0",
        ),
    ],
)
def test_the_networks_of_tomes_in_one_line(tomes, line):
    assert describe_network(tomes) == line
