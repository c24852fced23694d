"""Rewriting of questions, links of titles and coverage, against slow readings of the same rules."""

from __future__ import annotations

from math import exp, log

import numpy as np
import pytest
from tests.recall.graph_tomes import list_facts, quiet, rebuild
from tests.recall.slow_bridge import World, rank_associative, rank_hybrid
from tests.stories import put_titled

from tomewise.embedding.hash import HashEmbedder
from tomewise.memory.building import build
from tomewise.memory.graph.graph_names import GraphNames
from tomewise.recall.diffusion import WordCoverage
from tomewise.recall.mentions import TitleLinks
from tomewise.recall.rewriting import Lead, Lifts, Rewriter, Rewriting, take_stems, write_rewrites
from tomewise.store.lookups import read_edges, read_pairs, read_vectors
from tomewise.store.records import PASSAGES
from tomewise.store.sql.sql_store import SqlStore
from tomewise.systems.kit import Kit
from tomewise.systems.registry import assemble
from tomewise.testing import NotingEmbedder, check_retriever, document_of, put_document
from tomewise.testing.scripted import ScriptedModel
from tomewise.text.names import list_names
from tomewise.types import Document, Rewrite

EMBEDDER = HashEmbedder(384)
NAMES = GraphNames("passages", "triples")
QUESTION = "Which currency came before the Euro in the country Signe Holm is from?"
# Lines of a text are its entities and triples, as `graph_tomes.list_facts` reads them.
TEXTS = {
    "Signe Holm": "Signe Holm\nDenmark\nSigne Holm > comes from > Denmark\nSigne Holm > rows in > Copenhagen",
    "Danish krone": "Danish krone\nDenmark\nDanish krone > is the currency of > Denmark\nEuro",
    "Euro": "Euro\nEuro > is the currency of > nineteen countries\nFrankfurt",
    "Copenhagen (city)": "Copenhagen\nCopenhagen > lies in > Denmark\nOresund",
    "Krone": "Krone\nKrone > means > crown\nNorway\nSweden",
    "Frankfurt": "Frankfurt\nFrankfurt > lies on > Main\nGermany",
    "Rowing": "Rowing\nRowing > is a sport of > oars\nSkiff",
    "Oresund": "Oresund\nOresund > parts > Denmark from Sweden\nSweden",
}
ROWERS = {
    "Boat of Signe Holm": "Boat\nDenmark\nit sails in Denmark\nwith oars\nSigne Holm > rows the best boat > Skagen",
    "Dunes": "Dunes\nDenmark\nDunes > lie on the coast of > Denmark",
}
ROWER = "Which coast has the land that Signe Holm is from?"
QUESTIONS = (
    QUESTION,
    "Who rows in the city that lies in Denmark?",
    "What does Krone mean?",
    "What parts the country whose currency is the Danish krone from Sweden?",
    "which sport does signe holm do?",
)


def add_titled(store: SqlStore, title: str, text: str) -> int:
    return put_titled(store, EMBEDDER, Document(id=title, title=title, text=text))


@pytest.fixture
def store(open_store) -> SqlStore:
    made = open_store()
    for title, text in TEXTS.items():
        add_titled(made, title, text)
    return made


@pytest.fixture
def kit(store: SqlStore) -> Kit:
    return Kit(store, ScriptedModel({"extract_facts": list_facts}), EMBEDDER)


