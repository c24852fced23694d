"""Investigation of a part of the graph, and of a part of what any recall finds."""

from __future__ import annotations

import pytest
from tests.recall.relation_tomes import EMBEDDER, NAMES, build_store

from tomewise.recall.entity_graph import EntityGraph
from tomewise.recall.flat import Dense
from tomewise.recall.investigation import Findings, GraphInvestigation, RecallInvestigation, RecallWithoutGraph
from tomewise.testing import check_retriever
from tomewise.types import Scope

TEXTS = (
    "Xodar ~ Carter ~ Carter defeated Xodar in the ship",
    "Issus ~ Xodar ~ Issus degraded Xodar to a slave",
    "Issus ~ Phaidor ~ Phaidor serves Issus",
    "Carter ~ Dejah Thoris ~ she married Carter",
)


@pytest.fixture
async def store(tmp_path):
    made = await build_store(tmp_path, *TEXTS)
    yield made
    made.close()


def texts_of(found: Findings) -> tuple[set[str], set[str], set[str]]:
    """The names of the entities, the words of the relations, the texts of the passages."""
    return (
        {entity.name.lower() for entity in found.entities},
        {piece.text for piece in found.relations},
        {piece.text for piece in found.passages},
    )


async def test_a_search_finds_entities_and_what_belongs_to_them(store):
    investigation = GraphInvestigation(EntityGraph(store, NAMES), EMBEDDER, Dense(store, EMBEDDER), entities=1)
    found = await investigation.investigate("phaidor", 5, Scope())
    assert texts_of(found) == ({"phaidor"}, {"Phaidor serves Issus"}, {TEXTS[2]})
    await check_retriever(investigation, "Xodar and Issus")


async def test_local_and_global_search_differ_by_the_scope_alone(store):
    investigation = GraphInvestigation(EntityGraph(store, NAMES), EMBEDDER, Dense(store, EMBEDDER))
    around = await investigation.find_neighbours([NAMES.entity("issus")], 1)
    found = await investigation.investigate("slave", 5, Scope(entities=around))
    assert texts_of(found)[0] == {"xodar", "phaidor"}
    assert texts_of(found)[2] == set(TEXTS[:3])
    known = frozenset((await investigation.find_named(["Issus", "xodar", "Phaidor", "Nobody"])).values())
    found = await investigation.investigate("slave", 5, Scope(without_entities=known))
    assert texts_of(found) == (
        {"carter", "dejah thoris"},
        {"Carter defeated Xodar in the ship", "she married Carter"},
        {TEXTS[0], TEXTS[3]},
    )


async def test_any_recall_is_investigated_within_the_same_scope(store):
    graph, dense = EntityGraph(store, NAMES), Dense(store, EMBEDDER)
    investigation = RecallInvestigation(graph, EMBEDDER, dense, entities=1, relations=1)
    issus = frozenset([NAMES.entity("issus")])
    found = await investigation.investigate("slave", 5, Scope(entities=issus))
    assert list(found.passages) == await dense.retrieve("slave", 5, within=Scope(entities=issus))
    assert texts_of(found) == ({"issus"}, {"Issus degraded Xodar to a slave"}, set(TEXTS[1:3]))


async def test_a_recall_without_a_graph_knows_no_entity(store):
    investigation = RecallWithoutGraph(Dense(store, EMBEDDER))
    found = await investigation.investigate("slave", 2, Scope(documents=frozenset(("d3",))))
    assert texts_of(found) == (set(), set(), {TEXTS[3]})
    assert await investigation.find_named(["Issus"]) == {}
    assert await investigation.find_neighbours(["e-1"], 1) == frozenset()
