"""Show sentences of passages in place of an answer, for a model that only quotes.

Such a model gets the best passages one by one, with the headings in them, beside what any model is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from tomewise.language.choose_model import EXTRACTIVE
from tomewise.language.forwarding import find_name
from tomewise.language.roles import ANSWER, AnswerIn, AnswerOut, Quotable, QuoteIn
from tomewise.loops.citing import cite_parts
from tomewise.loops.evidence import load_passages
from tomewise.text.quotable import find_sentences
from tomewise.types import Evidence, LanguageModel, Passage, Quote, Statement

if TYPE_CHECKING:
    from tomewise.store.contract import Texts

_PASSAGES = 10  # that the model gets
_AROUND = 1500  # characters on either side of a sentence, in which its neighbours are
_DROP = 0.02  # off the worth of a rewrite for each rank of the passage that gave its name


def only_quotes(model: LanguageModel) -> bool:
    """Whether the model that answers quotes sentences in place of an answer."""
    return find_name(model, ANSWER) == EXTRACTIVE


def prepare_quoting(store: Texts, given: AnswerIn, found: Sequence[Evidence]) -> tuple[QuoteIn, list[Passage]]:
    """The input with passages that may be quoted, and these in the order of their labels.

    They are the best of what was found, best first: those that are shown as they are, then others' sources.
    """
    ranked = sorted(found, key=lambda piece: len(piece.sources) > 1)
    nodes = list(dict.fromkeys(chain.from_iterable(piece.sources for piece in ranked)))[:_PASSAGES]
    passages = list(load_passages(store, nodes).values())
    ranks = {passage.id: rank for rank, passage in enumerate(passages)}
    rewrites = {piece.rewrite.text: _DROP * ranks.get(piece.rewrite.source, 0) for piece in found if piece.rewrite}
    quotables = [
        Quotable(
            label=f"E{number}",
            text=passage.text,
            title=passage.title,
            document=passage.document,
            headings=[(at, place.chapter) for at, place in passage.marks] or [(0, passage.place.chapter)],
        )
        for number, passage in enumerate(passages, start=1)
    ]
    return QuoteIn(**dict(given), passages=quotables, rewrites=list(rewrites.items())), passages


def quote_sentences(store: Texts, reply: AnswerOut, passages: Sequence[Passage]) -> tuple[Statement, ...]:
    """The sentences that a reply quotes, as statements. On the first rests the option that the reply chooses."""
    below = [[passage] for passage in passages]
    found = [quote for each in reply.quotes for quote in cite_parts(each, below)[:1]]
    statements = []
    for number, quote in enumerate(found):
        start = reply.answer.find(quote.text)
        start, end = (start, start + len(quote.text)) if start >= 0 else (0, 0)  # declined, or without a text
        statements.append(
            Statement(
                text=quote.text,
                start=start,
                end=end,
                support="quoted",
                quotes=(_add_neighbours(store, quote),),
                choice=None if number else reply.choice,
            )
        )
    return tuple(statements)


def _add_neighbours(store: Texts, quote: Quote) -> Quote:
    """The quote with the sentences beside it."""
    begins = max(0, quote.start - _AROUND)
    text = store.text_between(quote.document, begins, quote.end + _AROUND)
    start, end = quote.start - begins, quote.end - begins
    sentences = list(find_sentences(text))
    before = next((span for span in reversed(sentences) if span[1] <= start), (start, start))
    after = next((span for span in sentences if span[0] >= end), (end, end))
    # No neighbour is beyond a heading.
    is_near = [not any(map(str.isalnum, gap)) for gap in (text[before[1] : start], text[end : after[0]])]
    return replace(
        quote,
        before=text[slice(*before)] if is_near[0] else "",
        after=text[slice(*after)] if is_near[1] else "",
    )
