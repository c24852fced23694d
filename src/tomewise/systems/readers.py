"""Answers by steps of reasoning with searches in between (IRCoT, DeepRAG), and by looking up pages (ReadAgent)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tomewise.loops.interleave import COLLECTED, THOUGHTS, Interleave
from tomewise.loops.look_up import PAGES, LookUp, LookUpOrder
from tomewise.loops.stepwise import STEPS, Stepwise
from tomewise.memory.pages import WORDS, PagesLayer
from tomewise.recall.derived import DenseDerived
from tomewise.systems.kit import CONTEXT, Count, Kit, Positive, Recall, Recipe, System, find_recall

_SEARCHED = 6  # pieces of evidence a search of `interleave`


def interleave(
    kit: Kit,
    recall: Recall | System,
    *,
    thoughts: Count = THOUGHTS,
    collected: Count = COLLECTED,
    limit: Count = _SEARCHED,
    context: Count = CONTEXT,
) -> System:
    """A sentence of thought, a search with it, and so on until a thought concludes; then the answer (IRCoT).

    `loops.interleave`: Trivedi et al., ACL 2023. Each search adds up to `limit` pieces of evidence, `collected` in all.
    """
    recall = find_recall("this System", recall)
    loop = Interleave(
        recall.retriever,
        kit.desk,
        limit=limit,
        budget=context,
        thoughts=thoughts,
        collected=collected,
    )
    return System(loop=loop, retriever=recall.retriever, layers=recall.layers)


def stepwise(
    kit: Kit, recall: Recall | System, *, steps: Count = STEPS, limit: Count = 20, context: Count = CONTEXT
) -> System:
    """At each step a smaller question, answered from memory or by a search, until they suffice; then the answer.

    `loops.stepwise`: after DeepRAG (arXiv 2502.01142), without its training.
    """
    recall = find_recall("this System", recall)
    loop = Stepwise(recall.retriever, kit.desk, limit=limit, budget=context, steps=steps)
    return System(loop=loop, retriever=recall.retriever, layers=recall.layers)


def read_agent(
    kit: Kit,
    *,
    words: Positive = WORDS,
    pages: Count = PAGES,
    order: LookUpOrder = "parallel",
    context: Count = CONTEXT,
) -> System:
    """Remember the gist of every page, look up the pages that the question needs, then answer.

    ReadAgent (Lee et al., arXiv 2402.09727): `loops.look_up` over `memory.pages`. At most `pages` pages of at most
    `words` words are looked up, in parallel (all at once) or sequentially (one after another).

    Deviations: pages pause at chapters, blank lines and ends of sentences, which needs no call; the paper asks a model.
    What the answering role sees has the same budget as in every other system, so gists that are far from the question
    may be left out.
    """
    layer = PagesLayer(kit.store, kit.model, kit.embedder, words=words)
    ranked = DenseDerived(kit.store, kit.embedder, layer)
    loop = LookUp(ranked, kit.desk, budget=context, pages=pages, order=order)
    return System(loop=loop, retriever=ranked, layers=(layer,))


RECIPES: Mapping[str, Recipe] = {
    "read_agent": read_agent,
}

# Named variations of a recipe.
ABLATIONS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "read_agent": {"sequential": {"order": "sequential"}, "without look-up": {"pages": 0}},
}
