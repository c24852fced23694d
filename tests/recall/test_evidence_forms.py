"""What carries the answer: passages with gists, or triples in their place."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.recall.graph_tomes import EMBEDDER, GRAPH, quiet, rebuild, remove_and_build

from tomewise.memory.building import build
from tomewise.memory.gists import GistsLayer
from tomewise.recall.evidence_forms import GIST_LINE, SelectedFacts, pair_with_gists
from tomewise.recall.flat import Dense
from tomewise.recall.seeding import NearestFacts
from tomewise.testing import ScriptedModel, check_retriever, document_of, put_document

TEXTS = ("Ada > met > Tom\nAda > kept > light", "Ida > met > Tom", "a name alone")
QUERY = "Tom met whom, a name?"


@pytest.fixture
def build_gists(build_graph):
    """Builds a graph and gists, which `write` makes of a text."""

    async def build_of(write, *texts):
        store = await build_graph(*texts)
        gist = ScriptedModel({"gist": lambda given: {"memory": write(given.text)}})
        await build([GistsLayer(store, gist)], store, quiet)
        return store

    return build_of


@pytest.fixture
async def store(build_gists):
    return await build_gists(lambda text: f"{text} indeed", *TEXTS)


async def test_a_passage_is_followed_by_its_gist_under_a_line_that_says_so(store):
    put_document(store, EMBEDDER, document_of("late", "Tom without a gist"))
    plain = await Dense(store, EMBEDDER).retrieve(QUERY, 10)
    gists = [f"\n\n{GIST_LINE}\n{piece.text} indeed" if piece.text in TEXTS else "" for piece in plain]
    expected = [replace(piece, text=piece.text + gist) for piece, gist in zip(plain, gists, strict=True)]
    assert pair_with_gists(store, plain) == expected


def select_facts(store):
    return SelectedFacts(store, EMBEDDER, GRAPH)


async def test_facts_are_those_that_the_question_selects_and_no_others_of_their_passages(store):
    put_document(store, EMBEDDER, document_of("twin", "Ada > met > Tom"))
    await rebuild(store)
    homes = {passage.id: passage.document for passage in store.passages().values()}
    found = await select_facts(store).retrieve("Tom met whom?", 2)
    assert {piece.text for piece in found} == {"ada met tom", "ida met tom"}
    assert {piece.layer for piece in found} == {"facts"}
    sources = {piece.text: [homes[source] for source in piece.sources] for piece in found}
    assert sources == {"ada met tom": ["d0", "twin"], "ida met tom": ["d1"]}
    hits = await NearestFacts(store, GRAPH, limit=2).find_hits("", EMBEDDER.embed(["Tom met whom?"])[0])
    assert [piece.score for piece in found] == pytest.approx(hits.cosines.tolist(), abs=1e-6)


async def test_evidence_that_is_not_a_passage_of_this_tome_stays_as_it_is(store):
    (piece,) = await Dense(store, EMBEDDER).retrieve(QUERY, 1)
    home = next(passage.document for passage in store.passages().values() if passage.id == piece.id)
    await remove_and_build(store, home)
    assert pair_with_gists(store, [piece]) == [piece]


async def test_the_contract_of_retrievers_holds(store):
    await check_retriever(select_facts(store), QUERY, store)
