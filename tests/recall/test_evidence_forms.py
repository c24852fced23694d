"""What carries the answer: passages with gists, or triples in their place."""

from __future__ import annotations

import pytest
from tests.recall.graph_tomes import EMBEDDER, GRAPH, NAMES, build_store, quiet, rebuild, remove_and_build

from tomewise.memory.building import build
from tomewise.memory.gists import GistsLayer
from tomewise.recall.evidence_forms import GIST_LINE, SelectedFacts, WithGists, find_derived_texts, select_new_sentences
from tomewise.recall.flat import Dense
from tomewise.recall.linking import NearestFacts
from tomewise.testing import ScriptedModel, check_retriever, document_of, put_document

TEXTS = ("Ada > met > Tom\nAda > kept > light", "Ida > met > Tom", "a name alone")
QUERY = "Tom met whom, a name?"


@pytest.fixture
async def store(tmp_path):
    made = await build_store(tmp_path, *TEXTS)
    gist = ScriptedModel({"gist": lambda given: {"memory": f"{given.text} indeed"}})
    await build([GistsLayer(made, gist)], made, quiet)
    yield made
    made.close()


async def test_a_passage_is_followed_by_its_gist_under_a_line_that_says_so(store):
    put_document(store, EMBEDDER, document_of("late", "Tom without a gist"))
    plain = await Dense(store, EMBEDDER).retrieve(QUERY, 10)
    found = await WithGists(Dense(store, EMBEDDER), store).retrieve(QUERY, 10)
    assert [(piece.node, piece.score, piece.sources, piece.layer) for piece in found] == [
        (piece.node, piece.score, piece.sources, piece.layer) for piece in plain
    ]
    late = "Tom without a gist"
    assert [piece.text for piece in found] == [
        piece.text if piece.text == late else f"{piece.text}\n\n{GIST_LINE}\n{piece.text} indeed" for piece in plain
    ]


async def test_a_gist_equal_to_its_passage_is_not_shown_again(tmp_path):
    store = await build_store(tmp_path, *TEXTS)
    spaced = ScriptedModel({"gist": lambda given: {"memory": given.text.replace("\n", "  ")}})
    await build([GistsLayer(store, spaced)], store, quiet)
    found = await WithGists(Dense(store, EMBEDDER), store).retrieve(QUERY, 10)
    assert [piece.text for piece in found] == [piece.text for piece in await Dense(store, EMBEDDER).retrieve(QUERY, 10)]
    store.close()


PASSAGE = "Ada Marsh kept the lighthouse at Skerry. She was the daughter of Captain Marsh."


@pytest.mark.parametrize(
    ("gist", "adds"),
    [
        (PASSAGE, ""),
        ("The lighthouse at Skerry was kept by Ada Marsh.", ""),  # the same in other words
        (
            "Ada Marsh kept the lighthouse at Skerry. Ada Marsh was the daughter of Captain Marsh.",
            "Ada Marsh was the daughter of Captain Marsh.",
        ),
        ("Skerry has a lighthouse. Ada is Captain Marsh's daughter.", "Ada is Captain Marsh's daughter."),
        ("It was so.", ""),
        ("", ""),
    ],
)
def test_what_a_gist_adds_is_what_no_sentence_of_its_passage_says(gist, adds):
    assert select_new_sentences(gist, PASSAGE) == adds


async def test_only_what_gists_add_is_shown(tmp_path):
    store = await build_store(tmp_path, PASSAGE, "Ida Poe lived in Ghent.")
    resolved = ScriptedModel({"gist": lambda given: {"memory": given.text.replace("She", "Ada Marsh")}})
    await build([GistsLayer(store, resolved)], store, quiet)
    found = await WithGists(Dense(store, EMBEDDER), store, only_new_sentences=True).retrieve("Who was Ada Marsh?", 10)
    assert [piece.text for piece in found] == [
        f"{PASSAGE}\n\n{GIST_LINE}\nAda Marsh was the daughter of Captain Marsh.",
        "Ida Poe lived in Ghent.",
    ]
    store.close()


def select_facts(store, limit=10):
    return SelectedFacts(store, EMBEDDER, NearestFacts(store, GRAPH, limit=limit), GRAPH)


async def test_facts_are_those_that_the_question_selects_and_no_others_of_their_passages(store):
    put_document(store, EMBEDDER, document_of("twin", "Ada > met > Tom"))
    await rebuild(store)
    homes = {passage.id: passage.document for passage in store.passages().values()}
    found = await select_facts(store, limit=2).retrieve("Tom met whom?", 10)
    assert {piece.text for piece in found} == {"ada met tom", "ida met tom"}
    assert {piece.layer for piece in found} == {"facts"}
    sources = {piece.text: [homes[source] for source in piece.sources] for piece in found}
    assert sources == {"ada met tom": ["d0", "twin"], "ida met tom": ["d1"]}
    hits = await NearestFacts(store, GRAPH, limit=2).find_hits("", EMBEDDER.embed(["Tom met whom?"])[0])
    assert [piece.score for piece in found] == pytest.approx(hits.cosines.tolist(), abs=1e-6)


async def test_lines_are_in_one_order_whatever_was_added_first(store):
    passages = await Dense(store, EMBEDDER).retrieve(QUERY, 10)
    fact_texts = find_derived_texts(store, passages, f"seen-in:{NAMES.facts}")
    ids = {node.text: node.id for node in store.nodes(NAMES.facts).values()}
    assert all(texts == sorted(texts, key=ids.__getitem__) for texts in fact_texts.values())


async def test_evidence_that_is_not_a_passage_of_this_tome_stays_as_it_is(store):
    (piece,) = await Dense(store, EMBEDDER).retrieve(QUERY, 1)

    class Gone:
        async def retrieve(self, query, limit, *, within=None):
            return [piece]

    home = next(passage.document for passage in store.passages().values() if passage.id == piece.node)
    await remove_and_build(store, home)
    assert await WithGists(Gone(), store).retrieve(QUERY, 1) == [piece]


async def test_contract(store):
    await check_retriever(WithGists(Dense(store, EMBEDDER), store), QUERY, store)
    await check_retriever(select_facts(store), QUERY, store)
    await check_retriever(WithGists(Dense(store, EMBEDDER), store, only_new_sentences=True), QUERY)
    await check_retriever(select_facts(store), "Tom met")
