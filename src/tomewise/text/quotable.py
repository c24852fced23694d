"""Find the sentences of a text that may be quoted: no headings, and each item, record and field by itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Literal

from tomewise.text.record_lines import ROW, STAMPED, find_records
from tomewise.text.sentences import split_sentences

_LONGEST_LINE = 700  # characters; a longer record is cut into sentences
_LEAST = 3  # characters: a shorter sentence cannot be cited
_HEADING_WORDS = 12  # a line of its own with no more words and no full stop is a heading
_LINE = re.compile(r"[^\n]*\n?")
_MARKED_HEADING = re.compile(r" {0,3}#{1,6}(?:\s|$)")
_UNDERLINE = re.compile(r"\s*([=~^\"*#+-])\1{2,}\s*$")
ITEM_NUMBER = re.compile(r"\A\(?\d{1,3}[.)]\s+")  # of the sentence of an item, which keeps it
_BULLET = re.compile(r"\s*[-*+•–]\s+(?=\S)")
_NUMBER = re.compile(r"(\s*)\(?(?:\d{1,3}|[a-zA-Z]|[ivxIVX]{1,5})[.)]\s+(?=\S)")
_RULE = re.compile(r"[\s|:=_*~+.-]*$")
_FIELD = re.compile(r"\s*[^\W\d_][\w /.’'-]{0,30}:\s+\S")
_END = re.compile(r"[.!?…:;。！？][\"'”’)\]]*\s*$")


def find_sentences(text: str, *, with_headings: bool = False) -> Iterator[tuple[int, int]]:
    """Where the sentences of a text begin and end, in order.

    Rules are none, and headings only `with_headings`. Each item of a list, record (`find_records`) and line of
    `name: value` is cut from the others, and a record and such a line stay whole. A bullet is not part of its sentence;
    a number is, since it may be a name's initial.
    """
    blocks = list(_find_blocks(text))
    for block, following in zip_longest(blocks, blocks[1:]):
        if not with_headings and _is_heading(text, block, following):
            continue
        if block.kind == "line" and (piece := text[block.words : block.end].strip()) and len(piece) <= _LONGEST_LINE:
            if any(map(str.isalnum, piece)):
                start = text.index(piece, block.words)
                yield start, start + len(piece)
            continue
        begin = block.start if block.start < block.words else block.end  # in front of the next sentence
        for sentence in split_sentences(text[block.words : block.end]):
            if len(sentence.text) >= _LEAST and any(map(str.isalnum, sentence.text)):
                yield min(begin, block.words + sentence.start), block.words + sentence.end
                begin = block.end


@dataclass(frozen=True, slots=True)
class _Block:
    """A piece of a text that is split into sentences by itself.

    Its first sentence begins at `start`, and is split from `words` on, behind the number of an item.
    """

    start: int
    words: int
    end: int
    kind: Literal["text", "item", "line", "heading"]


def _find_blocks(text: str) -> Iterator[_Block]:
    begun: _Block | None = None
    lines = [(found.start(), found[0]) for found in _LINE.finditer(text) if found[0]]
    records = find_records([line for _, line in lines])
    for number, (at, line) in enumerate(lines):
        underlined = number + 1 < len(lines) and _UNDERLINE.match(lines[number + 1][1])
        is_rule, marked = _RULE.match(line), _MARKED_HEADING.match(line)
        item = _BULLET.match(line) or (_NUMBER.match(line) if begun is None or _may_end(lines, number, begun) else None)
        record = records[number]
        alone = bool(marked or record or ROW.match(line) or underlined) or _is_field(lines, number)
        if begun is not None and (item or alone or is_rule):
            yield replace(begun, end=at)
            begun = None
        if is_rule:
            continue
        end = at + len(line)
        if marked or underlined:
            words = at + (marked.end() if marked else 0)
            yield _Block(words, words, end, "heading")
        elif record is STAMPED:  # a message may have lines without a stamp
            begun = _Block(at, at, end, "line")
        elif alone:
            yield _Block(at, at, end, "line")
        elif item and begun is None:
            words = at + item.end()
            start = at + len(item[1]) if item.re is _NUMBER else words
            begun = _Block(start, words, end, "item")
        elif begun is None:
            begun = _Block(at, at, end, "text")
    if begun is not None:
        yield replace(begun, end=len(text))


def _may_end(lines: Sequence[tuple[int, str]], number: int, begun: _Block) -> bool:
    """Whether a number or letter that opens a line may be that of an item, and not a part of a wrapped sentence.

    It may if the line before ends a sentence, is an item, or is the indented rest of one.
    """
    line, before = lines[number][1], lines[number - 1][1]
    if _END.search(before) or _BULLET.match(before) or _NUMBER.match(before):
        return True
    return begun.kind == "item" and _measure_indent(before) > _measure_indent(line)


def _measure_indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _is_field(lines: Sequence[tuple[int, str]], number: int) -> bool:
    """Whether a line and one beside it have the form `name: value`, as in the head of a mail or of minutes."""
    if not _FIELD.match(lines[number][1]) or _END.search(lines[number][1]):
        return False
    beside = [lines[near][1] for near in (number - 1, number + 1) if 0 <= near < len(lines)]
    return any(map(_FIELD.match, beside))


def _is_heading(text: str, block: _Block, following: _Block | None) -> bool:
    """Whether a block is marked as a heading, or is a short line without a full stop, with a text directly below it."""
    if block.kind != "text" or following is None or following.kind == "heading":
        return block.kind == "heading"
    is_above = not text[block.end : following.start].strip()
    has_text_below = following.kind != "text" or not _is_short_line(text, following)
    return is_above and has_text_below and _is_short_line(text, block)


def _is_short_line(text: str, block: _Block) -> bool:
    line = text[block.start : block.end].strip()
    if "\n" in line or _FIELD.match(line) or _END.search(line):
        return False
    return len(line.split()) <= _HEADING_WORDS and not any(mark in line for mark in ";=|")
