"""Answers from a working memory that is a hypergraph: HGMem, and its loop around the recall of other systems."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tomewise.loops.evolve import Evolve, Limits
from tomewise.loops.exploring import Exploring
from tomewise.loops.planning import Planning, Regions
from tomewise.loops.point_editor import PointEditor
from tomewise.memory.graph.graph_layer import GraphLayer
from tomewise.memory.graph.graph_names import find_graph
from tomewise.recall.entity_graph import EntityGraph
from tomewise.recall.flat import Dense
from tomewise.recall.investigation import (
    GraphInvestigation,
    Investigation,
    RecallInvestigation,
    RecallWithoutGraph,
)
from tomewise.systems.comorag import with_query_cache
from tomewise.systems.kit import CONTEXT, Count, Kit, Recall, Recipe, System, find_recall


def hgmem(
    kit: Kit,
    *,
    rounds: Count = 4,
    subqueries: Count = 3,
    places: Regions = "either",
    updates: bool = True,
    merges: bool = True,
    hops: Count = 1,
    replaces_vertices: bool = False,
    keeps_merged: bool = False,
    entities: Count = 5,
    relations: Count = 5,
    limit: Count = 5,
    context: Count = CONTEXT,
) -> System:
    """Gather what a question needs as points over the entities of a graph, until they suffice; then answer.

    HGMem, section 3: `loops.evolve` over a `memory.graph` of relations. Each subquery finds `entities` entities (n_v),
    `relations` of their relations (n_e) and `limit` of their passages (n_d), and `limit` passages from anywhere. A
    search is local or global, as the plan says, or always the one that `places` names. With `hops=2` the neighbourhood
    of a point is that of the released code; with `replaces_vertices` an update changes the entities of a point too;
    with `keeps_merged` points that were merged stay.

    Deviations: one call plans and gives the subqueries, and global searches leave out what is known, as in the paper
    but not in the released code. Entities that the graph does not know belong to the working memory alone.
    """
    kit = with_query_cache(kit)
    desk = kit.desk
    layer = GraphLayer(kit.store, kit.model, kit.embedder, style="relations")
    dense = Dense(kit.store, kit.embedder)
    graph = EntityGraph(kit.store, layer.names)
    investigation = GraphInvestigation(graph, kit.embedder, dense, entities=entities, relations=relations)
    editor = PointEditor(
        investigation,
        desk,
        updates=updates,
        merges=merges,
        replaces_vertices=replaces_vertices,
        keeps_merged=keeps_merged,
    )
    loop = Evolve(
        dense,
        desk,
        Planning(kit.model, limit=subqueries, places=places),
        Exploring(investigation, dense, limit=limit, hops=hops),
        editor,
        Limits(rounds=rounds, context=context),
    )
    return System(loop=loop, retriever=investigation, layers=(layer,))


def evolve(
    kit: Kit,
    recall: Recall | System,
    *,
    rounds: Count = 4,
    subqueries: Count = 3,
    places: Regions = "either",
    limit: Count = 5,
    context: Count = CONTEXT,
) -> System:
    """HGMem's loop."""
    found, desk = find_recall("this System", recall), kit.desk
    retriever = found.retriever
    investigation: Investigation = RecallWithoutGraph(retriever)
    if graph := find_graph(found.layers):
        investigation = RecallInvestigation(EntityGraph(kit.store, graph), kit.embedder, retriever)
    loop = Evolve(
        retriever,
        desk,
        Planning(kit.model, limit=subqueries, places=places),
        Exploring(investigation, retriever, limit=limit),
        PointEditor(investigation, desk),
        Limits(rounds=rounds, context=context),
    )
    return System(loop=loop, retriever=retriever, layers=found.layers)


RECIPES: Mapping[str, Recipe] = {
    "hgmem": hgmem,
}

# Named variations of a recipe: the rows of the paper's ablation table, then what the released code does differently.
ABLATIONS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "hgmem": {
        "global only": {"places": "global"},
        "local only": {"places": "local"},
        "without update": {"updates": False},
        "without merging": {"merges": False},
        "two-hop neighbourhood": {"hops": 2},
        "update replaces vertices": {"replaces_vertices": True},
        "merged points stay": {"keeps_merged": True},
    },
}