def read_world(store: SqlStore) -> tuple[World, list[str]]:
    """What the slow reading needs, and the ids of the passages in its order."""
    passages, entities = store.passages(), store.nodes(NAMES.entities)
    passage_keys, entity_keys = sorted(passages), sorted(entities)
    passage_at = {key: place for place, key in enumerate(passage_keys)}
    entity_at = {key: place for place, key in enumerate(entity_keys)}
    facts = read_vectors(store, NAMES.facts)
    ends: dict[int, dict[int, int]] = {}
    for fact, entity, side in read_edges(store, NAMES.ends).rows.tolist():
        ends.setdefault(int(fact), {})[int(side)] = entity_at[int(entity)]
    states = read_edges(store, f"seen-in:{NAMES.facts}").rows[:, 0].astype(int).tolist()
    fact_keys = facts.keys.tolist()
    world = World(
        titles=[passages[key].title for key in passage_keys],
        texts=[passages[key].text for key in passage_keys],
        vectors=store.rows(PASSAGES, passage_keys),
        embed=EMBEDDER.embed,
        names=[entities[key].text for key in entity_keys],
        links=[
            (entity_at[int(entity)], passage_at[int(passage)])
            for entity, passage, _ in read_edges(store, f"seen-in:{NAMES.entities}").rows.tolist()
        ],
        facts=[
            (ends[key].get(0, ends[key].get(1, 0)), ends[key].get(1, ends[key].get(0, 0)), states.count(key))
            for key in fact_keys
        ],
        fact_vectors=store.rows(NAMES.facts, fact_keys),
        synonyms=[
            (entity_at[int(a)], entity_at[int(b)], cosine)
            for a, b, cosine in read_edges(store, NAMES.synonyms).rows.tolist()
        ],
    )
    return world, [passages[key].id for key in passage_keys]


@pytest.mark.parametrize("question", QUESTIONS)
async def test_associative_ranks_as_the_slow_reading_does(store: SqlStore, kit: Kit, question: str) -> None:
    system = assemble("associative", kit, comparisons="whole")
    await build(system.layers, store, quiet)
    world, ids = read_world(store)
    found = await system.retriever.retrieve(question, 8)
    assert [piece.id for piece in found] == [ids[place] for place in rank_associative(world, question)]


@pytest.mark.parametrize("question", QUESTIONS)
async def test_hybrid_ranks_as_the_slow_reading_does(store: SqlStore, kit: Kit, question: str) -> None:
    await build(assemble("associative", kit).layers, store, quiet)
    world, ids = read_world(store)
    bm25 = np.zeros(len(ids))
    for key, score in store.lexical(question, 100):
        bm25[sorted(store.passages()).index(key)] = score
    placed = assemble("hybrid", kit, comparisons="whole").retriever
    found = await placed.retriever.retrieve(question, 8)
    assert [piece.id for piece in found] == [ids[place] for place in rank_hybrid(world, question, bm25, list_names)]


@pytest.mark.parametrize("name", ["hybrid", "associative"])
async def test_the_bridge_brings_the_passage_of_the_second_step(store: SqlStore, kit: Kit, name: str) -> None:
    for title, text in ROWERS.items():
        add_titled(store, title, text)
    system = assemble(name, kit)
    await build(system.layers, store, quiet)
    await check_retriever(system.retriever, ROWER, store)
    found = {piece.title: piece for piece in await system.retriever.retrieve(ROWER, 11)}
    assert (rewrite := found["Dunes"].rewrite)
    assert rewrite.name == "denmark"
    assert rewrite.text == "which coast has the land that denmark is from"
    assert rewrite.source in {found["Boat of Signe Holm"].id, found["Signe Holm"].id}
    plain = await assemble(name, kit, rewriting=0.0).retriever.retrieve(ROWER, 11)
    assert all(piece.rewrite is None for piece in plain)
    assert next(iter(found)) == plain[0].title, "what is first without rewriting stays first"
    assert list(found).index("Dunes") < [piece.title for piece in plain].index("Dunes")


def lead(*names: str, known: str = "") -> Lead:
    return Lead("p", names, take_stems(known))


def test_names_that_the_question_has_are_left_out_and_each_rewrite_is_written_once() -> None:
    question = "Who keeps the light of Skerry?"
    first = lead("Skerry", "the light", "Skerry Rock", "Ada Marsh", "", "ada marsh", known="skerry")
    second = lead("Ada Marsh", "Tom Hale", known="skerry")
    rewrites = write_rewrites(question, [first, second], 8)
    assert [(rank, rewrite.text) for rank, rewrite in rewrites] == [
        (0, "who keeps the light of skerry rock"),
        (0, "who keeps the light of ada marsh"),
        (1, "who keeps the light of tom hale"),
    ]
    assert write_rewrites(question + " of old" * 50, [first], 8) == [], "a long question is not rewritten"


