"""Recall over passages and over texts derived from them, against slow rankings, also within a scope."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.recall.graph_tomes import EMBEDDER, GRAPH
from tests.recall.shelves import SCENES as TEXTS
from tests.texts import prose

from tomewise.recall.derived import CollapsedTree, DenseDerived, DerivedNodes, TreeTraversal
from tomewise.recall.diffusion import Diffusion
from tomewise.recall.flat import Dense, Everything, Fused, Lexical
from tomewise.recall.graph_index import GraphIndexes
from tomewise.recall.seeding import NearestFacts, seed_hippo, seed_passages
from tomewise.store.lookups import find_keys
from tomewise.store.nearest import find_top
from tomewise.store.records import SETTINGS
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import check_retriever, document_of, put_document
from tomewise.types import Node, Scope

QUERY = "the keeper burned a letter"
NAMES = [f"d{number:02}" for number in range(24)]
TREE = "tree"


def put_nodes(store, embedder, nodes):
    """Put nodes, given as (id, text, ids of sources, level), into the layer."""
    made = [Node(id=id, layer=TREE, text=text, sources=sources, level=level) for id, text, sources, level in nodes]
    with store.write() as change:
        keys = change.put_nodes(made)
        change.put_vectors(TREE, [keys[node.id] for node in made], embedder.embed([node.text for node in made]))


def find_homes(store):
    """The passage of each document."""
    return {passage.document: passage.id for passage in store.passages().values()}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Documents of generated words, with ties, and a tree over them. Rows are dead, or not in the order of keys."""
    made = SqlStore.open(tmp_path_factory.mktemp("recall") / "a.tome")
    for name in (*NAMES, "gone"):
        put_document(made, EMBEDDER, document_of(name, prose(int(name[1:]) if name[1:].isdigit() else 99, 2)))
    for twin in ("x", "y", "z"):
        put_document(made, EMBEDDER, document_of(twin, "The keeper burned the letter."))
    with made.write() as change:
        change.remove_document("d03")
        change.remove_document("gone")
    put_document(made, EMBEDDER, document_of("d03", prose(3, 2)))
    homes = find_homes(made)
    pairs = [(NAMES[at], NAMES[at + 1]) for at in range(0, 24, 2)]
    low = [(f"s{a}-{b}", prose(100 + int(a[1:]), 1), (homes[a], homes[b]), 1) for a, b in pairs]
    put_nodes(made, EMBEDDER, low)
    put_nodes(made, EMBEDDER, [("top", "The keeper.", tuple(node[0] for node in low), 2)])
    yield made
    made.close()


RETRIEVERS = {
    "dense": lambda store: Dense(store, EMBEDDER),
    "lexical": Lexical,
    "fused": lambda store: Fused([Dense(store, EMBEDDER), Lexical(store)]),
    "everything": Everything,
    "derived": lambda store: DenseDerived(store, EMBEDDER, TREE),
    "collapsed": lambda store: CollapsedTree(store, EMBEDDER, TREE),
    "traversal": lambda store: TreeTraversal(store, EMBEDDER, TREE),
}


@pytest.mark.parametrize("name", RETRIEVERS)
async def test_the_contract_of_retrievers_holds(store, name):
    await check_retriever(RETRIEVERS[name](store), QUERY, store)


@pytest.mark.parametrize("name", RETRIEVERS)
async def test_a_tome_that_is_empty_again_has_nothing(open_store, name):
    empty = open_store()
    with empty.write() as change:
        change.put_note(SETTINGS, "dimensions", str(EMBEDDER.dimensions))
    assert await RETRIEVERS[name](empty).retrieve(QUERY, 5) == []
    put_document(empty, EMBEDDER, document_of("one", "The keeper."))
    with empty.write() as change:
        change.remove_document("one")
    assert await RETRIEVERS[name](empty).retrieve(QUERY, 5) == []
    assert await RETRIEVERS[name](open_store(empty.path)).retrieve(QUERY, 5) == []


@pytest.mark.parametrize("limit", [1, 3, 10, 100])
async def test_dense_recall_is_the_exact_ranking_by_cosine_and_a_collapsed_tree_that_of_all_levels(store, limit):
    query, passages = EMBEDDER.embed([QUERY])[0], store.passages().values()

    def rank(texts):
        return sorted((-round(float(EMBEDDER.embed([text])[0] @ query), 6), id) for id, text in texts.items())

    texts = {passage.id: passage.content for passage in passages}
    found = await Dense(store, EMBEDDER).retrieve(QUERY, limit)
    assert [(-piece.score, piece.id) for piece in found] == rank(texts)[:limit]
    summaries = {node.id: node.text for node in store.nodes(TREE).values()}
    collapsed = await CollapsedTree(store, EMBEDDER, TREE).retrieve(QUERY, limit)
    assert [(-piece.score, piece.id) for piece in collapsed] == rank(texts | summaries)[:limit]
    assert {piece.id for piece in collapsed if piece.layer == TREE} == {p.id for p in collapsed} & summaries.keys()
    derived = await DenseDerived(store, EMBEDDER, TREE).retrieve(QUERY, limit)
    assert [(-piece.score, piece.id) for piece in derived] == rank(summaries)[:limit]


