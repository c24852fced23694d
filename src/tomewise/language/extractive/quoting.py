"""Quote the sentences that are nearest to an answer, without giving one."""

from __future__ import annotations

from tomewise.language.extractive.nearest import find_nearest
from tomewise.language.extractive.words import flatten
from tomewise.language.fences import get_letter
from tomewise.language.roles import FAILURE, AnswerIn, AnswerOut, Quotable, Quote, QuoteIn, Shown
from tomewise.types import Embedder


def quote(given: AnswerIn, embedder: Embedder) -> AnswerOut:
    """Whole sentences as answer and as quotations, best first; where it declines, as quotations alone.

    Of a question with options, the first sentence is that on which the chosen option rests. Evidence that is no
    `QuoteIn` counts as passages in their order.
    """
    passages = given.passages if isinstance(given, QuoteIn) else list(map(_read_shown, given.evidence))
    rewrites = given.rewrites if isinstance(given, QuoteIn) else ()
    nearest = find_nearest(given.question, given.options, passages, rewrites, embedder)
    quotes = [Quote(label=each.label, quote=each.text) for each in nearest.sentences]
    if not quotes or (nearest.lack and given.may_decline):
        return AnswerOut(answer=FAILURE, supported="none", quotes=quotes, missing=nearest.lack)
    return AnswerOut(
        answer="\n".join(flatten(each.text) for each in nearest.sentences),
        choice=None if nearest.option is None else get_letter(nearest.option),
        quotes=quotes,
        supported="none" if nearest.lack else "partly",
    )


def _read_shown(shown: Shown) -> Quotable:
    return Quotable(label=shown.label, text=shown.text, title=shown.title, document=shown.document)
