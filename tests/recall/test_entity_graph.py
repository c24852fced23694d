"""Entities near a query, their neighbours and relations, what an investigation and a local search make of them."""

from __future__ import annotations

import asyncio
import random
from itertools import combinations

import pytest
from tests.recall.relation_tomes import EMBEDDER, NAMES, build_store

from tomewise.recall.entity_graph import EntityGraph, Investigation
from tomewise.recall.flat import Dense
from tomewise.recall.local_relations import LocalGraph
from tomewise.store.lookups import read_places
from tomewise.testing import check_retriever
from tomewise.types import Condition, Scope

WHOLE = Scope()
TEXTS = (
    "Xodar = a dator who was defeated in the ship\nXodar ~ Carter ~ Carter defeated Xodar in the ship",
    "Issus = a goddess\nIssus ~ Xodar ~ Issus degraded Xodar to a slave",
    "Xodar = a slave of slaves\nIssus ~ Phaidor ~ Phaidor serves Issus",
    "Carter = a man of Virginia\nDejah Thoris ~ Carter ~ she married Carter",
    "Zat Arras = a jed of Zodanga",
)
ALL = ("xodar", "carter", "issus", "phaidor", "dejah thoris", "zat arras")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    made = asyncio.run(build_store(tmp_path_factory.mktemp("entities"), *TEXTS))
    yield made
    made.close()


@pytest.fixture
def graph(store):
    return EntityGraph(store, NAMES)


def find_entities(names):
    """Their ids; a comma stands between names."""
    return frozenset(NAMES.entity(name) for name in names.split(", ") if name)


def embed(query):
    return EMBEDDER.embed([query])[0]


def list_near(graph, query, limit=9, **scope):
    """The names and texts of the entities near a query, nearest first."""
    return {found.name.lower(): found.text for found in graph.find_nearest(embed(query), limit, Scope(**scope))}


def relate(graph, query, names, limit=5, within=WHOLE):
    found = graph.find_relations(embed(query), find_entities(names), limit, within)
    return [f"{piece.title}. {piece.text}" for piece in found]


def test_entities_are_found_by_name_however_it_is_spelt(graph):
    found = graph.find_named(["XODAR", "Dejah  Thoris", "Tars Tarkas", "", "..."])
    assert found == {"XODAR": NAMES.entity("xodar"), "Dejah  Thoris": NAMES.entity("dejah thoris")}


@pytest.mark.parametrize(
    ("names", "hops", "neighbours"),
    [
        ("zat arras", 1, ""),
        ("xodar, carter", 1, "xodar, carter, issus, dejah thoris"),  # each of the two is a neighbour of the other
        ("xodar", 2, "xodar, carter, issus, phaidor, dejah thoris"),
        ("", 1, ""),
    ],
)
def test_neighbours_are_joined_by_a_fact(graph, names, hops, neighbours):
    assert graph.find_neighbours(find_entities(names), hops) == find_entities(neighbours)


def test_the_nearest_entities_are_found_by_name_and_by_what_is_written_of_them(graph):
    assert [found.name for found in graph.find_nearest(embed("zat arras"), 1, WHOLE)] == ["Zat Arras"]
    written = "a dator who was defeated in the ship\na slave of slaves"
    assert next(iter(list_near(graph, "a dator who was defeated").items())) == ("xodar", written), "the nearest first"
    assert next(iter(list_near(graph, "slave of slaves").values())).startswith("a slave of slaves")
    assert list_near(graph, "phaidor", 1) == {"phaidor": ""}, "only a relationship names it"
    scores = [found.score for found in graph.find_nearest(embed("Issus"), 9, WHOLE)]
    assert scores == sorted(scores, reverse=True)
    assert len(scores) == 6
    assert list_near(graph, "Issus", 0) == {}


@pytest.mark.parametrize(
    ("scope", "found"),
    [
        ({"entities": find_entities("carter, phaidor")}, {"carter", "phaidor"}),
        ({"without_entities": find_entities("xodar, carter")}, {*ALL[2:]}),
        ({"entities": frozenset()}, set()),
        ({"where": (Condition("number", ">=", 3),)}, {"carter", "dejah thoris", "zat arras"}),
    ],
)
def test_a_scope_narrows_the_search_to_entities_or_to_what_its_passages_name(graph, scope, found):
    assert list_near(graph, "Xodar", **scope).keys() == found


def test_relations_of_entities_are_ranked_by_the_query(graph):
    found = relate(graph, "degraded to a slave", "xodar")
    degraded = "issus, xodar. Issus degraded Xodar to a slave"
    assert found == [degraded, "carter, xodar. Carter defeated Xodar in the ship"]
    assert relate(graph, "degraded to a slave", "xodar", limit=1) == [degraded]
    assert relate(graph, "degraded", "zat arras") == relate(graph, "degraded", "") == []


def test_relations_rest_on_passages_within_the_scope(graph, store):
    ground = Scope(documents=frozenset(("d1", "d2")))
    assert relate(graph, "slave", "xodar, carter", within=ground) == ["issus, xodar. Issus degraded Xodar to a slave"]
    (found,) = graph.find_relations(embed("slave"), find_entities("xodar, carter"), 5, ground)
    assert [document for document, _ in read_places(store, found.sources).values()] == ["d1"]
    assert found.layer == "facts"


# ---------------------------------------------------------------- investigations


def list_findings(found):
    """The names of the entities, the words of the relations, the documents' numbers of the passages."""
    return (
        {entity.title.lower() for entity in found.entities},
        {piece.text for piece in found.relations},
        {TEXTS.index(piece.text) for piece in found.passages},
    )