async def test_fusion_is_the_sum_of_reciprocal_ranks(store):
    scores = {}
    for part in ("dense", "lexical"):
        for rank, piece in enumerate(await RETRIEVERS[part](store).retrieve(QUERY, 100), start=1):
            scores[piece.id] = scores.get(piece.id, 0) + 1 / (60 + rank)
    slow = sorted(scores, key=lambda node: (-scores[node], node))
    found = await RETRIEVERS["fused"](store).retrieve(QUERY, 12)
    assert [piece.id for piece in found] == slow[:12]
    assert found[0].score == pytest.approx(scores[slow[0]])


async def test_everything_comes_in_document_order(store):
    found = await Everything(store).retrieve("whatever", 1000)
    assert [piece.id for piece in found] == [passage.id for passage in store.passages().values()]


@pytest.mark.parametrize("query", ["zzz qqq", '" AND NEAR( *', ""])
async def test_words_that_occur_nowhere_find_nothing_by_words(store, query):
    assert await Lexical(store).retrieve(query, 5) == []
    assert len(await RETRIEVERS["fused"](store).retrieve(query, 5)) == 5


@settings(max_examples=60)
@given(st.lists(st.sampled_from([0.0, 0.25, 0.5, 0.5000001, 1.0, -np.inf]), max_size=20), st.integers(0, 25))
def test_top_holds_the_best_and_their_ties(values, limit):
    found = set(find_top(np.array(values, np.float64), limit).tolist())
    best = sorted(range(len(values)), key=lambda index: -values[index])[:limit]
    assert set(best) <= found | {i for i in best if any(abs(values[i] - values[j]) <= 1e-6 for j in found)}
    assert len(found) >= min(limit, len(values))
    if 0 < limit < len(values):
        assert all(values[index] >= values[best[-1]] - 1e-6 for index in found)


# ---------------------------------------------------------------- within a scope


@pytest.mark.parametrize("name", ["dense", "lexical", "everything", "derived", "collapsed"])
@settings(max_examples=15)
@given(
    documents=st.sets(st.sampled_from(NAMES)),
    query=st.sampled_from([QUERY, "light", "a ship in the harbour"]),
    limit=st.integers(0, 12),
)
async def test_a_scoped_ranking_is_the_full_ranking_filtered(store, name, documents, query, limit):
    retriever = RETRIEVERS[name](store)
    own = {passage.id for passage in store.passages(documents=documents).values()}
    everything = await retriever.retrieve(query, 1000)
    expected = [piece for piece in everything if own.issuperset(piece.sources)][:limit]
    found = await retriever.retrieve(query, limit, within=Scope(documents=frozenset(documents)))
    assert [piece.id for piece in found] == [piece.id for piece in expected]
    if name not in ("everything", "traversal"):  # their scores are ranks
        assert [piece.score for piece in found] == pytest.approx([piece.score for piece in expected], abs=2e-6)


async def test_a_walk_over_the_graph_passes_through_what_lies_outside_of_the_scope(build_graph):
    # Only d1 connects the fact of d0 with d2, and the words of d3 are nearer to the question than those of d2.
    texts = ("Ada > kept > light", "light > stood on > Skerry", "Skerry > lies off > Ghent", "Ada kept > a > boat")
    store = await build_graph(*texts)
    seedings = [seed_hippo, partial(seed_passages, store, weight=0.0)]
    nearest = NearestFacts(store, GRAPH, limit=1)
    walk = Diffusion(store, EMBEDDER, GraphIndexes(store, GRAPH), nearest, seedings)
    found = await walk.retrieve("Ada kept light", 9, within=Scope(documents=frozenset({"d0", "d2"})))
    homes = {passage.id: passage.document for passage in store.passages().values()}
    masses = {homes[piece.id]: piece.score for piece in found}
    assert set(masses) == {"d0", "d2"}
    assert 0 < masses["d2"] < masses["d0"] == 1
    hits = await nearest.find_hits("", EMBEDDER.embed(["Ada kept light"])[0], Scope(documents=frozenset({"d2"})))
    assert hits.texts == ("skerry lies off ghent",)  # the nearest of those that a passage within states


