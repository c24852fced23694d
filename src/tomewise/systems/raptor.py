"""Answers from a tree of summaries: RAPTOR."""

from __future__ import annotations

from typing import Annotated, Literal

from tomewise.loops.fusing import DEPTH
from tomewise.memory.tree.tree_layer import TreeLayer
from tomewise.recall.derived import CollapsedTree, TreeTraversal
from tomewise.systems.declaration import SystemDeclaration
from tomewise.systems.kit import CONTEXT, Context, Kit, Limit, Selection, System, answer_once


def raptor(
    kit: Kit,
    *,
    search: Annotated[
        Literal["collapsed", "traversal"],
        "over all nodes of the tree at once, or level by level from its top",
    ] = "collapsed",
    selection: Selection = "fused",
    limit: Limit = DEPTH,
    context: Context = CONTEXT,
) -> System:
    """The recipe of `raptor`: `recall.derived` over `memory.tree`."""
    tree = TreeLayer(kit.store, kit.model, kit.embedder)
    collapsed, traversal = CollapsedTree(kit.store, kit.embedder, tree), TreeTraversal(kit.store, kit.embedder)
    recall = collapsed if search == "collapsed" else traversal
    return answer_once(kit, recall, limit, context, (tree,), selection)


SYSTEMS = {
    "raptor": SystemDeclaration(
        recipe=raptor,
        kind="one search",
        summary="Retrieve passages and the summaries above them from one tree, then answer.",
        paper="RAPTOR, arXiv 2401.18059",
        ablations={"traversal": {"search": "traversal"}},
    ),
}
