"""Answers from a working memory that is a hypergraph: HGMem, and its loop around the recall of other systems."""

from __future__ import annotations

from typing import Annotated, Any

from tomewise.loops.evolve import Evolve, Regions
from tomewise.memory.graph.graph_layer import GraphLayer
from tomewise.memory.graph.graph_names import find_graph
from tomewise.recall.entity_graph import EntityGraph, Investigation
from tomewise.recall.flat import Dense
from tomewise.systems.kit import (
    CONTEXT,
    READING,
    Context,
    Count,
    Gleanings,
    Kit,
    Limit,
    Multiplies,
    Positive,
    Reading,
    Recall,
    System,
    SystemDeclaration,
    find_recall,
    with_settings_of,
)


def evolve(
    kit: Kit,
    recall: Recall | System,
    *,
    entities: Annotated[Count, "entities that a subquery finds (n_v)", Multiplies("evidence", most=1000)] = 5,
    relations: Annotated[
        Count, "relations of these entities that a subquery finds (n_e)", Multiplies("evidence", most=1000)
    ] = 5,
    rounds: Annotated[Positive, "rounds of searches at most", Multiplies("calls of a question", most=20)] = 4,
    subqueries: Annotated[Positive, "subqueries of a round at most", Multiplies("calls of a question", most=20)] = 3,
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
    reading: Reading = READING,
    context: Context = CONTEXT,
) -> System:
    """HGMem's loop over the graph among the layers of a recall, if there is one, and the passages that it finds."""
    found = find_recall("this System", recall)
    names = find_graph(found.layers)
    graph = EntityGraph(kit.store, names) if names else None
    investigation = Investigation(graph, kit.embedder, found.retriever, entities=entities, relations=relations)
    loop = Evolve(
        investigation=investigation,
        passages=Dense(kit.store, kit.embedder),
        desk=kit.desk,
        embedder=kit.embedder,
        rounds=rounds,
        subqueries=subqueries,
        regions=places,
        may_stop=not goes_on,
        limit=limit,
        hops=hops,
        updates=updates,
        merges=merges,
        replaces_entities=replaces_vertices,
        keeps_merged=keeps_merged,
        reading=reading,
        context=context,
    )
    return System(loop=loop, retriever=investigation, layers=found.layers)


@with_settings_of(evolve)
def hgmem(kit: Kit, *, gleanings: Gleanings = 0, **settings: Any) -> System:
    """The recipe of `hgmem`, section 3: `loops.evolve` over a `memory.graph` of relations and all passages."""
    layer = GraphLayer(kit.store, kit.model, kit.embedder, style="relations", gleanings=gleanings)
    return evolve(kit, Recall(retriever=Dense(kit.store, kit.embedder), layers=(layer,)), **settings)


_PAPER = "HGMem, arXiv 2512.23959"
_OF_LOOP = (
    "an entity is as near to a query as the nearest of its mentions, of which three are shown, and each statement of "
    "a relation is one of its own; one call plans and gives the subqueries, so that a round may mix local and global "
    "ones; entities that the graph does not know belong to the working memory alone; a point of one entity is "
    "accepted; points that were merged leave; a round that finds no new passage changes and merges nothing; points "
    "have half of `context` at most, and passages, which the paper does not bound, the rest: first what the nearest "
    "point names as evidence, then one ranking of what all points name and what is nearest to the question among the "
    "passages of their entities; the answer has 768 tokens at most, not 2,048, and one to three sentences where it "
    "explains; it may be declined."
)
SYSTEMS = {
    "hgmem": SystemDeclaration(
        recipe=hgmem,
        kind="loop",
        summary="Gather what a question needs as points over the entities of a graph, until they suffice; then answer.",
        paper=_PAPER,
        about=(
            "Each subquery finds entities (n_v), their relations (n_e) and `limit` of their passages (n_d). The answer "
            "sees all points, and the passages of their entities."
        ),
        deviations=(
            "the passages are those of the tome, not 200 tokens with 50 shared; extraction sees up to three sentences "
            f"before its passage; {_OF_LOOP}"
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
    "evolve": SystemDeclaration(
        recipe=evolve,
        kind="loop",
        summary="HGMem's loop.",
        paper=_PAPER,
        deviations=(
            "passages are those that the recall finds; without a graph among its layers all searches are global; as in "
            f"`hgmem`, {_OF_LOOP}"
        ),
    ),
}
