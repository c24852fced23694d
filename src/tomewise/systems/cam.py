"""Answers from schemata that grow batch by batch: CAM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from tomewise.memory.graph.graph_layer import GraphLayer
from tomewise.memory.schemata.network import LinkRules
from tomewise.memory.schemata.schemata_layer import SchemataLayer
from tomewise.recall.prune_and_grow import PruneAndGrow
from tomewise.recall.schemata_nodes import SchemataNodes
from tomewise.recall.schemata_search import GlobalSchemata, HierarchicalSchemata
from tomewise.systems.kit import CONTEXT, Count, Kit, Positive, Recipe, Share, System, answer_once
from tomewise.types import Layer, Retriever

Width: TypeAlias = Annotated[float, Field(gt=0)]
Retrieval: TypeAlias = Literal["prune and grow", "hierarchical", "global"]


def cam(
    kit: Kit,
    *,
    alpha: Share = 0.7,
    sigma: Width = 1.0,
    k: Positive = 10,
    theta: float | None = None,
    levels: Literal["all", "links"] = "all",
    clusters: Literal["overlapping", "disjoint"] = "overlapping",
    foundations: Literal["passages", "passages and entities"] = "passages",
    retrieval: Retrieval = "prune and grow",
    seeds: Positive = 5,
    selections: Count = 5,
    limit: Count = 20,
    context: Count = CONTEXT,
) -> System:
    """Group passages in overlapping clusters that grow with every batch; prune and grow along their links, then answer.

    CAM: `recall.prune_and_grow` over `memory.schemata`. A passage is linked with at most `k` others whose score
    (equation 2, with `alpha` and `sigma`) is at least `theta`. Without `theta`, the similarities of the passages set it
    so that 9 of 10 have a link, and set it again when there are 4 times as many. A model selects at most `selections`
    times. With `levels` "links" there are no summaries; with the foundations "passages and entities" passages that see
    the same rare entity are linked too.

    Deviations: across documents the score is the cosine alone; `theta` is set from the passages, not by hand; two
    linked passages without a common neighbour, each in a triangle, make no cluster; a pool holds at most 4,000 tokens,
    and no node is offered twice; a large cluster is summarised in parts.
    """
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


RECIPES: Mapping[str, Recipe] = {
    "cam": cam,
}

# Named variations of a recipe: the rows of the papers' ablation tables.
ABLATIONS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "cam": {
        "without hierarchy": {"levels": "links"},
        "without flexibility": {"clusters": "disjoint"},
        "with entities": {"foundations": "passages and entities"},
        "hierarchical retrieval": {"retrieval": "hierarchical"},
        "global retrieval": {"retrieval": "global"},
    },
}
