"""One ranking of what several searches found."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.loops.doubles import put_passages

from tomewise.loops.fusing import Searched, fuse, weigh_queries
from tomewise.recall.ranking import as_evidence
from tomewise.store.sql.sql_store import SqlStore
from tomewise.types import Document, Evidence, Passage, Scope

PARTS = 8


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    made = SqlStore.open(tmp_path_factory.mktemp("fusing") / "a.tome")
    for name in ("a", "b"):
        text = " ".join(f"{name}{number}." for number in range(PARTS))
        cuts = [(3 * number + number, 3 * number + number + 3) for number in range(PARTS)]
        passages = [
            Passage(id=f"{name}{n}", document=name, position=n, start=start, end=end, text=text[start:end])
            for n, (start, end) in enumerate(cuts)
        ]
        put_passages(made, Document(id=name, text=text), passages)
    yield made
    made.close()


def search(store, *nodes: str, weight: float = 1.0) -> Searched:
    passages = {passage.id: passage for passage in store.passages().values()}
    return Searched([as_evidence(passages[node], 1.0) for node in nodes], weight)


def rank(store, *searches: Searched, within: Scope | None = None) -> list[tuple[str, float]]:
    return [(piece.node, piece.score) for piece in fuse(store, searches, within)]


def test_ranks_count_and_half_of_a_score_goes_to_each_neighbour(store):
    # a0: 1/2 + half of 1/3; a1: 1/3 + half of 1/2; a2: half of 1/3.
    assert rank(store, search(store, "a0", "a1")) == [("a0", 0.666667), ("a1", 0.583333), ("a2", 0.166667)]


def test_what_two_searches_find_comes_before_what_one_finds(store):
    ranked = rank(store, search(store, "a0", "b0"), search(store, "a7", "b0", weight=0.5))
    assert ranked[:3] == [("a0", 0.5), ("b0", 0.5), ("a1", 0.25)]


def test_queries_of_a_loop_count_together_at_most_as_three_questions():
    assert [search.weight for search in weigh_queries([[], []])] == [1.0, 1.0]
    assert sum(search.weight for search in weigh_queries([[]] * 12)) == pytest.approx(3.0)


def test_neighbours_stay_in_their_document_and_out_of_a_scope_of_entities(store):
    assert [node for node, _ in rank(store, search(store, "b7"))] == ["b7", "b6"]
    scope = Scope(entities=frozenset({"e"}))
    assert rank(store, search(store, "b7"), within=scope) == [("b7", 0.5)]


def test_what_is_no_passage_has_no_neighbours(store):
    summary = Evidence(node="s", layer="tree", text="All.", score=1.0, sources=("a3",))
    assert rank(store, Searched([summary])) == [("s", 0.5)]


@given(st.lists(st.lists(st.integers(0, PARTS - 1), unique=True, max_size=5), max_size=4))
def test_scores_are_those_of_the_formula(store, rankings):
    own = [0.0] * (PARTS + 2)
    for ranking in rankings:
        for place, number in enumerate(ranking):
            own[number + 1] += 1 / (2 + place)
    wanted = {
        f"a{n}": own[n + 1] + (own[n] + own[n + 2]) / 2 for n in range(PARTS) if own[n + 1] or own[n] or own[n + 2]
    }
    ranked = rank(store, *(search(store, *(f"a{number}" for number in ranking)) for ranking in rankings))
    assert dict(ranked) == pytest.approx(wanted, abs=1e-6)
    assert [score for _, score in ranked] == sorted((score for _, score in ranked), reverse=True)
