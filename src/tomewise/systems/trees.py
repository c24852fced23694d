"""Answers from a tree of summaries: RAPTOR, and MemTree, whose tree grows as passages come."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Literal

from pydantic import Field

from tomewise.loops.desk import Desk
from tomewise.loops.evidence import measure_pieces
from tomewise.loops.last_prompt import DEPTH
from tomewise.loops.once import Once
from tomewise.memory.growing_tree.memtree_layer import MemTreeLayer
from tomewise.memory.growing_tree.memtree_names import MemTreeRules
from tomewise.memory.tree.tree_layer import TreeLayer
from tomewise.recall.derived import CollapsedTree, TreeTraversal
from tomewise.recall.ranking import take_fitting
from tomewise.systems.kit import (
    Count,
    Kit,
    Limit,
    Multiplies,
    System,
    SystemDeclaration,
    answer_once,
    with_settings_of,
)

_RAPTOR_CONTEXT = 2000  # tokens of a collapsed tree


def raptor(
    kit: Kit,
    *,
    search: Annotated[
        Literal["collapsed", "traversal"],
        "over all nodes of the tree at once, or level by level from its top",
    ] = "collapsed",
    limit: Limit = DEPTH,
    context: Annotated[
        Count,
        "tokens of a collapsed tree that the answering role sees at most; a traversal shows all that it keeps",
        Multiplies("tokens of the answering call", most=1_000_000),
    ] = _RAPTOR_CONTEXT,
) -> System:
    """The recipe of `raptor`: `recall.derived` over `memory.tree`."""
    tree = TreeLayer(kit.store, kit.model, kit.embedder)
    if search == "traversal":
        traversal = TreeTraversal(kit.store, kit.embedder, tree)
        return System(loop=Once(traversal, kit.desk, limit=limit, budget=None), retriever=traversal, layers=(tree,))
    carry = partial(take_fitting, room=context, measure=partial(measure_pieces, count=kit.count_tokens))
    desk = Desk(kit.store, kit.model, kit.count_tokens, carry)
    return answer_once(kit, CollapsedTree(kit.store, kit.embedder, tree), (tree,), desk, limit=limit, context=context)


@with_settings_of(answer_once)
def memtree(
    kit: Kit,
    *,
    batch: Annotated[
        int,
        Field(ge=1, le=1000),
        "passages that are placed together, so that nodes are written once for them",
    ] = 1,
    depth_scale: Annotated[
        float, Field(ge=1, le=30), "divides the depth in the threshold; 15 makes a tree of many levels"
    ] = 1.0,
    aggregation: Annotated[
        bool, "whether a model writes the nodes; else they have the beginning of the texts below"
    ] = True,
    **answering: Any,
) -> System:
    """The recipe of `memtree`: `recall.derived` over `memory.growing_tree`."""
    rules = MemTreeRules(depth_scale=depth_scale, batch=batch, aggregation=aggregation)
    tree = MemTreeLayer(kit.store, kit.model, kit.embedder, rules)
    return answer_once(kit, CollapsedTree(kit.store, kit.embedder, tree), (tree,), **answering)


SYSTEMS = {
    "raptor": SystemDeclaration(
        recipe=raptor,
        kind="one search",
        summary="Retrieve passages and the summaries above them from one tree, then answer.",
        paper="RAPTOR, arXiv 2401.18059",
        deviations=(
            "random steps have fixed seeds; a text that no component takes goes to its likeliest one; the tree ends "
            "where the next level would not be smaller; without umap-learn, PCA reduces vectors; a summary aims at 100 "
            "tokens; titles are read beside the texts."
        ),
        ablations={"traversal": {"search": "traversal"}},
    ),
    "memtree": SystemDeclaration(
        recipe=memtree,
        kind="one search",
        summary=(
            "Let a tree of summaries grow as passages come, and retrieve from all of its nodes and passages at once, "
            "then answer."
        ),
        paper="MemTree, arXiv 2410.14052",
        deviations=(
            "passages are always leaves; a removed document leaves the tree, which the paper does not describe; all "
            "nodes are ranked, without a threshold of their cosine; a node has about 200 tokens at most."
        ),
        ablations={"without aggregation": {"aggregation": False}},
    ),
}
