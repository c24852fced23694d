"""Answers from a tree of summaries: RAPTOR."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from tomewise.memory.tree.tree_layer import TreeLayer
from tomewise.recall.tree_search import CollapsedTree, TreeTraversal
from tomewise.systems.kit import CONTEXT, Count, Kit, Recipe, System, answer_once
from tomewise.types import Retriever


def raptor(
    kit: Kit, *, search: Literal["collapsed", "traversal"] = "collapsed", limit: Count = 20, context: Count = CONTEXT
) -> System:
    """Retrieve passages and the summaries above them from one tree, then answer.

    RAPTOR (arXiv 2401.18059): `recall.tree_search` over `memory.tree`. The search is over all nodes of the tree at once
    (collapsed) or level by level from its top (traversal).
    """
    tree = TreeLayer(kit.store, kit.model, kit.embedder)
    searches: Mapping[str, Retriever] = {
        "collapsed": CollapsedTree(kit.store, kit.embedder),
        "traversal": TreeTraversal(kit.store, kit.embedder),
    }
    return answer_once(kit, searches[search], limit, context, (tree,))


RECIPES: Mapping[str, Recipe] = {
    "raptor": raptor,
}

# Named variations of a recipe: the rows of the papers' ablation tables.
ABLATIONS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "raptor": {"traversal": {"search": "traversal"}},
}
