"""Answers from a tree that grows as passages come: MemTree."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tomewise.loops.fusing import DEPTH
from tomewise.memory.growing_tree.memtree_layer import MemTreeLayer
from tomewise.memory.growing_tree.memtree_names import MemTreeRules
from tomewise.recall.derived import CollapsedTree
from tomewise.systems.declaration import SystemDeclaration
from tomewise.systems.kit import CONTEXT, Context, Kit, Limit, Selection, System, answer_once


def memtree(
    kit: Kit,
    *,
    batch: Annotated[
        int,
        Field(ge=1, le=1000),
        "passages that are placed together, so that nodes are written once for them",
    ] = 64,
    depth_scale: Annotated[
        float, Field(ge=1, le=30), "divides the depth in the threshold; 15 makes a tree of many levels"
    ] = 1.0,
    aggregation: Annotated[
        bool, "whether a model writes the nodes; else they have the beginning of the texts below"
    ] = True,
    selection: Selection = "fused",
    limit: Limit = DEPTH,
    context: Context = CONTEXT,
) -> System:
    """The recipe of `memtree`: `recall.derived` over `memory.growing_tree`."""
    rules = MemTreeRules(depth_scale=depth_scale, batch=batch, aggregation=aggregation)
    tree = MemTreeLayer(kit.store, kit.model, kit.embedder, rules)
    return answer_once(kit, CollapsedTree(kit.store, kit.embedder, tree), limit, context, (tree,), selection)


SYSTEMS = {
    "memtree": SystemDeclaration(
        recipe=memtree,
        kind="one search",
        summary=(
            "Let a tree of summaries grow as passages come, and retrieve from all of its nodes and passages at once, "
            "then answer."
        ),
        paper="MemTree, arXiv 2410.14052",
        deviations=(
            "passages come in batches of 64, so that a node is written once for all that come below it; passages are "
            "always leaves; a removed document leaves the tree, which the paper does not describe; all nodes are "
            "ranked, without a threshold of their cosine."
        ),
        ablations={"batches of one": {"batch": 1}, "without aggregation": {"aggregation": False}},
    ),
}
