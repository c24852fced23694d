"""What carries the answer: passages with gists, or triples in their place."""

from __future__ import annotations

import pytest
from tests.recall.graph_tomes import EMBEDDER, GRAPH, NAMES, built, quiet, removed

from tomewise.memory.building import build
from tomewise.memory.gists import GistsLayer
from tomewise.recall.carriers import AsTriples, WithGists, texts_made_of
from tomewise.recall.flat import Dense
from tomewise.testing import ScriptedModel, check_retriever, document_of, put

TEXTS = ("Ada > met > Tom\nAda > kept > light", "Ida > met > Tom", "a name alone")
QUERY = "Tom met whom, a name?"


@pytest.fixture
async def store(tmp_path):
    made = await built(tmp_path, *TEXTS)
    gist = ScriptedModel({"gist": lambda given: {"memory": f"{given.text} indeed"}})
    await build([GistsLayer(made, gist)], made, quiet)
    yield made
    made.close()


async def test_a_passage_is_followed_by_its_gist(store):
    put(store, EMBEDDER, document_of("late", "Tom without a gist"))
    plain = await Dense(store, EMBEDDER).retrieve(QUERY, 10)
    found = await WithGists(Dense(store, EMBEDDER), store).retrieve(QUERY, 10)
    assert [(one.node, one.score, one.sources, one.layer) for one in found] == [
        (one.node, one.score, one.sources, one.layer) for one in plain
    ]
    late = "Tom without a gist"
    assert [one.text for one in found] == [
        one.text if one.text == late else f"{one.text}\n\n{one.text} indeed" for one in plain
    ]


async def test_facts_stand_for_their_passage(store):
    plain = await Dense(store, EMBEDDER).retrieve(QUERY, 10)
    found = await AsTriples(Dense(store, EMBEDDER), store, GRAPH).retrieve(QUERY, 10)
    by_node = {one.node: one for one in plain}
    said = {TEXTS[0]: {"ada met tom", "ada kept light"}, TEXTS[1]: {"ida met tom"}}
    assert [one.node for one in found] == [one.node for one in plain if one.text in said]
    for one in found:
        assert set(one.text.splitlines()) == said[by_node[one.node].text]
        assert (one.layer, one.score, one.sources) == ("facts", by_node[one.node].score, (one.node,))


async def test_lines_are_in_one_order_whatever_was_added_first(store):
    passages = await Dense(store, EMBEDDER).retrieve(QUERY, 10)
    texts = texts_made_of(store, passages, f"seen-in:{NAMES.facts}")
    ids = {node.text: node.id for node in store.nodes(NAMES.facts).values()}
    assert all(some == sorted(some, key=ids.__getitem__) for some in texts.values())


async def test_evidence_that_is_no_passage_of_this_tome_stands_alone(store):
    (one,) = await Dense(store, EMBEDDER).retrieve(QUERY, 1)

    class Gone:
        async def retrieve(self, query, limit):
            return [one]

    home = next(passage.document for passage in store.passages().values() if passage.id == one.node)
    await removed(store, home)
    assert await WithGists(Gone(), store).retrieve(QUERY, 1) == [one]
    assert await AsTriples(Gone(), store, GRAPH).retrieve(QUERY, 1) == []


async def test_contract(store):
    await check_retriever(WithGists(Dense(store, EMBEDDER), store), QUERY)
    await check_retriever(AsTriples(Dense(store, EMBEDDER), store, GRAPH), "Tom met")
