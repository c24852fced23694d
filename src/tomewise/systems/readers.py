"""Answers by steps of reasoning with searches in between (IRCoT, DeepRAG), and by looking up pages (ReadAgent)."""

from __future__ import annotations

from typing import Annotated

from tomewise.loops.interleave import COLLECTED, THOUGHTS, Interleave
from tomewise.loops.look_up import PAGES, LookUp, LookUpOrder
from tomewise.loops.stepwise import STEPS, Stepwise
from tomewise.memory.pages import WORDS, PagesLayer
from tomewise.recall.derived import DenseDerived
from tomewise.systems.kit import (
    CONTEXT,
    Context,
    Count,
    Kit,
    Limit,
    Multiplies,
    Positive,
    Recall,
    System,
    SystemDeclaration,
    find_recall,
)

_SEARCHED = 6  # pieces of evidence a search of `interleave`


def interleave(
    kit: Kit,
    recall: Recall | System,
    *,
    thoughts: Annotated[Count, "sentences of thought at most", Multiplies("calls of a question", most=50)] = THOUGHTS,
    collected: Annotated[
        Count, "pieces of evidence of all searches at most", Multiplies("evidence", most=1000)
    ] = COLLECTED,
    limit: Limit = _SEARCHED,
) -> System:
    """The loop of IRCoT: `loops.interleave`."""
    recall = find_recall("this System", recall)
    loop = Interleave(recall.retriever, kit.desk, limit=limit, thoughts=thoughts, collected=collected)
    return System(loop=loop, retriever=recall.retriever, layers=recall.layers)


def stepwise(
    kit: Kit,
    recall: Recall | System,
    *,
    steps: Annotated[Count, "smaller questions at most", Multiplies("calls of a question", most=50)] = STEPS,
    limit: Limit = 20,
    context: Context = CONTEXT,
) -> System:
    """The loop after DeepRAG: `loops.stepwise`."""
    recall = find_recall("this System", recall)
    loop = Stepwise(recall.retriever, kit.desk, limit=limit, budget=context, steps=steps)
    return System(loop=loop, retriever=recall.retriever, layers=recall.layers)


def read_agent(
    kit: Kit,
    *,
    words: Annotated[Positive, "words of a page at most"] = WORDS,
    pages: Annotated[Count, "pages that are looked up at most", Multiplies("evidence", most=200)] = PAGES,
    order: Annotated[LookUpOrder, "whether pages are looked up all at once, or one after another"] = "parallel",
) -> System:
    """The recipe of `read_agent`: `loops.look_up` over `memory.pages`."""
    layer = PagesLayer(kit.store, kit.model, kit.embedder, words=words)
    ranked = DenseDerived(kit.store, kit.embedder, layer)
    loop = LookUp(ranked, kit.desk, pages=pages, order=order)
    return System(loop=loop, retriever=ranked, layers=(layer,))


SYSTEMS = {
    "read_agent": SystemDeclaration(
        recipe=read_agent,
        kind="loop",
        summary="Remember the gist of every page, look up the pages that the question needs, then answer.",
        paper="ReadAgent, arXiv 2402.09727",
        deviations=(
            "pages pause at chapters, blank lines and ends of sentences, which needs no call; the paper asks a model. "
            "The words of a page are estimated. A gist call sees up to three sentences before its page too; a gist "
            "with almost no word of its page is asked for again. Gists that exceed a window are left out, those "
            "furthest from the question first."
        ),
        ablations={"sequential": {"order": "sequential"}, "without look-up": {"pages": 0}},
    ),
}

LOOPS = {
    "interleave": SystemDeclaration(
        recipe=interleave,
        kind="loop",
        summary=(
            "A sentence of thought, a search with it, and so on until a thought concludes; then the answer (IRCoT)."
        ),
        paper="IRCoT, ACL 2023",
        deviations=(
            "any recall can search, where the paper has BM25 (`bm25+interleave`); the prompts have no worked examples; "
            "the model may say beside a thought that it concludes. The loop also ends where a thought repeats an "
            "earlier one, or where the collection is full."
        ),
    ),
    "stepwise": SystemDeclaration(
        recipe=stepwise,
        kind="loop",
        summary=(
            "At each step a smaller question, answered from memory or by a search, until they suffice; then the answer."
        ),
        paper="after DeepRAG, arXiv 2502.01142, without its training",
        deviations=(
            "a prompt makes the two decisions of a step, for which the paper trains a model; the number of steps is "
            "bounded; the same smaller question twice ends the loop."
        ),
    ),
}
