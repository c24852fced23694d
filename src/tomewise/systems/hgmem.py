"""Answers from a working memory that is a hypergraph: HGMem, and its loop around the recall of other systems."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, TypeAlias

from pydantic import Field

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
from tomewise.systems.declaration import SystemDeclaration
from tomewise.systems.kit import CONTEXT, Context, Count, Kit, Limit, Multiplies, Recall, System, find_recall

Rounds: TypeAlias = Annotated[
    Count, Field(description="rounds of searches at most"), Multiplies("calls of a question", most=20)
]
Subqueries: TypeAlias = Annotated[
    Count, Field(description="subqueries of a round at most"), Multiplies("calls of a question", most=20)
]
SearchRegions: TypeAlias = Annotated[
    Regions, Field(description="where searches go: near the points, anywhere, or as the plan says")
]


def hgmem(
    kit: Kit,
    *,
    rounds: Rounds = 4,
    subqueries: Subqueries = 3,
    places: SearchRegions = "either",
    updates: Annotated[bool, Field(description="whether points are changed by new evidence")] = True,
    merges: Annotated[bool, Field(description="whether points are merged")] = True,
    hops: Annotated[
        Count,
        Field(description="steps in the graph that are near to a point; 2 is the neighbourhood of the released code"),
        Multiplies("evidence", most=20),
    ] = 1,
    replaces_vertices: Annotated[bool, Field(description="whether an update changes the entities of a point")] = False,
    keeps_merged: Annotated[bool, Field(description="whether points that were merged stay")] = False,
    entities: Annotated[
        Count, Field(description="entities that a subquery finds (n_v)"), Multiplies("evidence", most=1000)
    ] = 5,
    relations: Annotated[
        Count,
        Field(description="relations of these entities that a subquery finds (n_e)"),
        Multiplies("evidence", most=1000),
    ] = 5,
    limit: Limit = 5,
    context: Context = CONTEXT,
) -> System:
    """The recipe of `hgmem`, section 3: `loops.evolve` over a `memory.graph` of relations."""
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
    rounds: Rounds = 4,
    subqueries: Subqueries = 3,
    places: SearchRegions = "either",
    limit: Limit = 5,
    context: Context = CONTEXT,
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


SYSTEMS: Mapping[str, SystemDeclaration] = {
    "hgmem": SystemDeclaration(
        recipe=hgmem,
        kind="loop",
        summary="Gather what a question needs as points over the entities of a graph, until they suffice; then answer.",
        paper="HGMem, arXiv 2512.23959",
        about=(
            "Each subquery finds entities (n_v), their relations (n_e), `limit` of their passages (n_d), and `limit` "
            "passages from anywhere."
        ),
        deviations=(
            "one call plans and gives the subqueries, and global searches leave out what is known, as in the paper but "
            "not in the released code. Entities that the graph does not know belong to the working memory alone."
        ),
        ablations={
            "global only": {"places": "global"},
            "local only": {"places": "local"},
            "without update": {"updates": False},
            "without merging": {"merges": False},
            "two-hop neighbourhood": {"hops": 2},
            "update replaces vertices": {"replaces_vertices": True},
            "merged points stay": {"keeps_merged": True},
        },
    ),
}

LOOPS: Mapping[str, SystemDeclaration] = {
    "evolve": SystemDeclaration(recipe=evolve, kind="loop", summary="HGMem's loop.", paper="HGMem, arXiv 2512.23959"),
}
