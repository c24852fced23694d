"""Answers from schemata, overlapping clusters of passages and of their summaries: CAM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from tomewise.memory.graph.graph_layer import GraphLayer
from tomewise.memory.schemata.schemata_layer import SchemataLayer
from tomewise.memory.schemata.schemata_names import MOST_LEVELS, Clusters, SchemataRules
from tomewise.recall.flat import Dense
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
    answer_once,
    with_settings_of,
)
from tomewise.types import Layer, Retriever


@with_settings_of(answer_once)
def cam(
    kit: Kit,
    *,
    alpha: Annotated[Share, "share of the cosine in the score of two passages, equation 2"] = 0.7,
    sigma: Annotated[Above0, "passages within which the distance counts, equation 2"] = 1.0,
    k: Annotated[Positive, "other passages with which a passage is linked at most"] = 10,
    theta: Annotated[
        float | None,
        "least score of two linked passages, as in the paper; without it, both must list the other",
    ] = None,
    levels: Annotated[
        int, Field(ge=0, le=MOST_LEVELS), "levels of clusters at most; 0: links alone, no summaries"
    ] = MOST_LEVELS,
    clusters: Annotated[
        Clusters,
        "whether a passage may be in several clusters; shuffled: in any, which is a control",
    ] = "overlapping",
    renew: Annotated[
        Share, "changed share of the passages below from which a summary of summaries is made again"
    ] = 0.1,
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
    **answering: Any,
) -> System:
    """The recipe of `cam`: `recall.schemata_nodes` over `memory.schemata`."""
    with_entities = foundations == "passages and entities"
    graph = GraphLayer(kit.store, kit.model, kit.embedder)
    entities = graph.names.entities if with_entities else ""
    rules = SchemataRules(
        alpha=alpha, sigma=sigma, k=k, theta=theta, entities=entities, clusters=clusters, levels=levels, renew=renew
    )
    schemata = SchemataLayer(kit.store, kit.model, kit.embedder, rules)
    nodes = SchemataNodes(kit.store, kit.embedder, schemata.names)
    retrievals: Mapping[str, Retriever] = {
        "prune and grow": PruneAndGrow(
            nodes, kit.model, Dense(kit.store, kit.embedder), kit.desk.show, seeds=seeds, rounds=selections
        ),
        "hierarchical": HierarchicalSchemata(nodes, top_k=seeds),
        "global": GlobalSchemata(nodes),
    }
    layers: tuple[Layer, ...] = (graph, schemata) if with_entities else (schemata,)
    return answer_once(kit, retrievals[retrieval], layers, **answering)


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
            "two passages are linked if each lists the other, without a threshold; labels raise an objective instead "
            "of following majorities; clusters have 3 to 16 members, and nearly every passage is in one; a summary of "
            "summaries is kept while little below it has changed; a pool holds at most 4,000 tokens, and no node is "
            "offered twice; the nearest passages fill the context."
        ),
        ablations={
            "links only": {"levels": 0},
            "without hierarchy": {"levels": 1},
            "without flexibility": {"clusters": "disjoint"},
            "shuffled clusters": {"clusters": "shuffled"},
            "links as published": {"theta": 0.5},
            "with entities": {"foundations": "passages and entities"},
            "hierarchical retrieval": {"retrieval": "hierarchical"},
            "global retrieval": {"retrieval": "global"},
        },
    ),
}
