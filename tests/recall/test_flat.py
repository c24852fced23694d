"""Flat recall against slow reference rankings."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.texts import prose

from tomewise.embedding.hash import HashEmbedder
from tomewise.recall.flat import Dense, Everything, Fused, Lexical
from tomewise.store.nearest import find_top
from tomewise.store.records import SETTINGS
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import check_retriever, document_of, put_document
from tomewise.types import Evidence

EMBEDDER = HashEmbedder(64)
QUERY = "the keeper burned a letter"


@pytest.fixture
def store(here):
    made = SqlStore.open(here / "a.tome")
    for number in range(30):
        put_document(made, EMBEDDER, document_of(f"d{number:02}", prose(number, 3)))
    for twin in ("x", "y", "z"):  # ties
        put_document(made, EMBEDDER, document_of(twin, "The keeper burned the letter."))
    with made.write() as change:
        for number in range(0, 30, 7):
            change.remove_document(f"d{number:02}")
    yield made
    made.close()


def retrievers(store):
    dense, lexical = Dense(store, EMBEDDER), Lexical(store)
    return {"dense": dense, "lexical": lexical, "fused": Fused([dense, lexical]), "everything": Everything(store)}


@pytest.mark.parametrize("name", ["dense", "lexical", "fused", "everything"])
async def test_contract(store, name):
    await check_retriever(retrievers(store)[name], QUERY, store)


async def test_dense_is_the_exact_ranking_by_cosine(store):
    query = EMBEDDER.embed([QUERY])[0]
    passages = store.passages().values()
    slow = sorted((-round(float(EMBEDDER.embed([p.content])[0] @ query), 6), p.id) for p in passages)
    for limit in (1, 3, 10, 100):
        found = await Dense(store, EMBEDDER).retrieve(QUERY, limit)
        assert [(-piece.score, piece.node) for piece in found] == slow[:limit]


async def test_fusion_is_the_sum_of_reciprocal_ranks(store):
    parts = retrievers(store)
    scores = {}
    for part in ("dense", "lexical"):
        for rank, piece in enumerate(await parts[part].retrieve(QUERY, 100), start=1):
            scores[piece.node] = scores.get(piece.node, 0) + 1 / (60 + rank)
    slow = sorted(scores, key=lambda node: (-scores[node], node))
    found = await parts["fused"].retrieve(QUERY, 12)
    assert [piece.node for piece in found] == slow[:12]
    assert found[0].score == pytest.approx(scores[slow[0]])


async def test_fusion_by_hand():
    def piece(node):
        return Evidence(node=node, layer="passages", text=node, score=9.0, sources=(node,))

    class Fixed:
        def __init__(self, *nodes):
            self._nodes = nodes

        async def retrieve(self, query, limit, *, within=None):
            return [piece(node) for node in self._nodes][:limit]

    found = await Fused([Fixed("a", "b", "c"), Fixed("b", "d")], k=1).retrieve("q", 3)
    assert [(p.node, p.score) for p in found] == [("b", 1 / 3 + 1 / 2), ("a", 1 / 2), ("d", 1 / 3)]
    assert await Fused([Fixed(), Fixed()]).retrieve("q", 3) == []


async def test_everything_comes_in_document_order(store):
    found = await Everything(store).retrieve("whatever", 1000)
    assert [piece.node for piece in found] == [p.id for p in store.passages().values()]
    assert len(found) == 28


async def test_words_that_occur_nowhere_find_nothing_by_words(store):
    assert await Lexical(store).retrieve("zzz qqq", 5) == []
    assert await Lexical(store).retrieve('" AND NEAR( *', 5) == []
    assert await Lexical(store).retrieve("", 5) == []
    assert len(await retrievers(store)["fused"].retrieve("zzz qqq", 5)) == 5


@pytest.mark.parametrize("name", ["dense", "lexical", "fused", "everything"])
async def test_an_empty_tome_has_nothing(here, name):
    empty = SqlStore.open(here / "b.tome")
    with empty.write() as change:
        change.put_note(SETTINGS, "dimensions", "64")
    assert await retrievers(empty)[name].retrieve(QUERY, 5) == []
    put_document(empty, EMBEDDER, document_of("one", "The keeper."))
    with empty.write() as change:
        change.remove_document("one")
    assert await retrievers(empty)[name].retrieve(QUERY, 5) == []
    empty.close()
    again = SqlStore.open(here / "b.tome")
    assert await retrievers(again)[name].retrieve(QUERY, 5) == []
    again.close()


@given(st.lists(st.sampled_from([0.0, 0.25, 0.5, 0.5000001, 1.0, -np.inf]), max_size=20), st.integers(0, 25))
def test_top_holds_the_best_and_their_ties(values, limit):
    scores = np.array(values, np.float64)
    found = set(find_top(scores, limit).tolist())
    best = sorted(range(len(values)), key=lambda index: -values[index])[:limit]
    assert set(best) <= found | {i for i in best if any(abs(values[i] - values[j]) <= 1e-6 for j in found)}
    assert len(found) >= min(limit, len(values))
    if 0 < limit < len(values):
        least = values[best[-1]]
        assert all(values[index] >= least - 1e-6 for index in found)
