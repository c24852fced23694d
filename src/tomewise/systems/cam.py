"""Answers from schemata, overlapping clusters of passages and of their summaries: CAM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from tomewise.loops.once import Once
from tomewise.memory.graph.graph_layer import GraphLayer
from tomewise.memory.schemata.schemata_layer import SchemataLayer
from tomewise.memory.schemata.schemata_names import MOST_LEVELS, Clusters, SchemataRules
from tomewise.recall.schemata_nodes import GlobalSchemata, HierarchicalSchemata, PruneAndGrow, SchemataNodes
from tomewise.systems.kit import (
    Above0,
    Count,
    Kit,
    Multiplies,
    Positive,
    Share,
    System,
    SystemDeclaration,
)
from tomewise.types import Layer, Retriever

_ALL = 10**9  # nodes


def cam(
    kit: Kit,
    *,
    alpha: Annotated[Share, "share of the cosine in the score of two passages, equation 2"] = 0.7,
    sigma: Annotated[Above0, "passages within which the distance counts, equation 2"] = 1.0,
    k: Annotated[Positive, "other passages with which a passage is linked at most"] = 10,
    theta: Annotated[float, "score that two linked passages exceed, with clusters as published"] = 0.5,
    levels: Annotated[
        int, Field(ge=0, le=MOST_LEVELS), "levels of clusters at most; 0: links alone, no summaries"
    ] = MOST_LEVELS,
    clusters: Annotated[
        Clusters,
        "whether a passage may be in several clusters; as published: the clusters of the paper",
    ] = "overlapping",
    foundations: Annotated[
        Literal["passages", "passages and entities"],
        "with entities, passages that have the same rare entity are linked too",
    ] = "passages",
    retrieval: Annotated[
        Literal["prune and grow", "hierarchical", "global"], "how nodes are searched"
    ] = "prune and grow",
    seeds: Annotated[Positive, "nearest nodes from which a search begins"] = 5,
    selections: Annotated[
        Count, "times that a model selects nodes at most", Multiplies("calls of a question", most=50)
    ] = 5,
    fill: Annotated[
        Count,
        "nodes to which each selection is filled with the nearest ones; 0 for links and members alone",
        Multiplies("evidence", most=1000),
    ] = 0,
    limit: Annotated[Positive, "nodes of a global search", Multiplies("evidence", most=1000)] = 5,
) -> System:
    """The recipe of `cam`: `recall.schemata_nodes` over `memory.schemata`."""
    with_entities = foundations == "passages and entities"
    graph = GraphLayer(kit.store, kit.model, kit.embedder)
    entities = graph.names.entities if with_entities else ""
    rules = SchemataRules(
        alpha=alpha, sigma=sigma, k=k, theta=theta, entities=entities, clusters=clusters, levels=levels
    )
    schemata = SchemataLayer(kit.store, kit.model, kit.embedder, rules)
    nodes = SchemataNodes(kit.store, kit.embedder, schemata.names)
    retrievals: Mapping[str, Retriever] = {
        "prune and grow": PruneAndGrow(nodes, kit.model, kit.desk.show, seeds=seeds, rounds=selections, fill=fill),
        "hierarchical": HierarchicalSchemata(nodes, top_k=seeds),
        "global": GlobalSchemata(nodes),
    }
    layers: tuple[Layer, ...] = (graph, schemata) if with_entities else (schemata,)
    found, most = retrievals[retrieval], limit if retrieval == "global" else _ALL
    return System(loop=Once(found, kit.desk, limit=most, budget=None), retriever=found, layers=layers)


SYSTEMS = {
    "cam": SystemDeclaration(
        recipe=cam,
        kind="one search",
        summary=(
            "Group passages in overlapping clusters, of which only changed ones are summarised again; prune and grow "
            "along their links, then answer."
        ),
        paper="CAM, arXiv 2510.05520",
        deviations=(
            "the clusters are ours, so that passages come and go exactly: two passages are linked if each lists the "
            "other, labels raise an objective, clusters have 3 to 16 members, and nearly every passage is in one; "
            '`clusters="as published"` has the paper\'s. A summary has 150 tokens, the released code allows 1,024. '
            "All that was selected is shown, in that order, as much as the window holds; if nothing was, the seeds."
        ),
        ablations={
            "as published": {"clusters": "as published"},
            "links only": {"levels": 0},
            "without flexibility": {"clusters": "disjoint"},
            "with entities": {"foundations": "passages and entities"},
            "hierarchical retrieval": {"retrieval": "hierarchical"},
            "global retrieval": {"retrieval": "global"},
            "filled pools": {"fill": 50},
        },
    ),
}