async def test_a_search_finds_entities_and_what_belongs_to_them(store, graph):
    investigation = Investigation(graph, EMBEDDER, Dense(store, EMBEDDER), entities=1)
    found = await investigation.investigate("phaidor", 5, WHOLE)
    assert list_findings(found) == ({"phaidor"}, {"Phaidor serves Issus"}, {2})
    await check_retriever(investigation, "Xodar and Issus")


async def test_any_recall_is_investigated_within_the_same_scope(store, graph):
    dense, issus = Dense(store, EMBEDDER), Scope(entities=find_entities("issus"))
    investigation = Investigation(graph, EMBEDDER, dense, entities=1, relations=1)
    found = await investigation.investigate("slave", 5, issus)
    assert list(found.passages) == await dense.retrieve("slave", 5, within=issus)
    assert list_findings(found) == ({"issus"}, {"Issus degraded Xodar to a slave"}, {1, 2})


# ---------------------------------------------------------------- near in a graph, against a slow reading of the page


def write_texts(seed):
    dice = random.Random(seed)
    texts = []
    for number in range(6):
        pairs = sorted({tuple(sorted(dice.sample(range(10), 2))) for _ in range(4)})
        people = sorted({person for pair in pairs for person in pair})
        lines = [f"Name{a} ~ Name{b} ~ text {number} on {a} and {b}" for a, b in pairs]
        texts.append("\n".join([*lines, *(f"Name{person} = Somebody of text {number}" for person in people)]))
    return texts


def read_pairs(texts):
    """The pairs that are related, and the texts that say so."""
    found = {}
    for number, text in enumerate(texts):
        for line in text.splitlines():
            if " ~ " in line:
                pair = tuple(sorted(name.lower() for name in line.split(" ~ ")[:2]))
                found.setdefault(pair, set()).add(number)
    return found


def choose_slowly(entities, pairs, each):
    """The page: inside by rank; then outside by how many of the set the outer end touches, then by rank."""
    degree = {name: sum(name in pair for pair in pairs) for pair in pairs for name in pair}

    def rank(pair):
        return (-(degree[pair[0]] + degree[pair[1]]), *sorted(NAMES.entity(name) for name in pair))

    def count_touched(pair):
        (outer,) = set(pair) - set(entities)
        return sum(tuple(sorted((outer, name))) in pairs for name in entities)

    inside = [pair for pair in pairs if set(pair) <= set(entities)]
    outside = [pair for pair in pairs if len(set(pair) & set(entities)) == 1]
    ranked = sorted(outside, key=lambda pair: (-count_touched(pair), *rank(pair)))
    return sorted(inside, key=rank) + ranked[: each * len(entities)]


def list_pairs(relations):
    return [tuple(piece.title.split(", ")) for piece in relations]


def list_documents(store, pieces):
    return [document for piece in pieces for document, _ in read_places(store, piece.sources).values()]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("each", [1, 10])
async def test_relations_and_passages_stand_as_on_the_page(build_relations, seed, each):
    texts = write_texts(seed)
    store, pairs = await build_relations(*texts), read_pairs(texts)
    found = LocalGraph(store, EMBEDDER, NAMES, entities=4, relations=each).find("Who is Name3?", None)
    names = [store.nodes_at([key])[key].text for key in found.keys]
    assert len(names) == 4
    assert [piece.id for piece in found.entities] == [NAMES.entity(name) for name in names]
    for count, relations in enumerate(found.relations, start=1):
        assert list_pairs(relations) == choose_slowly(names[:count], pairs, each)
    for piece, pair in zip(found.relations[-1], list_pairs(found.relations[-1]), strict=True):
        assert piece.sources
        assert {*list_documents(store, [piece])} <= {f"d{number}" for number in pairs[pair]}
    order = []
    for name in names:
        seen = [number for number, text in enumerate(texts) if f"Name{name[-1]} " in text]
        order += sorted(seen, key=lambda n: -sum(name in pair and n in of for pair, of in pairs.items()))
    assert list_documents(store, found.passages) == [f"d{number}" for number in dict.fromkeys(order)]


@pytest.mark.parametrize("lines", ["Ada ~ Tom ~ they met", "Ada ~ Tom ~ they met\nAda = A keeper"])
async def test_an_entity_leads_to_all_passages_in_which_it_is_seen(build_relations, lines):
    store = await build_relations(*(f"{lines}\nText {number}" for number in range(5)))
    for documents in ({"d0"}, {"d1", "d3"}, {f"d{number}" for number in range(5)}):
        found = LocalGraph(store, EMBEDDER, NAMES).find("Ada", Scope(documents=frozenset(documents)))
        assert [{*list_documents(store, [entity])} for entity in found.entities] == [documents] * 2


async def test_nothing_outside_of_a_scope_is_found_near(build_relations):
    texts = write_texts(1)
    store = await build_relations(*texts)
    for chosen in combinations(range(6), 2):
        within = Scope(documents=frozenset(f"d{number}" for number in chosen))
        found = LocalGraph(store, EMBEDDER, NAMES).find("Who is Name3?", within)
        pieces = [*found.entities, *(piece for step in found.relations for piece in step), *found.passages]
        assert {*list_documents(store, pieces)} <= within.documents
        assert all(piece.sources for piece in pieces)
        assert {*list_pairs(found.relations[-1])} <= read_pairs([texts[number] for number in chosen]).keys()
