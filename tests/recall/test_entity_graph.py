"""Entities near a query, their neighbours and their relations, in both styles of a graph."""

from __future__ import annotations

from typing import Any

import pytest
from tests.recall import graph_tomes, relation_tomes
from tests.recall.relation_tomes import EMBEDDER, NAMES

from tomewise.recall.entity_graph import EntityGraph, FoundEntity
from tomewise.types import Condition, NodeId, Scope

WHOLE = Scope()
TEXTS = (
    "Xodar = a dator who was defeated in the ship\nXodar ~ Carter ~ Carter defeated Xodar in the ship",
    "Issus = a goddess\nIssus ~ Xodar ~ Issus degraded Xodar to a slave",
    "Xodar = a slave of slaves\nIssus ~ Phaidor ~ Phaidor serves Issus",
    "Carter = a man of Virginia\nDejah Thoris ~ Carter ~ she married Carter",
    "Zat Arras = a jed of Zodanga",
)


@pytest.fixture
async def store(tmp_path):
    made = await relation_tomes.build_store(tmp_path, *TEXTS)
    yield made
    made.close()


@pytest.fixture
def graph(store) -> EntityGraph:
    return EntityGraph(store, NAMES)


def entity(name: str) -> NodeId:
    return NAMES.entity(name)


def names_of(graph: EntityGraph, found: Any) -> set[str]:
    ids = {entity(name): name for name in ("xodar", "carter", "issus", "phaidor", "dejah thoris", "zat arras")}
    return {ids[node] for node in found}


def near(graph: EntityGraph, query: str, limit: int = 3, within: Scope = WHOLE) -> list[FoundEntity]:
    return graph.find_nearest(EMBEDDER.embed([query])[0], limit, within)


def relate(graph: EntityGraph, query: str, *names: str, limit: int = 5, within: Scope = WHOLE) -> list[str]:
    nodes = [entity(name) for name in names]
    return [
        f"{piece.title}. {piece.text}"
        for piece in graph.find_relations(EMBEDDER.embed([query])[0], nodes, limit, within)
    ]


def test_entities_are_found_by_name_however_it_is_spelt(graph):
    found = graph.find_named(["XODAR", "Dejah  Thoris", "Tars Tarkas", "", "..."])
    assert found == {"XODAR": entity("xodar"), "Dejah  Thoris": entity("dejah thoris")}


def test_neighbours_are_joined_by_a_fact(graph):
    assert names_of(graph, graph.find_neighbours([entity("xodar")])) == {"carter", "issus"}
    assert names_of(graph, graph.find_neighbours([entity("zat arras")])) == set()
    assert names_of(graph, graph.find_neighbours([entity("xodar"), entity("carter")])) == {
        "xodar",
        "carter",
        "issus",
        "dejah thoris",
    }, "each of the two is a neighbour of the other"
    two_hops = {"xodar", "carter", "issus", "phaidor", "dejah thoris"}
    assert names_of(graph, graph.find_neighbours([entity("xodar")], 2)) == two_hops
    assert graph.find_neighbours([]) == frozenset()
    assert graph.find_neighbours(["o-unknown"]) == frozenset()


def test_the_nearest_entities_are_found_by_name_and_by_what_is_written_of_them(graph):
    assert [found.name for found in near(graph, "zat arras", 1)] == ["Zat Arras"]
    (nearest, *_) = near(graph, "a dator who was defeated", 2)
    assert nearest.name == "Xodar"
    assert nearest.text == "a dator who was defeated in the ship\na slave of slaves", "the nearest mention comes first"
    assert near(graph, "slave of slaves", 1)[0].text.startswith("a slave of slaves")
    assert near(graph, "phaidor", 1)[0].text == "", "only a relationship names it"
    scores = [found.score for found in near(graph, "Issus", 9)]
    assert scores == sorted(scores, reverse=True)
    assert len(scores) == 6
    assert near(graph, "Issus", 0) == []


def test_entities_narrow_the_search_or_are_left_out(graph):
    few = Scope(entities=frozenset((entity("carter"), entity("phaidor"))))
    assert {found.name.lower() for found in near(graph, "Xodar", 9, few)} == {"carter", "phaidor"}
    beyond = Scope(without_entities=frozenset((entity("xodar"), entity("carter"))))
    assert {found.name.lower() for found in near(graph, "Xodar", 9, beyond)} == {
        "issus",
        "phaidor",
        "dejah thoris",
        "zat arras",
    }
    assert near(graph, "Xodar", 9, Scope(entities=frozenset())) == []


def test_documents_and_conditions_leave_only_what_their_passages_name(graph):
    ground = Scope(documents=frozenset(("d0", "d1")))
    found = {each.name.lower(): each.text for each in near(graph, "a slave of slaves", 9, ground)}
    assert found == {"xodar": "a dator who was defeated in the ship", "carter": "", "issus": "a goddess"}
    late = Scope(where=(Condition("number", ">=", 3),))
    assert {each.name.lower() for each in near(graph, "Xodar", 9, late)} == {"carter", "dejah thoris", "zat arras"}


def test_relations_of_entities_are_ranked_by_the_query(graph):
    found = relate(graph, "degraded to a slave", "xodar")
    assert found == [
        "issus, xodar. Issus degraded Xodar to a slave",
        "carter, xodar. Carter defeated Xodar in the ship",
    ]
    assert relate(graph, "degraded to a slave", "xodar", limit=1) == found[:1]
    assert relate(graph, "degraded", "zat arras") == []
    assert relate(graph, "degraded") == []


def test_relations_rest_on_passages_within_the_scope(graph, store):
    vector = EMBEDDER.embed(["slave"])[0]
    ground = Scope(documents=frozenset(("d1", "d2")))
    found = graph.find_relations(vector, [entity("xodar"), entity("carter")], 5, ground)
    assert [f"{piece.title}. {piece.text}" for piece in found] == ["issus, xodar. Issus degraded Xodar to a slave"]
    passages = {passage.id: passage.document for passage in store.passages().values()}
    assert [passages[source] for piece in found for source in piece.sources] == ["d1"]
    assert found[0].layer == "facts"


async def test_a_graph_of_triples_is_searched_by_names(tmp_path):
    store = await graph_tomes.build_store(tmp_path, "Xodar > serves > Issus\nCarter", "Carter > knows > Xodar")
    graph, vector = EntityGraph(store, graph_tomes.NAMES), graph_tomes.EMBEDDER.embed(["carter"])[0]
    (nearest,) = graph.find_nearest(vector, 1, Scope())
    assert (nearest.name, nearest.text) == ("carter", "")
    neighbours = graph.find_neighbours([nearest.id])
    assert neighbours == {graph_tomes.NAMES.entity("xodar")}
    texts = [piece.text for piece in graph.find_relations(vector, neighbours, 5, Scope())]
    assert sorted(texts) == ["carter knows xodar", "xodar serves issus"]
    store.close()
