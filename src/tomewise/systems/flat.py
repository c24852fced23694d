"""Answers from passages alone: found by meaning, by meaning and words, or all that fit the model's window."""

from __future__ import annotations

from collections.abc import Mapping

from tomewise.recall.flat import Dense, Everything, Fused, Lexical
from tomewise.systems.kit import CONTEXT, Count, Kit, Recipe, System, answer_once
from tomewise.types import Retriever

_UNLIMITED = 10**9  # passages


def naive(kit: Kit, *, neighbours: Count = 0, limit: Count = 20, context: Count = CONTEXT) -> System:
    """Retrieve the passages nearest to the question, then answer.

    `neighbours` passages before and after each are shown as well.
    """
    return answer_once(kit, Dense(kit.store, kit.embedder), limit, context, neighbours=neighbours)


def hybrid(kit: Kit, *, neighbours: Count = 0, limit: Count = 20, context: Count = CONTEXT) -> System:
    """Retrieve by meaning and by words, fuse both rankings, then answer.

    `neighbours` passages before and after each are shown as well.
    """
    return answer_once(kit, hybrid_recall(kit), limit, context, neighbours=neighbours)


def full_context(kit: Kit) -> System:
    """Show the documents from the beginning, as much as the model's window holds, then answer."""
    return answer_once(kit, Everything(kit.store), _UNLIMITED, None)


def hybrid_recall(kit: Kit) -> Retriever:
    """Recall by meaning and by words, both rankings fused."""
    return Fused([Dense(kit.store, kit.embedder), Lexical(kit.store)])


RECIPES: Mapping[str, Recipe] = {
    "naive": naive,
    "hybrid": hybrid,
    "full_context": full_context,
}
