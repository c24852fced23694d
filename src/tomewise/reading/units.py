"""Cut a text into the units from which passages are packed: paragraphs, sentences and lines, runs of words.

The text is first cut into paragraphs, whose tokens are counted in batches. Only units that are too long are cut again
and counted again. The time is linear in the length of the text.
"""

from __future__ import annotations

import re
import string
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from itertools import pairwise
from math import inf
from operator import attrgetter
from typing import TYPE_CHECKING

from tomewise.text.record_lines import has_records

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# Tokenizing one segment takes a few hundredths of a second, so a caller can stop soon, between two segments.
SEGMENT = 64_000
# A limit on tokens alone does not limit the length: WordPiece makes one token of any word of over 100 characters.
CHARACTERS_PER_TOKEN = 8

_SIGN_RUNS = 8  # in a passage of signs, at least
_SIGNS = frozenset(string.punctuation + " \n\t")

# White space at which a tokenizer separates words too. BERT's normaliser deletes the control characters in \s.
_SPACE = r"[^\S\x0b\x0c\x1c-\x1f\x85]"
_CLOSERS = r"[\"'”’»)\]}*_」』》〉】）〕]*+"
_PARAGRAPH_END = re.compile(r"\n[^\S\n]*+\n\s*+")
_LINE_END = re.compile(r"\n\s*+")
_HEADING = re.compile(r"#{1,6} ")
_QUOTATION_MARK = re.compile('["“”«»「」『』]')  # without single ones, which are apostrophes too
_CLOSING_MARKS = frozenset("”»」』")
_LONGEST_QUOTATION = 2_000  # characters
_SENTENCE_END = re.compile(
    # A run of full stops matches only from its first one; otherwise a line of dots would take quadratic time.
    rf"(?<![.!?…؟۔।॥])[.!?…؟۔।॥]++{_CLOSERS}(?<!\bMr\.)(?<!\bMrs\.)(?<!\bMs\.)(?<!\bDr\.)(?<!\bSt\.)(?<!\b[A-Z]\.)"
    rf"{_SPACE}++(?![a-z])"
    rf"|[。！？｡．]++{_CLOSERS}{_SPACE}*+"
    r"|\n[^\S\n]*+(?![a-z])"  # a new line that begins in lower case is a wrapped sentence
)


class Break(IntEnum):
    """The quality of a cut behind a unit. The token counts of two units add up across every break except `HARD`."""

    HARD = 0
    WORD = 1
    LINE = 2
    SENTENCE = 3
    PARAGRAPH = 4
    HEADING = 5


class Grain(IntEnum):
    """The size of a unit."""

    PARAGRAPH = 0
    SENTENCE = 1
    WORDS = 2


@dataclass(frozen=True, slots=True)
class Unit:
    """`text[start:end]`, without outer white space. `tokens` is the count, or an upper bound; -1 before counting.

    `quoted` says that a quotation is open at its end.
    """

    start: int
    end: int
    behind: Break
    grain: Grain = Grain.PARAGRAPH
    tokens: int = -1
    quoted: bool = False


