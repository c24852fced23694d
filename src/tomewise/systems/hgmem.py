"""Answers from a working memory that is a hypergraph: HGMem, and its loop around the recall of other systems."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from tomewise.loops.evolve import Evolve, Limits
from tomewise.loops.exploring import Exploring, Planning, Regions
from tomewise.loops.point_editor import PointEditor
from tomewise.memory.graph.graph_layer import GraphLayer
from tomewise.memory.graph.graph_names import find_graph
from tomewise.recall.entity_graph import (
    EntityGraph,
    GraphInvestigation,
    Investigation,
)
from tomewise.recall.flat import Dense
from tomewise.systems.kit import (
    CONTEXT,
    Context,
    Count,
    Gleanings,
    Kit,
    Limit,
    Multiplies,
    Recall,
    System,
    SystemDeclaration,
    find_recall,
    with_settings_of,
)
from tomewise.types import Retriever

Entities: TypeAlias = Annotated[Count, "entities that a subquery finds (n_v)", Multiplies("evidence", most=1000)]
Relations: TypeAlias = Annotated[
    Count,
    "relations of these entities that a subquery finds (n_e)",
    Multiplies("evidence", most=1000),
]


def make_loop(
    kit: Kit,
    retriever: Retriever,
    investigation: Investigation,
    *,
    rounds: Annotated[Count, "rounds of searches at most", Multiplies("calls of a question", most=20)] = 4,
    subqueries: Annotated[Count, "subqueries of a round at most", Multiplies("calls of a question", most=20)] = 3,
    places: Annotated[Regions, "where searches go: near the points, anywhere, or as the plan says"] = "either",
    updates: Annotated[bool, "whether points are changed by new evidence"] = True,
    merges: Annotated[bool, "whether points are merged"] = True,
    hops: Annotated[
        Count,
        "steps in the graph that are near to a point; 2 is the neighbourhood of the released code",
        Multiplies("evidence", most=20),
    ] = 1,
    replaces_vertices: Annotated[bool, "whether an update changes the entities of a point"] = False,
    keeps_merged: Annotated[bool, "whether points that were merged stay"] = False,
    goes_on: Annotated[bool, "whether rounds go on although the points suffice"] = False,
    limit: Limit = 5,
    context: Context = CONTEXT,
) -> Evolve:
    """HGMem's loop, whose settings `hgmem` and `evolve` have."""
    desk = kit.desk
    return Evolve(
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


@with_settings_of(make_loop)
def hgmem(
    kit: Kit, *, entities: Entities = 5, relations: Relations = 5, gleanings: Gleanings = 0, **settings: Any
) -> System:
    """The recipe of `hgmem`, section 3: `loops.evolve` over a `memory.graph` of relations."""
    layer = GraphLayer(kit.store, kit.model, kit.embedder, style="relations", gleanings=gleanings)
    dense = Dense(kit.store, kit.embedder)
    graph = EntityGraph(kit.store, layer.names)
    investigation = GraphInvestigation(graph, kit.embedder, dense, entities=entities, relations=relations)
    loop = make_loop(kit, dense, investigation, **settings)
    return System(loop=loop, retriever=investigation, layers=(layer,))


@with_settings_of(make_loop)
def evolve(
    kit: Kit, recall: Recall | System, *, entities: Entities = 5, relations: Relations = 5, **settings: Any
) -> System:
    """HGMem's loop."""
    found = find_recall("this System", recall)
    names = find_graph(found.layers)
    graph = EntityGraph(kit.store, names) if names else None
    investigation = Investigation(graph, kit.embedder, found.retriever, entities=entities, relations=relations)
    loop = make_loop(kit, found.retriever, investigation, **settings)
    return System(loop=loop, retriever=found.retriever, layers=found.layers)


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
