"""Recall within a scope: what a full ranking holds of the scope, in the same order."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.recall.graph_tomes import EMBEDDER, GRAPH, build_store
from tests.texts import prose

from tomewise.evaluate.replay import ReplayedStore, remember_question, replay
from tomewise.recall.derived import DenseDerived
from tomewise.recall.diffusion import Diffusion
from tomewise.recall.flat import Dense, Everything, Fused, Lexical
from tomewise.recall.graph_index import GraphIndexes
from tomewise.recall.linking import NearestFacts
from tomewise.recall.seeding import HippoSeeds, PassageSeeds, SumOfSeeds
from tomewise.recall.tree_search import CollapsedTree, TreeTraversal
from tomewise.store.lookups import read_places
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import document_of, put_document
from tomewise.types import Node, Scope

NAMES = [f"d{number:02}" for number in range(24)]
QUERY = "the keeper burned a letter"


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    made = SqlStore.open(tmp_path_factory.mktemp("recall") / "a.tome")
    for number, name in enumerate(NAMES):
        put_document(made, EMBEDDER, document_of(name, prose(number, 2)))
    with made.write() as change:  # so that stored rows are dead, or not in the order of their keys
        change.remove_document("d03")
    put_document(made, EMBEDDER, document_of("d03", prose(3, 2)))
    home = {passage.document: passage.id for passage in made.passages().values()}
    nodes = [
        Node(id=f"s{a}-{b}", layer="tree", text=prose(100 + a, 1), sources=(home[NAMES[a]], home[NAMES[b]]), level=1)
        for a, b in zip(range(0, 24, 2), range(1, 24, 2), strict=True)
    ]
    with made.write() as change:
        keys = change.put_nodes(nodes)
        change.put_vectors("tree", list(keys.values()), EMBEDDER.embed([node.text for node in nodes]))
        top = Node(id="top", layer="tree", text="The keeper.", sources=tuple(node.id for node in nodes), level=2)
        keys = change.put_nodes([top])
        change.put_vectors("tree", list(keys.values()), EMBEDDER.embed([top.text]))
    yield made
    made.close()


def retriever_of(kind, store):
    dense, lexical = Dense(store, EMBEDDER), Lexical(store)
    return {
        "dense": dense,
        "lexical": lexical,
        "everything": Everything(store),
        "derived": DenseDerived(store, EMBEDDER, "tree"),
        "collapsed": CollapsedTree(store, EMBEDDER),
    }[kind]


@pytest.mark.parametrize("kind", ["dense", "lexical", "everything", "derived", "collapsed"])
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    documents=st.sets(st.sampled_from(NAMES)),
    query=st.sampled_from([QUERY, "light", "a ship in the harbour"]),
    limit=st.integers(0, 12),
)
async def test_a_scoped_ranking_is_the_full_ranking_filtered(store, kind, documents, query, limit):
    retriever = retriever_of(kind, store)
    own = {passage.id for passage in store.passages(documents=documents).values()}
    everything = await retriever.retrieve(query, 1000)
    expected = [piece for piece in everything if own.issuperset(piece.sources)][:limit]
    found = await retriever.retrieve(query, limit, within=Scope(documents=frozenset(documents)))
    assert [piece.node for piece in found] == [piece.node for piece in expected]
    if kind != "everything":  # its scores are ranks
        assert [piece.score for piece in found] == pytest.approx([piece.score for piece in expected], abs=2e-6)


async def test_fusion_joins_rankings_that_lie_within(store):
    scope = Scope(documents=frozenset(NAMES[:5]))
    found = await Fused([Dense(store, EMBEDDER), Lexical(store)], depth=5).retrieve(QUERY, 5, within=scope)
    places = read_places(store, (piece.node for piece in found))
    assert sorted(document for document, _ in places.values()) == NAMES[:5]


async def test_a_walk_down_the_tree_begins_at_the_highest_nodes_within(store):
    found = await TreeTraversal(store, EMBEDDER).retrieve(QUERY, 20, within=Scope(documents=frozenset(NAMES[:3])))
    home = {passage.id: passage.document for passage in store.passages().values()}
    assert {home.get(piece.node, piece.node) for piece in found} == {"s0-1", "d00", "d01", "d02"}


async def test_a_walk_over_the_graph_passes_through_what_lies_outside_of_the_scope(tmp_path):
    # Only d1 connects the fact of d0 with d2, and the words of d3 are nearer to the question than those of d2.
    texts = ("Ada > kept > light", "light > stood on > Skerry", "Skerry > lies off > Ghent", "Ada kept > a > boat")
    store = await build_store(tmp_path, *texts)
    seeding = SumOfSeeds([HippoSeeds(), PassageSeeds(store, weight=0.0)])
    walk = Diffusion(store, EMBEDDER, GraphIndexes(store, GRAPH), NearestFacts(store, GRAPH, limit=1), seeding)
    scope = Scope(documents=frozenset({"d0", "d2"}))
    reached = await walk.spread("Ada kept light", scope)
    masses = {store.passages([key])[key].document: mass for key, mass in zip(reached.keys, reached.masses, strict=True)}
    assert set(masses) == {"d0", "d2"}
    assert 0 < masses["d2"] < masses["d0"] == 1
    nearest = NearestFacts(store, GRAPH, limit=1)
    hits = await nearest.find_hits("", reached.vector, Scope(documents=frozenset({"d2"})))
    assert hits.texts == ("skerry lies off ghent",)  # the nearest of those that a passage within states
    store.close()


async def test_what_an_experiment_remembers_of_a_search_is_that_of_its_scope(store):
    lexical = Lexical(ReplayedStore(store))
    scope = Scope(documents=frozenset(NAMES[:4]))
    with remember_question():
        everything = await lexical.retrieve(QUERY, 20)
        own = await lexical.retrieve(QUERY, 20, within=scope)
        with replay():
            assert await lexical.retrieve(QUERY, 20) == everything
            assert await lexical.retrieve(QUERY, 20, within=scope) == own
    assert 0 < len(own) < len(everything)
