"""Answers from schemata that grow batch by batch: CAM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from tomewise.memory.graph.graph_layer import GraphLayer
from tomewise.memory.schemata.network import LinkRules
from tomewise.memory.schemata.schemata_layer import SchemataLayer
from tomewise.recall.prune_and_grow import PruneAndGrow
from tomewise.recall.schemata_nodes import SchemataNodes
from tomewise.recall.schemata_search import GlobalSchemata, HierarchicalSchemata
from tomewise.systems.declaration import SystemDeclaration
from tomewise.systems.kit import (
    CONTEXT,
    Above0,
    Context,
    Count,
    Kit,
    Limit,
    Multiplies,
    Positive,
    Share,
    System,
    answer_once,
)
from tomewise.types import Layer, Retriever


def cam(
    kit: Kit,
    *,
    alpha: Annotated[Share, Field(description="share of the cosine in the score of two passages, equation 2")] = 0.7,
    sigma: Annotated[Above0, Field(description="passages within which the distance counts, equation 2")] = 1.0,
    k: Annotated[Positive, Field(description="other passages with which a passage is linked at most")] = 10,
    theta: Annotated[
        float | None,
        Field(
            description="least score of two linked passages; without it, the passages set it so that 9 of 10 are linked"
        ),
    ] = None,
    levels: Annotated[Literal["all", "links"], Field(description="links: there are no summaries")] = "all",
    clusters: Annotated[
        Literal["overlapping", "disjoint"], Field(description="whether a passage may be in several clusters")
    ] = "overlapping",
    foundations: Annotated[
        Literal["passages", "passages and entities"],
        Field(description="with entities, passages that have the same rare entity are linked too"),
    ] = "passages",
    retrieval: Annotated[
        Literal["prune and grow", "hierarchical", "global"], Field(description="how nodes are searched")
    ] = "prune and grow",
    seeds: Annotated[Positive, Field(description="nearest nodes from which a search begins")] = 5,
    selections: Annotated[
        Count, Field(description="times that a model selects nodes at most"), Multiplies("calls of a question", most=50)
    ] = 5,
    limit: Limit = 20,
    context: Context = CONTEXT,
) -> System:
    """The recipe of `cam`: `recall.prune_and_grow` over `memory.schemata`."""
    rules = LinkRules(alpha=alpha, sigma=sigma, k=k, theta=theta)
    with_entities = foundations == "passages and entities"
    graph = GraphLayer(kit.store, kit.model, kit.embedder)
    schemata = SchemataLayer(
        kit.store,
        kit.model,
        kit.embedder,
        rules=rules,
        split=clusters == "overlapping",
        hierarchy=levels == "all",
        entities=graph.names.entities if with_entities else "",
    )
    nodes = SchemataNodes(kit.store, kit.embedder, schemata.names)
    retrievals: Mapping[str, Retriever] = {
        "prune and grow": PruneAndGrow(nodes, kit.model, seeds=seeds, rounds=selections),
        "hierarchical": HierarchicalSchemata(nodes, top_k=seeds),
        "global": GlobalSchemata(nodes),
    }
    layers: tuple[Layer, ...] = (graph, schemata) if with_entities else (schemata,)
    return answer_once(kit, retrievals[retrieval], limit, context, layers)


SYSTEMS: Mapping[str, SystemDeclaration] = {
    "cam": SystemDeclaration(
        recipe=cam,
        kind="one search",
        summary=(
            "Group passages in overlapping clusters that grow with every batch; prune and grow along their links, then "
            "answer."
        ),
        paper="CAM, arXiv 2510.05520",
        about="Where no `theta` is given, it is set again when there are 4 times as many passages.",
        deviations=(
            "across documents the score is the cosine alone; `theta` is set from the passages, not by hand; two linked "
            "passages without a common neighbour, each in a triangle, make no cluster; a pool holds at most 4,000 "
            "tokens, and no node is offered twice; a large cluster is summarised in parts."
        ),
        ablations={
            "without hierarchy": {"levels": "links"},
            "without flexibility": {"clusters": "disjoint"},
            "with entities": {"foundations": "passages and entities"},
            "hierarchical retrieval": {"retrieval": "hierarchical"},
            "global retrieval": {"retrieval": "global"},
        },
    ),
}