# ---------------------------------------------------------------- derived texts


SUMMARIES = (
    ("light", "Ada the keeper kept the lamp.", ("d0", "d1"), 1),
    ("harbour", "Tom sold a boat before the harbour froze.", ("d2", "d3"), 1),
    ("court", "A judge gave a verdict on the boat.", ("d4", "d5"), 1),
    ("shore", "Ada and Tom lived by the sea and its harbour.", ("light", "harbour"), 2),
    ("town", "In the town a judge sat.", ("court",), 2),
)


@pytest.fixture
def tree(open_store):
    """A tome with the nodes of SUMMARIES, which were made from the passages of TEXTS."""
    store = open_store()
    for number, text in enumerate(TEXTS):
        put_document(store, EMBEDDER, document_of(f"d{number}", text))
    homes = find_homes(store)
    for name, text, below, level in SUMMARIES:
        put_nodes(store, EMBEDDER, [(name, text, tuple(homes.get(each, each) for each in below), level)])
    return store


@pytest.mark.parametrize("make", [CollapsedTree, DenseDerived])
async def test_evidence_rests_on_the_passages_below(tree, make):
    found = {piece.id: piece.sources for piece in await make(tree, EMBEDDER, TREE).retrieve("sea", 20)}
    homes = find_homes(tree)
    assert found["shore"] == tuple(homes[f"d{number}"] for number in range(4))
    assert found["court"] == (homes["d4"], homes["d5"])


async def test_a_walk_down_sees_only_the_children_of_what_it_kept(tree):
    found = await TreeTraversal(tree, EMBEDDER, TREE, top_k=1).retrieve("Ada and the sea", 20)
    assert [piece.id for piece in found[:-1]] == ["shore", "light"]
    assert found[-1].text == TEXTS[0]
    broad = await TreeTraversal(tree, EMBEDDER, TREE, top_k=2).retrieve("Ada and the sea", 20)
    assert {piece.id for piece in broad if piece.layer == TREE} >= {"shore", "town", "light"}
    assert len(broad) == 6


@pytest.mark.parametrize(
    "make",
    [CollapsedTree, DenseDerived, lambda *parts: TreeTraversal(*parts, top_k=20)],
)
async def test_what_was_removed_is_not_found(tree, make):
    with tree.write() as change:
        change.remove_document("d0")  # and with it the summaries made from it
    nodes = {piece.id for piece in await make(tree, EMBEDDER, TREE).retrieve("Ada and the sea", 20)}
    assert nodes.isdisjoint({"light", "shore"})
    assert nodes >= {"town", "court"}


def test_grounds_are_all_passages_below_also_when_the_tree_has_changed(tree):
    keys, homes = find_keys(tree, ["light", "shore", "town"]), find_homes(tree)
    passages = [homes[f"d{number}"] for number in range(6)]
    nodes = DerivedNodes(tree, TREE)
    expected = {keys["light"]: tuple(passages[:2]), keys["shore"]: tuple(passages[:4])}
    for _ in range(2):
        assert nodes.find_passages_below(expected) == expected
    assert nodes.find_passages_below([keys["town"]]) == {keys["town"]: tuple(passages[4:])}
    with tree.write() as change:
        change.remove_document("d4")
        (made,) = change.put_nodes([Node(id="rest", layer=TREE, text="rest", sources=(passages[5],))]).values()
    assert nodes.find_passages_below([keys["town"], made]) == {keys["town"]: (), made: (passages[5],)}


@pytest.mark.parametrize("lifetime", ["layer", "any"])
def test_grounds_follow_the_sources_of_a_node_that_its_layer_keeps_or_that_outlives_a_source(tree, lifetime):
    homes, nodes = find_homes(tree), DerivedNodes(tree, "groups")

    def make_group(*names):
        return Node(id="group", layer="groups", text="", sources=tuple(homes[name] for name in names))

    with tree.write() as change:
        (key,) = change.put_nodes([make_group("d0", "d4")], lifetime=lifetime).values()
    assert nodes.find_passages_below([key]) == {key: (homes["d0"], homes["d4"])}
    with tree.write() as change:
        if lifetime == "layer":
            change.update_nodes([make_group("d0", "d4", "d5")], lifetime="layer")
        else:
            change.remove_document("d4")
    expected = ("d0", "d4", "d5") if lifetime == "layer" else ("d0",)
    assert nodes.find_passages_below([key]) == {key: tuple(homes[name] for name in expected)}