class Units:
    """Cuts texts into units of at most `capacity` tokens, and paragraphs of more than `paragraph` tokens again.

    A single character with more than `capacity` tokens stays a unit.
    """

    def __init__(self, tokenizer: Tokenizer, capacity: int, paragraph: int) -> None:
        self._tokenizer = tokenizer
        self._capacity = capacity
        self._run = max(1, 2 * capacity // _SIGN_RUNS)  # characters of a run of signs, at most
        self._limits = {Grain.PARAGRAPH: paragraph, Grain.SENTENCE: capacity, Grain.WORDS: capacity}
        self._lengths = {
            Grain.PARAGRAPH: 4 * paragraph,  # a longer one has likely too many tokens, so it is cut without counting
            Grain.SENTENCE: CHARACTERS_PER_TOKEN * capacity,
            Grain.WORDS: 2 * capacity,
        }

    def cut_text(self, text: str, sections: Sequence[int] = ()) -> Iterator[Unit]:
        """The counted units of a text, in order. Everything except white space is in one of them.

        No unit crosses one of the ascending offsets `sections`.
        """
        return _mark_quotations(text, self._count_segments(text, sections))

    def _count_segments(self, text: str, sections: Sequence[int]) -> Iterator[Unit]:
        start = 0
        while start < len(text):
            end, behind = _find_segment_end(text, start)
            yield from self._count_tokens(text, _split_sections(text, start, end, behind, sections))
            start = end

    def _count_tokens(self, text: str, units: Iterable[Unit]) -> list[Unit]:
        """The units with their token counts; those with too many tokens are cut until they fit."""
        done: list[Unit] = []
        units = self._cut_long(text, units)
        while units:
            done += (unit for unit in units if unit.tokens >= 0)
            open_units = [unit for unit in units if unit.tokens < 0]
            pieces = [text[unit.start : unit.end] for unit in open_units]
            too_large: list[Unit] = []
            for unit, encoding in zip(
                open_units, self._tokenizer.encode_batch_fast(pieces, add_special_tokens=False), strict=True
            ):
                tokens = len(encoding)
                length = unit.end - unit.start
                if length < 2 * tokens and length > self._run and _is_mostly_signs(text, unit):
                    too_large += _cut_runs(text, unit, self._run, _find_sign)  # so that they fill their passages
                elif tokens > self._limits[unit.grain] and length > 1:
                    too_large += self._cut_finer(text, unit)
                else:
                    done.append(replace(unit, tokens=tokens))
            units = self._cut_long(text, too_large)
        return sorted(done, key=attrgetter("start"))

    def _cut_long(self, text: str, units: Iterable[Unit]) -> list[Unit]:
        """The units. Those with so many characters that they likely have too many tokens are cut finer."""
        short: list[Unit] = []
        for unit in units:
            if unit.end - unit.start <= self._lengths[unit.grain] or unit.tokens >= 0:
                short.append(unit)
            elif unit.grain is Grain.PARAGRAPH:
                short += self._cut_long(text, self._cut_finer(text, unit))
            else:
                short += self._cut_words(text, unit)
        return short

    def _cut_finer(self, text: str, unit: Unit) -> list[Unit]:
        """The sentences of a paragraph, or its lines where these are records; of any other unit, its two halves."""
        if unit.grain is Grain.PARAGRAPH:
            ends = _LINE_END if has_records(text[unit.start : unit.end]) else _SENTENCE_END
            return list(_split(text, unit.start, unit.end, unit.behind, ends, Grain.SENTENCE))
        cut, behind = _find_cut(text, unit.start, (unit.start + unit.end) // 2)
        return [
            *_trim(text, unit.start, cut, behind, Grain.WORDS),
            *_trim(text, cut, unit.end, unit.behind, Grain.WORDS),
        ]

    def _cut_words(self, text: str, unit: Unit) -> Iterator[Unit]:
        """Runs of words of at most twice as many characters as the capacity has tokens."""

        def find_end(text: str, start: int, limit: int) -> tuple[int, Break]:
            end, behind = _find_cut(text, start, limit)
            if behind is Break.HARD:
                end = _move_before_marks(text, start, start + self._capacity - 1)
            return end, behind

        for run in _cut_runs(text, unit, 2 * self._capacity, find_end):
            # Base64 and similar data take a tokenizer seconds per megabyte. A tokenizer makes at most one token of an
            # ASCII character (and one of the beginning), so the number of characters is used in place of the count.
            length = run.end - run.start
            is_data = run.behind is Break.HARD and length < self._capacity and text[run.start : run.end].isascii()
            yield replace(run, tokens=length) if is_data else run


def _mark_quotations(text: str, units: Iterable[Unit]) -> Iterator[Unit]:
    """The units, `quoted` where a quotation is open at their end.

    Each paragraph begins outside of one, because a speech of several paragraphs opens again in each. A mark that is
    never closed counts for `_LONGEST_QUOTATION` characters.
    """
    opened = -inf
    for unit in units:
        for found in _QUOTATION_MARK.finditer(text, unit.start, unit.end):
            is_open = found.start() - opened <= _LONGEST_QUOTATION
            closes = found[0] in _CLOSING_MARKS or (found[0] == '"' and is_open)
            opened = -inf if closes else found.start()
        yield replace(unit, quoted=unit.end - opened <= _LONGEST_QUOTATION)
        if unit.behind >= Break.PARAGRAPH:
            opened = -inf


def _find_segment_end(text: str, start: int) -> tuple[int, Break]:
    limit = start + SEGMENT
    if limit >= len(text):
        return len(text), Break.PARAGRAPH
    for mark, behind in (("\n\n", Break.PARAGRAPH), ("\n", Break.LINE)):
        found = text.rfind(mark, start + SEGMENT // 2, limit)
        if found >= 0:
            return found + len(mark), behind
    return _find_cut(text, start, limit)


def _find_cut(text: str, start: int, limit: int) -> tuple[int, Break]:
    """Where to cut `text[start:limit]`: behind the last white space in its second half, else at its end."""
    middle = (start + limit) // 2
    found = max(text.rfind(space, middle, limit) for space in " \n\t")
    if found > start:
        return found + 1, Break.WORD
    return _move_before_marks(text, start, max(limit, start + 1)), Break.HARD


def _is_mostly_signs(text: str, unit: Unit) -> bool:
    """Whether a unit of less than two characters a token is so because of its signs, such as a line of dashes."""
    piece = text[unit.start : unit.end]
    return piece.isascii() and 4 * sum(character in string.punctuation for character in piece) > len(piece)


def _find_sign(text: str, start: int, limit: int) -> tuple[int, Break]:
    """Where to cut `text[start:limit]`: at the last sign or blank of its second half, else at its end."""
    for cut in range(limit, (start + limit) // 2, -1):
        if text[cut - 1] in _SIGNS or text[cut] in _SIGNS:
            return cut, Break.WORD  # every tokenizer of the kind of BERT separates words at signs
    return limit, Break.HARD


def _move_before_marks(text: str, start: int, cut: int) -> int:
    """The cut, moved back so that a letter keeps its vowel signs and accents, by at most 8 characters."""
    for back in range(cut, max(start, cut - 8), -1):
        if back == len(text) or not unicodedata.category(text[back]).startswith("M"):
            return back
    return cut


def _cut_runs(
    text: str, unit: Unit, longest: int, find_end: Callable[[str, int, int], tuple[int, Break]]
) -> Iterator[Unit]:
    """Runs of at most so many characters. `find_end` says where `text[start:limit]` is cut, and how well."""
    start = unit.start
    while start < unit.end:
        limit = start + longest
        end, behind = (unit.end, unit.behind) if limit >= unit.end else find_end(text, start, limit)
        yield from _trim(text, start, end, behind, Grain.WORDS)
        start = end


def _split_sections(text: str, start: int, end: int, behind: Break, sections: Sequence[int]) -> Iterator[Unit]:
    inside = sections[bisect_right(sections, start) : bisect_left(sections, end)]
    for left, right in pairwise((start, *inside, end)):
        last = behind if right == end else Break.HEADING
        yield from _split(text, left, right, last, _PARAGRAPH_END, Grain.PARAGRAPH)


def _split(text: str, start: int, end: int, behind: Break, ends: re.Pattern[str], grain: Grain) -> Iterator[Unit]:
    for match in ends.finditer(text, start, end):
        yield from _trim(text, start, match.end(), _find_break(text, match, grain), grain)
        start = match.end()
    yield from _trim(text, start, end, behind, grain)


def _find_break(text: str, match: re.Match[str], grain: Grain) -> Break:
    if grain is Grain.SENTENCE and not match.group().startswith("\n"):
        return Break.SENTENCE
    if _HEADING.match(text, match.end()):
        return Break.HEADING
    return Break.PARAGRAPH if grain is Grain.PARAGRAPH else Break.LINE


def _trim(text: str, start: int, end: int, behind: Break, grain: Grain) -> Iterator[Unit]:
    """The unit without outer white space; none for white space alone."""
    piece = text[start:end]
    if stripped := piece.strip():
        start += len(piece) - len(piece.lstrip())
        yield Unit(start, start + len(stripped), behind, grain)
