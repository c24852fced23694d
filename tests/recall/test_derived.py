"""Dense recall over derived texts against a slow reading of the same definition."""

from __future__ import annotations

import tempfile
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tomewise.recall.derived import DenseDerived, Grounds
from tomewise.store.lookups import find_keys
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import HashEmbedder, check_retriever, document_of, put_document
from tomewise.types import Node

LAYER = "tree"
SIGNS = ["".join(signs) for signs in product("+-", repeat=4)]


class Signs:
    """Embeds "+-++" as the unit vector (0.5, -0.5, 0.5, 0.5), so that cosines are exact and often equal."""

    name = "signs"
    dimensions = 4

    def embed(self, texts):
        return np.array([[0.5 if sign == "+" else -0.5 for sign in text] for text in texts], np.float32).reshape(-1, 4)


def grow(store, embedder, nodes):
    """Put nodes, given as (id, text, ids of sources, level), into the layer."""
    made = [Node(id=name, layer=LAYER, text=text, sources=sources, level=level) for name, text, sources, level in nodes]
    with store.write() as change:
        keys = change.put_nodes(made)
        change.put_vectors(LAYER, [keys[node.id] for node in made], embedder.embed([node.text for node in made]))


def cosine(signs, other_signs):
    return sum(a == b for a, b in zip(signs, other_signs, strict=True)) / 2 - 1


@st.composite
def forests(draw):
    """Texts of passages, nodes made from passages and from other nodes, and the numbers of documents to remove."""
    passages = draw(st.lists(st.sampled_from(SIGNS), min_size=2, max_size=6))
    below = [f"p{number}" for number in range(len(passages))]
    nodes = []
    for number in range(draw(st.integers(1, 12))):
        sources = draw(st.lists(st.sampled_from(below), min_size=1, max_size=3, unique=True))
        name = f"n{draw(st.integers(0, 9))}-{number}"  # so that ids are in another order than keys
        nodes.append((name, draw(st.sampled_from(SIGNS)), sources, number + 1))
        below.append(name)
    gone = draw(st.sets(st.integers(0, len(passages) - 1), max_size=len(passages) - 1))
    return passages, nodes, gone


@settings(max_examples=40, deadline=None)
@given(forests(), st.sampled_from(SIGNS), st.integers(1, 14))
async def test_the_nearest_are_those_of_a_slow_reading(forest, query, limit):
    passages, nodes, gone = forest
    embedder = Signs()
    with tempfile.TemporaryDirectory() as folder:
        store = SqlStore.open(Path(folder) / "a.tome")
        for number, text in enumerate(passages):  # later documents come earlier in document order
            put_document(store, embedder, document_of(f"d{9 - number}", text))
        place = {passage.document: passage.id for passage in store.passages().values()}
        ids = {f"p{number}": place[f"d{9 - number}"] for number in range(len(passages))}
        made_of = {name: tuple(ids.get(source, source) for source in sources) for name, _, sources, _ in nodes}
        grow(store, embedder, [(name, text, made_of[name], level) for name, text, _, level in nodes])
        retriever = DenseDerived(store, embedder, LAYER)
        assert len(await retriever.retrieve(query, limit)) == min(limit, len(nodes))  # now its arrays are warm
        for number in gone:
            with store.write() as change:
                change.remove_document(f"d{9 - number}")
        documents = {passage.id: passage.document for passage in store.passages().values()}
        made_of["late"] = tuple(documents)[:1]
        grow(store, embedder, [("late", SIGNS[0], made_of["late"], 1)])

        def leaves(node):
            if node not in made_of:
                return {node} & documents.keys()
            return set().union(*map(leaves, made_of[node]))

        standing = store.nodes(LAYER).values()
        best = sorted(standing, key=lambda node: (-cosine(node.text, query), node.id))[:limit]
        found = await retriever.retrieve(query, limit)
        assert [(piece.node, piece.text, piece.score) for piece in found] == [
            (node.id, node.text, cosine(node.text, query)) for node in best
        ]
        for piece in found:
            assert piece.layer == LAYER
            assert list(piece.sources) == sorted(leaves(piece.node), key=documents.get)
        store.close()


@pytest.fixture
def store(tmp_path):
    embedder = HashEmbedder(64)
    made = SqlStore.open(tmp_path / "a.tome")
    ids = {}
    for name, text in (("a", "Ada kept the light."), ("b", "Tom sold a boat."), ("c", "A judge sat.")):
        put_document(made, embedder, document_of(name, text))
        ids[name] = next(passage.id for passage in made.passages().values() if passage.document == name)
    grow(made, embedder, [("low", "Ada and Tom.", (ids["b"], ids["a"]), 1)])
    grow(made, embedder, [("mixed", "All of them.", ("low", ids["c"], ids["a"]), 2)])
    grow(made, embedder, [("high", "The town.", ("mixed",), 3)])
    yield made
    made.close()


def test_grounds_are_the_passages_of_all_levels_below_each_once_in_document_order(store):
    keys = find_keys(store, ["low", "mixed", "high"])
    below = Grounds(store, LAYER).find_passages_below(keys.values())
    documents = {passage.id: passage.document for passage in store.passages().values()}
    found = {name: [documents[passage] for passage in below[key]] for name, key in keys.items()}
    assert found == {"low": ["a", "b"], "mixed": ["a", "b", "c"], "high": ["a", "b", "c"]}


async def test_without_nodes_there_is_nothing(store):
    assert await DenseDerived(store, HashEmbedder(64), "episodes").retrieve("Ada", 5) == []


async def test_contract(store):
    await check_retriever(DenseDerived(store, HashEmbedder(64), LAYER), "Ada and the town", store)


def test_grounds_follow_the_sources_of_a_node_that_its_layer_keeps(tmp_path):
    store = SqlStore.open(tmp_path / "a.tome")
    for name in ("one", "two"):
        put_document(store, HashEmbedder(16), document_of(name, f"The text of {name}."))
    first, second = (passage.id for passage in store.passages().values())
    with store.write() as change:
        group = Node(id="group", layer="groups", text="", sources=(first,))
        (key,) = change.put_nodes([group], lifetime="layer").values()
    grounds = Grounds(store, "groups")
    assert grounds.find_passages_below([key]) == {key: (first,)}
    with store.write() as change:
        change.update_nodes([Node(id="group", layer="groups", text="", sources=(first, second))], lifetime="layer")
    assert grounds.find_passages_below([key]) == {key: (first, second)}
    store.close()
