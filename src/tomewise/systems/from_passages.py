"""Answers from passages alone: found by meaning, by words, by both, or all that fit the model's window."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from tomewise.loops.at_once import AtOnce
from tomewise.loops.last_prompt import DEPTH
from tomewise.recall.flat import REWRITING, WORDS, Dense, Everything, Lexical, Summed
from tomewise.recall.placing import Placed
from tomewise.recall.rewriting import FindLeads, Rewriter, Rewriting, find_title_leads
from tomewise.recall.several_searches import ComparedRecall
from tomewise.systems.kit import (
    CONTEXT,
    OURS,
    Above0,
    Context,
    Count,
    Kit,
    Limit,
    System,
    SystemDeclaration,
    Weight,
    answer_once,
    once,
    with_settings_of,
)
from tomewise.types import Retriever

Comparisons: TypeAlias = Literal["apart", "whole"]
# Settings of the rewriting, which `associative` has as well.
Rewritten: TypeAlias = Annotated[Count, "first passages whose names go into questions"]
Names: TypeAlias = Annotated[Count, "names of one passage that go into questions"]
RewritingWeight: TypeAlias = Annotated[Weight, "weight of what the questions with these names find; 0: none is asked"]
Temperature: TypeAlias = Annotated[Above0, "difference of cosines at which a passage gets e times less of the weight"]
Drop: TypeAlias = Annotated[Weight, "taken off a cosine for each rank of the passage that gave the name"]
Comparing: TypeAlias = Annotated[
    Comparisons, "apart: each of the things that a question compares is searched by itself too"
]


@with_settings_of(answer_once)
def naive(kit: Kit, **answering: Any) -> System:
    """The recipe of `naive`."""
    return answer_once(kit, Dense(kit.store, kit.embedder), **answering)


@with_settings_of(answer_once)
def bm25(kit: Kit, **answering: Any) -> System:
    """The recipe of `bm25`."""
    return answer_once(kit, Lexical(kit.store), **answering)


def hybrid(
    kit: Kit,
    *,
    words: Annotated[Weight, "weight of BM25 beside the cosine"] = WORDS,
    rewriting: RewritingWeight = REWRITING.weight,
    rewritten: Rewritten = REWRITING.passages,
    names: Names = REWRITING.names,
    temperature: Temperature = REWRITING.temperature,
    drop: Drop = REWRITING.drop,
    comparisons: Comparing = "apart",
    limit: Limit = DEPTH,
    context: Context = CONTEXT,
) -> System:
    """The recipe of `hybrid`: `recall.flat` with `recall.rewriting`, in `several_searches` and `placing`."""
    rewriter = make_rewriter(kit, find_title_leads, rewriting, rewritten, names, temperature, drop)
    recall = compare(kit, Summed(kit.store, kit.embedder, rewriter, words=words), comparisons)
    return answer_once(kit, recall, (), kit.fusing_desk.alone, limit=limit, context=context)


def full_context(
    kit: Kit, *, cut: Annotated[bool, "whether a text that does not fit is shown from its beginning"] = False
) -> System:
    """The recipe of `full_context`: `loops.at_once`."""
    return System(loop=AtOnce(kit.desk, cut), retriever=Everything(kit.store))


def compare(kit: Kit, retriever: Retriever, comparisons: Comparisons) -> Retriever:
    """The retriever with bridges placed, and with a search for each of the things that a question compares, or not."""
    return Placed(kit.store, ComparedRecall(retriever) if comparisons == "apart" else retriever)


def make_rewriter(
    kit: Kit, find_leads: FindLeads, weight: float, passages: int, names: int, temperature: float, drop: float
) -> Rewriter:
    """What asks a question again; it asks nothing if `weight` is 0."""
    rewriting = Rewriting(weight=weight, passages=passages, names=names, temperature=temperature, drop=drop)
    return Rewriter(kit.store, kit.embedder, find_leads, rewriting)


SYSTEMS = {
    "naive": SystemDeclaration(
        recipe=naive,
        kind="one search",
        summary="Retrieve the passages nearest to the question, then answer.",
        paper=OURS,
    ),
    "bm25": SystemDeclaration(
        recipe=bm25,
        kind="one search",
        summary="Retrieve passages by their words alone, weighted by BM25, then answer.",
        paper="BM25, Robertson and Zaragoza 2009",
        deviations=(
            "words are stemmed; common words of English count only where a question has no others; title, headings and "
            "speaker are indexed beside the text."
        ),
    ),
    "hybrid": SystemDeclaration(
        recipe=hybrid,
        kind="one search",
        summary=(
            "Retrieve by meaning and by words, and by the question with names from the first passages in it, "
            "then answer."
        ),
        paper=OURS,
        about=(
            "Cosine and BM25 are added up. A question of several steps is asked again with names of each of the first "
            "passages that it names by their titles. What it names comes first, and then what that speaks of. It calls "
            "no model."
        ),
        ablations={"without rewriting": {"rewriting": 0.0}, "without comparisons": {"comparisons": "whole"}},
    ),
    "full_context": SystemDeclaration(
        recipe=full_context,
        kind="no search",
        summary="Show the whole text at once, in order, then answer; a text that the window does not hold is refused.",
        paper=OURS,
    ),
}

LOOPS = {
    "once": SystemDeclaration(
        recipe=once,
        kind="one search",
        summary="One answer from what was retrieved once.",
        paper=OURS,
    ),
}
