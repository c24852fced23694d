"""Answers from passages alone: found by meaning, by meaning and words, or all that fit the model's window."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from tomewise.recall.comparing import ComparedRecall
from tomewise.recall.flat import Dense, Everything, Fused, Lexical
from tomewise.recall.leads import TitleLeads
from tomewise.recall.rewriting import Rewriter, Rewriting
from tomewise.recall.summed import Summed
from tomewise.systems.kit import CONTEXT, Above0, Count, Kit, Recipe, System, Weight, answer_once
from tomewise.types import Retriever

_UNLIMITED = 10**9  # passages
Fusion: TypeAlias = Literal["scores", "ranks"]
Comparisons: TypeAlias = Literal["apart", "whole"]


def naive(kit: Kit, *, neighbours: Count = 0, limit: Count = 20, context: Count = CONTEXT) -> System:
    """Retrieve the passages nearest to the question, then answer.

    `neighbours` passages before and after each are shown as well.
    """
    return answer_once(kit, Dense(kit.store, kit.embedder), limit, context, neighbours=neighbours)


def hybrid(
    kit: Kit,
    *,
    fusion: Fusion = "scores",
    words: Weight = 0.2,
    rewriting: Weight = 0.8,
    rewritten: Count = 2,
    names: Count = 8,
    temperature: Above0 = 0.05,
    drop: Weight = 0.02,
    comparisons: Comparisons = "apart",
    neighbours: Count = 0,
    limit: Count = 20,
    context: Count = CONTEXT,
) -> System:
    """Retrieve by meaning and by words, and by the question with names from the first passages in it, then answer.

    Ours: `recall.summed` adds up cosine and BM25 (`words` is the weight of the latter). `recall.rewriting` asks a
    question of several steps again with `names` names of each of the first `rewritten` passages that it names by their
    titles; `rewriting` is the weight of what these questions find. It calls no model. `fusion` "ranks" joins both
    rankings by reciprocal ranks instead, without rewriting. With `comparisons` "apart" each of the things that a
    question compares is also searched by itself (`recall.comparing`). `neighbours` passages before and after each hit
    are shown as well.
    """
    rewriter = make_rewriter(kit, rewriting, rewritten, names, temperature, drop)
    summed = Summed(kit.store, kit.embedder, TitleLeads(), rewriter, words=words)
    ranked = Fused([Dense(kit.store, kit.embedder), Lexical(kit.store)])
    recalls: Mapping[Fusion, Retriever] = {"scores": summed, "ranks": ranked}
    recall = compare(recalls[fusion], comparisons)
    return answer_once(kit, recall, limit, context, neighbours=neighbours)


def full_context(kit: Kit) -> System:
    """Show the documents from the beginning, as much as the model's window holds, then answer."""
    return answer_once(kit, Everything(kit.store), _UNLIMITED, None)


def compare(retriever: Retriever, comparisons: Comparisons) -> Retriever:
    """The retriever, with a search for each of the things that a question compares, or as it is."""
    forms: Mapping[Comparisons, Retriever] = {"apart": ComparedRecall(retriever), "whole": retriever}
    return forms[comparisons]


def make_rewriter(kit: Kit, weight: float, passages: int, names: int, temperature: float, drop: float) -> Rewriter:
    """What asks a question again; it asks nothing if `weight` is 0."""
    rewriting = Rewriting(weight=weight, passages=passages, names=names, temperature=temperature, drop=drop)
    return Rewriter(kit.store, kit.embedder, rewriting)


RECIPES: Mapping[str, Recipe] = {
    "naive": naive,
    "hybrid": hybrid,
    "full_context": full_context,
}

ABLATIONS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "hybrid": {
        "without rewriting": {"rewriting": 0.0},
        "without comparisons": {"comparisons": "whole"},
        "as before": {"fusion": "ranks", "comparisons": "whole"},
    },
}
