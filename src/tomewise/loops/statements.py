"""Prove a text: each of its statements, by sentences of passages.

An answer of a model, an agent's report, a draft and a gist are proved alike, by our own code. What a model quotes is a
hint where to look, and so is a mark such as `[E3]`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, replace
from itertools import accumulate, groupby, pairwise
from operator import itemgetter

from tomewise.language.labels import find_labelled
from tomewise.loops.citing import Cited, make_quote
from tomewise.text.quotable import ITEM_NUMBER, find_sentences
from tomewise.text.support import Grounds, Place
from tomewise.text.words import make_bag
from tomewise.types import Answer, Quote, Statement
from tomewise.types.proof import PROVED

_MARK = re.compile(r"[^\S\n]?\[(E\d{1,4}(?:[,;\s]{1,3}E\d{1,4}){0,20})\]")
# Code, or a row of a table with a rule below it: no statement.
_FRAME = re.compile(
    r"^[^\S\n]*(?:(`{3,}+|~{3,}+)[^`\n]*+\n(?:.*\n)*?(?:[^\S\n]*\1[`~]*[^\S\n]*|.*\Z)"
    r"|\|.*\|[^\S\n]*(?=\n[^\S\n]*\|[ \t:|-]+$))$",
    re.MULTILINE,
)
# What stands between a full stop and the next sentence: the end of bold words, the number of a note.
_CLOSING = re.compile(r"(?<=[.!?…。！？])(?:[*_]{1,3}|[^\S\n]?\[\^?E?\d{1,3}\]|\[\^?\w{1,8}\])++(?=\s|\Z)")
_SHORT = 4  # content words: a statement of fewer is read as the answer to its question


@dataclass(frozen=True, slots=True)
class Marked:
    """A text without marks such as `[E3]`, and these: the offset in it where one stood, with its labels."""

    text: str
    marks: tuple[tuple[int, tuple[str, ...]], ...] = ()


def read_marks(text: str, shown: int) -> Marked:
    """Take the marks out of a text that name a piece of evidence: E1 to the number that was `shown`."""
    pieces, marks, end, length = [], [], 0, 0
    for mark in _MARK.finditer(text):
        labels = tuple(re.findall(r"E\d+", mark[1]))
        if max(int(label[1:]) for label in labels) > shown:  # no label, as E330
            continue
        pieces.append(text[end : mark.start()])
        length += len(pieces[-1])
        marks.append((length, labels))
        end = mark.end() if length else len(text) - len(text[mark.end() :].lstrip())
    return Marked("".join([*pieces, text[end:]]), tuple(marks))


def list_statements(text: str) -> list[tuple[int, int]]:
    """Where the statements of a text begin and end: sentences, items and rows, without headings, head rows and code.

    A text that has none is one itself.
    """
    framed = _FRAME.sub(lambda frame: "|" * len(frame[0]), text)
    spans = find_sentences(_CLOSING.sub(lambda signs: "”" * len(signs[0]), framed))
    behind = ((start + len(text[start:end]) - len(ITEM_NUMBER.sub("", text[start:end])), end) for start, end in spans)
    return [span for span in behind if not text[slice(*span)].endswith(":")] or [(0, len(text))]


def prove(written: Marked, cited: Cited, question: str = "") -> tuple[Statement, ...]:
    """The statements of a text: sentences, items, rows; each with its support and the quotes that show it.

    What it rests on by its own account is `cited`. A quotation belongs to the statements whose sentences it touches,
    else to the one that is most like it.
    """
    passages = list({passage.id: passage for below in cited.below for passage in below}.values())
    numbers = {passage.id: number for number, passage in enumerate(passages)}
    grounds = Grounds([passage.text for passage in passages])
    hints: dict[Quote, Place] = {}
    for quote in cited.quotes:
        number = numbers[quote.passage]
        begins = passages[number].start
        hints[quote] = (number, quote.start - begins, quote.end - begins)
    text, spans = written.text, list_statements(written.text)
    ends = [start for start, _ in spans[1:]] + [len(text) + 1]
    statements: list[Statement] = []
    for (start, end), after in zip(spans, ends, strict=True):
        words = text[start:end]
        labels = [label for offset, labels in written.marks if start < offset < after for label in labels]
        marked = [passage for label in labels for below in find_labelled(label, cited.below) for passage in below]
        places = [*hints.values(), *((numbers[passage.id], 0, len(passage.text)) for passage in marked)]
        judgement = grounds.judge(words, question if len(make_bag(words)) < _SHORT else "", places)
        own = {
            quote: place
            for quote, place in hints.items()
            if len(spans) == 1 or any(_overlap(place, each) for each in judgement.sentences)
        }
        sentences = [
            make_quote(passages[number], start, end)
            for number, start, end in judgement.sentences
            if judgement.support != "none" and not any(_overlap((number, start, end), each) for each in own.values())
        ]
        shown = [*own, *sentences]
        statements.append(Statement(text=words, start=start, end=end, support=judgement.support, quotes=tuple(shown)))
    lost = [quote for quote in hints if not any(quote in statement.quotes for statement in statements)]
    for quote in lost:  # a quotation in other words than any statement stays with the one that is most like it
        bag = make_bag(quote.text)
        best = max(range(len(statements)), key=lambda each: len(bag & make_bag(statements[each].text)))
        statements[best] = replace(statements[best], quotes=(*statements[best].quotes, quote))
    return tuple(statements)


def _overlap(first: Place, second: Place) -> bool:
    return first[0] == second[0] and first[1] < second[2] and second[1] < first[2]


def keep_proved(answer: Answer) -> Answer:
    """The answer without the statements that are not supported; declined if none is left.

    A line goes with its bullet or number if nothing else of it is left.
    """
    gone = [each for each in answer.statements if each.support not in PROVED]
    if not gone:
        return answer
    if len(gone) == len(answer.statements):
        lacks = "support for what the model answered"
        return replace(answer, text="", choice=None, statements=(), resolved=False, missing=lacks, withheld=len(gone))
    text, cuts = answer.text, []
    breaks = ("\n" in text[before.end : after.start] for before, after in pairwise(answer.statements))
    for _, line in groupby(zip(accumulate(breaks, initial=0), answer.statements, strict=True), key=itemgetter(0)):
        on_line = [each for _, each in line]
        if all(each.support not in PROVED for each in on_line):  # with its bullet or number
            cuts.append((text.rfind("\n", 0, on_line[0].start) + 1, f"{text}\n".index("\n", on_line[-1].end) + 1))
        else:
            ends = [*(each.start for each in on_line[1:]), on_line[-1].end]
            cuts += [(each.start, end) for each, end in zip(on_line, ends, strict=True) if each.support not in PROVED]
    kept = "".join(text[before:start] for (_, before), (start, _) in pairwise([(0, 0), *cuts, (len(text), 0)]))
    lost = [0, *accumulate(end - start for start, end in cuts)]  # characters, after so many cuts

    def move(each: Statement) -> Statement:
        shift = lost[bisect_right(cuts, each.start, key=itemgetter(0))]
        return replace(each, start=each.start - shift, end=each.end - shift)

    left = (each for each in answer.statements if each.support in PROVED)
    return replace(answer, text=kept.rstrip(), statements=tuple(map(move, left)), withheld=len(gone))
