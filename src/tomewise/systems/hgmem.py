"""Answers from a working memory that is a hypergraph: HGMem, and its loop around the recall of other systems."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Field

from tomewise.loops.evolve import Evolve, Limits
from tomewise.loops.exploring import Exploring
from tomewise.loops.planning import Planning, Regions
from tomewise.loops.point_editor import PointEditor
from tomewise.memory.graph.graph_layer import GraphLayer
from tomewise.memory.graph.graph_names import find_graph
from tomewise.recall.entity_graph import (
    EntityGraph,
    GraphInvestigation,
    Investigation,
)
from tomewise.recall.flat import Dense
from tomewise.systems.declaration import SystemDeclaration
from tomewise.systems.kit import (
    CONTEXT,
    Context,
    Count,
    Gleanings,
    Kit,
    Limit,
    Multiplies,
    Recall,
    Selection,
    System,
    find_recall,
)

Rounds: TypeAlias = Annotated[
    Count, Field(description="rounds of searches at most"), Multiplies("calls of a question", most=20)
]
Subqueries: TypeAlias = Annotated[
    Count, Field(description="subqueries of a round at most"), Multiplies("calls of a question", most=20)
]
SearchRegions: TypeAlias = Annotated[
    Regions, Field(description="where searches go: near the points, anywhere, or as the plan says")
]
Updates: TypeAlias = Annotated[bool, Field(description="whether points are changed by new evidence")]
Merges: TypeAlias = Annotated[bool, Field(description="whether points are merged")]
Hops: TypeAlias = Annotated[
    Count,
    Field(description="steps in the graph that are near to a point; 2 is the neighbourhood of the released code"),
    Multiplies("evidence", most=20),
]
Replacing: TypeAlias = Annotated[bool, Field(description="whether an update changes the entities of a point")]
Keeping: TypeAlias = Annotated[bool, Field(description="whether points that were merged stay")]
Entities: TypeAlias = Annotated[
    Count, Field(description="entities that a subquery finds (n_v)"), Multiplies("evidence", most=1000)
]
Relations: TypeAlias = Annotated[
    Count,
    Field(description="relations of these entities that a subquery finds (n_e)"),
    Multiplies("evidence", most=1000),
]
GoingOn: TypeAlias = Annotated[bool, Field(description="whether rounds go on although the points suffice")]


def hgmem(
    kit: Kit,
    *,
    rounds: Rounds = 4,
    subqueries: Subqueries = 3,
    places: SearchRegions = "either",
    updates: Updates = True,
    merges: Merges = True,
    hops: Hops = 1,
    replaces_vertices: Replacing = False,
    keeps_merged: Keeping = False,
    goes_on: GoingOn = False,
    entities: Entities = 5,
    relations: Relations = 5,
    gleanings: Gleanings = 0,
    selection: Selection = "fused",
    limit: Limit = 5,
    context: Context = CONTEXT,
) -> System:
    """The recipe of `hgmem`, section 3: `loops.evolve` over a `memory.graph` of relations."""
    desk = kit.make_desk(selection)
    layer = GraphLayer(kit.store, kit.model, kit.embedder, style="relations", gleanings=gleanings)
    dense = Dense(kit.store, kit.embedder)
    graph = EntityGraph(kit.store, layer.names)
    investigation = GraphInvestigation(graph, kit.embedder, dense, entities=entities, relations=relations)
    loop = Evolve(
        dense,
        desk,
        kit.embedder,
        Planning(kit.model, limit=subqueries, places=places, may_stop=not goes_on),
        Exploring(investigation, dense, limit=limit, hops=hops),
        PointEditor(
            investigation,
            desk,
            updates=updates,
            merges=merges,
            replaces_vertices=replaces_vertices,
            keeps_merged=keeps_merged,
        ),
        Limits(rounds=rounds, goes_on=goes_on, context=context),
    )
    return System(loop=loop, retriever=investigation, layers=(layer,))


def evolve(
    kit: Kit,
    recall: Recall | System,
    *,
    rounds: Rounds = 4,
    subqueries: Subqueries = 3,
    places: SearchRegions = "either",
    updates: Updates = True,
    merges: Merges = True,
    hops: Hops = 1,
    replaces_vertices: Replacing = False,
    keeps_merged: Keeping = False,
    goes_on: GoingOn = False,
    entities: Entities = 5,
    relations: Relations = 5,
    selection: Selection = "fused",
    limit: Limit = 5,
    context: Context = CONTEXT,
) -> System:
    """HGMem's loop."""
    found, desk = find_recall("this System", recall), kit.make_desk(selection)
    retriever = found.retriever
    names = find_graph(found.layers)
    graph = EntityGraph(kit.store, names) if names else None
    investigation = Investigation(graph, kit.embedder, retriever, entities=entities, relations=relations)
    loop = Evolve(
        retriever,
        desk,
        kit.embedder,
        Planning(kit.model, limit=subqueries, places=places, may_stop=not goes_on),
        Exploring(investigation, retriever, limit=limit, hops=hops),
        PointEditor(
            investigation,
            desk,
            updates=updates,
            merges=merges,
            replaces_vertices=replaces_vertices,
            keeps_merged=keeps_merged,
        ),
        Limits(rounds=rounds, goes_on=goes_on, context=context),
    )
    return System(loop=loop, retriever=retriever, layers=found.layers)


SYSTEMS = {
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
            "go on although sufficient": {"goes_on": True},
        },
    ),
}

LOOPS = {
    "evolve": SystemDeclaration(recipe=evolve, kind="loop", summary="HGMem's loop.", paper="HGMem, arXiv 2512.23959"),
}
