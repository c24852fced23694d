"""Placing of bridges: hand-made cases, and what holds for any ranking."""

from __future__ import annotations

from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.recall.graph_tomes import EMBEDDER
from tests.recall.shelves import Shelves

from tomewise.recall.flat import Dense
from tomewise.recall.mentions import select_named
from tomewise.recall.placing import Placed, find_links
from tomewise.recall.ranking import as_evidence
from tomewise.recall.rewriting import take_stems
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import check_retriever, put_document
from tomewise.types import Document, Scope

PAGES = {
    "a": ("Night Boat", "Night Boat is a comedy directed by Ada Marsh, starring Tom Hale, with songs by Ida Poe."),
    "b": ("Red Roses (film)", "Red Roses was shot in Ghent and directed by Ida Poe."),
    "c": ("Ada Marsh", "Ada Marsh was born in Ghent."),
    "d": ("Tom Hale (actor)", "Tom Hale was born in 1903."),
    "e": ("Ida Poe", "Ida Poe was born in 1907."),
    "f": ("Ghent", "Ghent is a town."),
    "g": ("Comedy!", "A paper."),
    "h": ("", "Ada Marsh and Tom Hale in Night Boat."),
}
QUESTION = "Which film has the director who was born later, Night Boat or Red Roses?"


def put_pages(store, pages):
    for name, (title, text) in pages.items():
        put_document(store, EMBEDDER, Document(id=name, title=title, text=text))
    return {passage.document: as_evidence(passage, 1.0) for passage in store.passages().values()}


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    store = SqlStore.open(tmp_path_factory.mktemp("placing") / "a.tome")
    yield store, put_pages(store, PAGES)
    store.close()


async def place(library, question, ranking, **scope):
    """The documents, best first."""
    store, pieces = library
    names = {piece.id: name for name, piece in pieces.items()}
    found = await Placed(store, Shelves({}, [pieces[name] for name in ranking])).retrieve(question, 10, **scope)
    assert [piece.score for piece in found] == sorted((piece.score for piece in found), reverse=True)
    return "".join(names[piece.id] for piece in found)


@pytest.mark.parametrize(
    ("question", "ranking", "placed"),
    [
        # The first, both films, their directors, then the town and the actor of which they speak too.
        (QUESTION, "gbha", "gbaecfdh"),
        ("Where was the director of Night Boat born?", "hg", "hacdg"),
        ("Who starred in Night Boat?", "ah", "adhc"),  # a name follows the word nearest to it
        ("Where was the director of night boat born?", "hg", "hacdg"),  # as people type
        ("When was Ada Marsh born?", "hc", "hcf"),  # a town is one word
        ("Who was born?", "hgc", "hgc"),
        ("Is this a comedy?", "hgc", "hgc"),  # a common word names no page
        ("", "hgc", "hgc"),
    ],
)
async def test_what_is_named_comes_first_then_what_it_speaks_of(library, question, ranking, placed):
    assert await place(library, question, ranking) == placed


async def test_what_is_outside_of_the_scope_is_not_brought_in(library):
    within = Scope(documents=frozenset("ad"))
    assert await place(library, "Where was the director of Night Boat born?", "da", within=within) == "da"


async def test_titles_follow_the_documents(open_store):
    store = open_store()
    pieces = put_pages(store, {"h": PAGES["h"], "g": PAGES["g"]})
    placed = Placed(store, Shelves({}, [pieces["g"], pieces["h"]]))
    assert await placed.retrieve("Who made Night Boat?", 5) == [pieces["g"], pieces["h"]]
    pieces |= put_pages(store, {"a": PAGES["a"]})
    found = await placed.retrieve("Who made Night Boat?", 5)
    assert [piece.id for piece in found] == [pieces[name].id for name in "gah"]
    with store.write() as change:
        change.remove_document("a")
    assert await placed.retrieve("Who made Night Boat?", 5) == [pieces["g"], pieces["h"]]


async def test_the_contract_of_retrievers_holds(library):
    await check_retriever(Placed(library[0], Dense(library[0], EMBEDDER)), QUESTION, library[0])


@given(ranking=st.permutations("abcdefgh"), question=st.sampled_from([QUESTION, "Who is Tom Hale?", "Who?", "Ghent?"]))
async def test_a_placed_ranking_is_a_permutation_that_keeps_the_order_of_all_others(library, ranking, question):
    placed = await place(library, question, ranking)
    assert sorted(placed) == sorted(ranking)
    assert placed[0] == ranking[0]
    moved = "abcdef" if question == QUESTION else "d" if "Tom" in question else ""
    assert [name for name in placed if name not in moved] == [name for name in ranking if name not in moved]
    assert all(placed.index(name) <= ranking.index(name) + len(moved) for name in ranking)


def test_links_are_whole_capitalised_names_that_say_more_than_the_question():
    text = "The ghent of Ada Marsh Hall, in Ghent and Night Boat, near New Ghent."
    titles = {"ghent", "ada marsh", "ada marsh hall", "night boat", "marsh hall"}
    assert find_links(text, titles, take_stems("Where is the Night Boat?")) == ["ada marsh hall", "ghent"]
    assert find_links("The Who. It is by The Band.", {"the who", "it", "the", "band"}, frozenset()) == [
        "the who",
        "band",
    ]
    assert find_links("", titles, frozenset()) == []


def test_a_question_as_long_as_a_chapter_is_searched_for_titles_in_one_pass():
    started = process_time()
    assert select_named("Name Of A Thing " * 5_000 + "by Ada Marsh", {"ada marsh"}) == ["ada marsh"]
    assert process_time() - started < 10  # in place of minutes