def test_rewrites_are_embedded_in_one_call_and_their_vectors_are_kept(store: SqlStore) -> None:
    embedder = NotingEmbedder(384)
    leads = [lead("Denmark", "Copenhagen", known="signe holm"), lead("Frankfurt", known="euro")]
    rewriter = Rewriter(store, embedder, lambda *_: leads, Rewriting(weight=0.7, passages=3))
    vector, passages = EMBEDDER.embed([QUESTION])[0], np.empty(0, np.int64)
    first = rewriter.find_lifts(QUESTION, vector, passages, None)
    leads.pop()
    again = rewriter.find_lifts(QUESTION, vector, passages, None)
    assert list(map(len, embedder.batches)) == [3]
    assert first.lifts.max() == again.lifts.max() == pytest.approx(0.7)


def test_sums_cover_all_keys_and_only_what_rose_was_brought() -> None:
    a, b, c = (Rewrite(text=name) for name in "abc")
    lifts = Lifts(np.array([2, 5]), np.array([0.5, 0.1]), {2: a, 5: b, 9: c})
    keys, sums = lifts.add_to(np.array([1, 2]), np.array([0.4, 0.2]))
    assert (keys.tolist(), sums.tolist()) == ([1, 2, 5], [0.4, 0.7, 0.1])
    assert lifts.select_brought([1, 2], [2, 1, 5]) == {2: a, 5: b}
    assert lifts.select_brought([2, 1, 5], [2, 1, 5]) == {}


async def test_weights_of_titles_that_are_kept_in_memory_are_those_of_now(open_store) -> None:
    store = open_store()
    links = TitleLinks(store, NAMES)
    texts = {"Ida Poe (painter)": "Ida Poe\nGhent\nPoe\npainter\nIda Poe (painter)", "Ghent": "Ghent\nIda Poe"}
    for gone, title in ((None, "Ida Poe (painter)"), (None, "Ghent"), ("Ida Poe (painter)", "Skagen")):
        if gone:
            with store.write() as change:
                change.remove_document(gone)
        add_titled(store, title, texts.get(title, "Ida Poe"))
        await rebuild(store, EMBEDDER)
        entities, passages = read_pairs(store, f"seen-in:{NAMES.entities}").T
        weights = links.weigh(entities, passages).tolist()
        assert weights == TitleLinks(store, NAMES).weigh(entities, passages).tolist()
        if title == "Ida Poe (painter)":
            assert sorted(weights) == [1, 2, 2, 3, 3], "in the title, and the whole of it with its note or without"


def test_a_passage_with_new_words_comes_before_one_with_the_same(open_store) -> None:
    store = open_store()
    texts = ("The keeper burned it.", "A keeper burns.", "A letter was here.", "Nothing.")
    keys = np.array([put_document(store, EMBEDDER, document_of(f"d{i}", text))[0] for i, text in enumerate(texts)])
    ranking = keys, np.array([1.0, 0.9, 0.8, 0.0])
    ((order, scores),) = WordCoverage(store).reorder("Which keeper burned a letter?", [ranking])
    assert order.tolist() == keys[[0, 2, 1, 3]].tolist()
    idf = [log(1 + 4 / 3), log(1 + 4 / 3), log(1 + 4 / 2)]
    assert scores[:2] == pytest.approx([1, 0.8 * exp(idf[2] / sum(idf)) / exp((idf[0] + idf[1]) / sum(idf))])
    (near,) = WordCoverage(store, reach=2).reorder("Which keeper burned a letter?", [ranking])
    assert near[0].tolist() == keys.tolist(), "what is out of reach stays"
