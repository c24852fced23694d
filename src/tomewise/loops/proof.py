"""Prove a text: each of its statements, by sentences of passages.

An answer of a model, an agent's report, a draft and a gist are proved alike, by our own code. What a model quotes is a
hint where to look, and so is a mark such as `[E3]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tomewise.loops.citing import make_quote
from tomewise.text.grounds import Grounds, Judgement
from tomewise.text.quotable import find_sentences
from tomewise.text.words import make_bag
from tomewise.types import Passage, Quote, Statement

_MARK = re.compile(r"[^\S\n]*\[(E\d{1,4}(?:[,;\s]+E\d{1,4})*)\]")
_SHORT = 4  # content words: a statement of fewer is read as the answer to its question


@dataclass(frozen=True, slots=True)
class Marked:
    """A text without marks such as `[E3]`, and these: the offset in it where one stood, with its labels."""

    text: str
    marks: tuple[tuple[int, tuple[str, ...]], ...] = ()


def read_marks(text: str) -> Marked:
    """Take the marks out of a text."""
    pieces, marks, end, length = [], [], 0, 0
    for mark in _MARK.finditer(text):
        pieces.append(text[end : mark.start()])
        length += len(pieces[-1])
        marks.append((length, tuple(re.findall(r"E\d+", mark[1]))))
        end = mark.end()
    return Marked("".join([*pieces, text[end:]]), tuple(marks))


def prove(
    text: str,
    passages: Sequence[Passage],
    *,
    question: str = "",
    quotes: Sequence[Quote] = (),
    marks: Sequence[tuple[int, Passage]] = (),
) -> tuple[Statement, ...]:
    """The statements of a text: sentences, items, rows; each with its support and the quotes that show it.

    `quotes` are what the text is said to rest on, and `marks` name passages behind an offset of the text. A quotation
    that has no word in common with a statement or the question proves nothing, and belongs to none.
    """
    grounds = Grounds([passage.text for passage in passages])
    numbers = {passage.id: number for number, passage in enumerate(passages)}
    places = {
        quote: (numbers[quote.passage], quote.start - passages[numbers[quote.passage]].start, quote.end - quote.start)
        for quote in quotes
        if quote.passage in numbers
    }
    hints = {quote: (number, start, start + length) for quote, (number, start, length) in places.items()}
    spans = list(find_sentences(text)) or [(0, len(text))]
    statements = []
    for at, (start, end) in enumerate(spans):
        words = text[start:end]
        after = spans[at + 1][0] if at + 1 < len(spans) else len(text) + 1
        marked = [(numbers[passage.id], 0, len(passage.text)) for offset, passage in marks if start < offset < after]
        about = question if len(make_bag(words)) < _SHORT else ""
        judgement = grounds.judge(words, about, [*hints.values(), *marked])
        own = [quote for quote in hints if len(spans) == 1 or _touches(hints[quote], judgement)]
        related = make_bag(f"{words} {question}")
        shown = [quote for quote in own if not related.isdisjoint(make_bag(quote.text))]
        shown += _quote_sentences(judgement, passages, [hints[quote] for quote in shown])
        statements.append(Statement(text=words, start=start, end=end, support=judgement.support, quotes=tuple(shown)))
    return tuple(statements)


def _touches(place: tuple[int, int, int], judgement: Judgement) -> bool:
    """Whether a place of a text has signs in common with the sentences of a judgement."""
    return any(text == place[0] and start < place[2] and place[1] < end for text, start, end in judgement.sentences)


def _quote_sentences(
    judgement: Judgement, passages: Sequence[Passage], shown: Sequence[tuple[int, int, int]]
) -> Iterator[Quote]:
    """The sentences of a judgement that are not quoted yet; none where they prove nothing."""
    if judgement.support == "none":
        return
    for text, start, end in judgement.sentences:
        if not any(text == other and start < after and before < end for other, before, after in shown):
            yield make_quote(passages[text], start, end)
