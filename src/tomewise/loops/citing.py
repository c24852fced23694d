"""Verify citations: a quotation counts only if it is found, to the character, in a passage.

A model that only quotes has its sentences cited in place of an answer. It gets the best passages one by one, with the
headings in them, beside what any model is shown.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

from tomewise.errors import UnknownName
from tomewise.language import roles
from tomewise.language.choose_model import EXTRACTIVE
from tomewise.language.labels import find_labelled
from tomewise.language.roles import ANSWER, AnswerIn, AnswerOut, Quotable, QuoteIn
from tomewise.language.wrapped import find_name
from tomewise.loops.evidence import join_texts, load_passages
from tomewise.reading.places import find_place
from tomewise.store.records import PASSAGES
from tomewise.text.alignment import Span, find_quotation
from tomewise.text.quotable import find_sentences
from tomewise.types import Evidence, LanguageModel, Passage, Quote, Statement

if TYPE_CHECKING:
    from tomewise.store.contract import Texts

# What a model writes around a quotation: "E1: ...", "[E1] ...", "Quote: ...", and the label behind it.
_KIND = "evidence|excerpt|passage|quotation|quote|source|text"
_LABEL = re.compile(
    rf"\A[\W_]*+(?:(?:(?:{_KIND})(?: ?E?\d{{1,4}})?|E\d{{1,4}})\s?[:.\])'\"“*–—-]|E\d{{1,4}} (?-i:(?=[A-Z]))"
    r"|(?<=<)evidence\b[^<>]*+>)[\s\"'“”‘’*_\[\](]*+",
    re.I,
)
_LABEL_BEHIND = re.compile(
    rf"(?:(?:[\[(](?:(?:{_KIND}) )?E\d{{1,4}}(?:[,;&\s-]+E?\d{{1,4}})*+[\])]|(?<=[^\w\s]\s)E\d{{1,4}}\b|</evidence>)"
    r"[^\w\[(<]*+){1,4}[\W_]*+\Z",
    re.I,
)
_PASSAGES = 10  # that the model gets
_AROUND = 1500  # characters on either side of a sentence, in which its neighbours are
_DROP = 0.02  # off the worth of a rewrite for each rank of the passage that gave its name


@dataclass(frozen=True, slots=True)
class Cited:
    """Quotations that were found in passages, and how many were not.

    `derived` quote evidence that was made from passages, such as a summary; `dropped` are found nowhere. `below` has
    the passages that each piece of the evidence rests on.
    """

    quotes: tuple[Quote, ...]
    dropped: int
    derived: int
    below: Sequence[Sequence[Passage]]


def cite(store: Texts, quotes: Sequence[roles.Quote], evidence: Sequence[Evidence]) -> Cited:
    """Locate each quotation in the evidence that it names (E1 is the first), else in any other; else drop it.

    Only passages are cited. A quotation of a summary is looked for in the passages below it; if it is in the summary
    alone, it is counted as derived.

    A quotation that leaves something out ("the tide … at nine") is cited part by part, if all parts are in one passage,
    in order, and what was left out does not deny what they say. One that runs over the end of a passage into the next
    is cited in both, if both are shown as one piece.
    """
    wanted = {source for piece in evidence for source in piece.sources}
    passages = load_passages(store, wanted)
    below = [[passages[id] for id in piece.sources if id in passages] for piece in evidence]
    joined = [run for piece, run in zip(evidence, below, strict=True) if piece.layer == PASSAGES and run[1:]]
    located = [_cite_parts(quote, below, joined) for quote in quotes]
    lost = [quote.quote for quote, found in zip(quotes, located, strict=True) if not found]
    derived = sum(any(_find(quote, piece.text) for piece in evidence) for quote in lost)
    return Cited(tuple(dict.fromkeys(chain.from_iterable(located))), len(lost) - derived, derived, below)


def _cite_parts(
    written: roles.Quote, below: Sequence[Sequence[Passage]], joined: Sequence[Sequence[Passage]] = ()
) -> list[Quote]:
    """The quotation, or each of its parts, in one passage, or in one run of those `joined`; nothing if none has it all.

    `below` has the passages of each piece of evidence; those of the piece that is named come first.
    """
    pieces = (*find_labelled(written.label, below), *below)
    passages = {passage.id: passage for piece in pieces for passage in piece}.values()
    for run in (*([passage] for passage in passages), *joined):
        text, starts = join_texts(run)
        if spans := _find(written.quote, text):
            return [
                make_quote(passage, start, end)
                for span in spans
                for passage, begins in zip(run, starts, strict=True)
                if (start := max(0, span.start - begins)) < (end := min(len(passage.text), span.end - begins))
            ]
    return []


def locate(quote: str, passage: Passage) -> Quote | None:
    """The quotation in the passage, if it leaves nothing out."""
    spans = _find(quote, passage.text)
    return make_quote(passage, spans[0].start, spans[0].end) if len(spans) == 1 else None


def make_quote(passage: Passage, start: int, end: int) -> Quote:
    """The quote of `passage.text[start:end]`."""
    return Quote(
        document=passage.document,
        passage=passage.id,
        position=passage.position,
        start=passage.start + start,
        end=passage.start + end,
        text=passage.text[start:end],
        title=passage.title,
        place=find_place(passage, start, end),
    )


def _find(quote: str, text: str) -> list[Span]:
    """The spans of a quotation: as it is written, else without the labels around it."""
    return find_quotation(quote, text) or find_quotation(_LABEL_BEHIND.sub("", _LABEL.sub("", quote)), text)


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
    found = [quote for each in reply.quotes for quote in _cite_parts(each, below)[:1]]
    return tuple(
        Statement(
            text=" ".join(quote.text.split()),
            support="quoted",
            quotes=(_add_neighbours(store, quote),),
            choice=None if number else reply.choice,
        )
        for number, quote in enumerate(found)
    )


def _add_neighbours(store: Texts, quote: Quote) -> Quote:
    """The quote with the sentences beside it; without them if its document has been removed meanwhile."""
    begins = max(0, quote.start - _AROUND)
    try:
        text = store.text_between(quote.document, begins, quote.end + _AROUND)
    except UnknownName:
        return quote
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
