"""Split documents into passages that fit the embedder, at the ends of paragraphs and sentences."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import groupby
from math import inf
from typing import TYPE_CHECKING

from tomewise.errors import ReadingError, UsageError
from tomewise.reading.places import Allowance, PlaceFinder, find_sections
from tomewise.reading.units import CHARACTERS_PER_TOKEN, Break, Grain, Unit, Units
from tomewise.types import Document, Passage, content_id

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_HALF_PAIR = re.compile("[\ud800-\udfff]")
_MIN_TOKENS = 16  # a passage with fewer tokens of text says too little
_TITLE_TOKENS = 32  # of the title, at most, in each passage
_SMALL_SHARE = 0.15  # of the room for text: a passage with less joins its neighbour


class PassageSplitter:
    """Splits documents into passages of at most `max_tokens` tokens of the embedder's own tokenizer.

    The limit is for `Passage.content` (stated title, newline, text) with special tokens. A title that would use more
    than 32 of them, or a quarter, is shortened in the passages. A passage has at most 8 characters per token. `overlap`
    is the most tokens that two neighbours share, in whole sentences. Raises `UsageError` for impossible sizes.

    Why not semantic-text-splitter: on a novel of 472 kB its search tokenizes the text many times and takes 2.3 s. This
    class counts paragraphs in batches, packs them in one pass, and takes 0.12 s.

    Where the document is marked with headings, each heading begins a passage, unless nothing but another heading
    follows it. A passage does not end inside of a quotation if a better end is near. A passage that would have less
    than 15 % of `max_tokens` is joined with its neighbour in the same section, or gets a part of it.
    """

    def __init__(self, tokenizer: Tokenizer, max_tokens: int, overlap: int = 0) -> None:
        special = tokenizer.num_special_tokens_to_add(False)
        if max_tokens - special < 2 * _MIN_TOKENS:
            least = 2 * _MIN_TOKENS + special
            raise UsageError(f"passages of {max_tokens} tokens are too small: ask for {least} or more")
        if not 0 <= overlap <= max_tokens // 2:
            raise UsageError(f"an overlap of {overlap} tokens does not fit passages of {max_tokens}: ask for 0 to half")
        self._original_tokenizer = tokenizer
        self._room = max_tokens - special
        self._overlap = overlap

    def split(self, document: Document) -> Iterator[Passage]:
        """The passages of a document, in order. No step takes long, so a caller can stop between two passages.

        `document.text[p.start:p.end] == p.text` without outer white space. Positions count from 0. Every character
        that is not white space is in a passage, and without overlap in exactly one. Equal documents give equal
        passages and ids. What stands before the document's `body` is in none. Raises `ReadingError` for half surrogate
        pairs.
        """
        _refuse_surrogates(document)
        body = min(max(document.body, 0), len(document.text))
        document = replace(document, text=" " * body + document.text[body:])  # offsets stay
        title, title_tokens = self._fit_title(document.title)
        capacity = self._room - title_tokens
        paragraph = min(capacity // 2, self._overlap or capacity)
        sections = find_sections(document)
        units = Units(self._tokenizer, capacity, paragraph).cut_text(document.text, sections)
        places = PlaceFinder(document.text, document.marks)
        allowance = Allowance(document)
        position = last_start = covered = 0
        for group in self._pack(units, sections, capacity):
            first = group[0].start
            if position and first <= last_start:  # the group before was split again; its last part is all overlap
                first = next(unit.start for unit in group if unit.start >= covered)
            for start, end in self._fit_span(document.text, title, first, group[-1].end, counted=len(group)):
                if end <= covered:  # this part of a group that was split again lies inside the overlap
                    continue
                text = document.text[start:end]
                place, marks = allowance.fit(text, title, places.find(start, end), places.list_marks(start, end))
                yield Passage(
                    id=content_id("p", document.id, start, end, text),
                    document=document.id,
                    position=position,
                    start=start,
                    end=end,
                    text=text,
                    title=title,
                    place=place,
                    marks=marks,
                )
                position, last_start, covered = position + 1, start, end

    def _pack(self, units: Iterable[Unit], sections: Sequence[int], capacity: int) -> Iterator[list[Unit]]:
        """The units of each passage."""
        for _, section in groupby(units, key=lambda unit: bisect_right(sections, unit.start)):
            waiting: list[Unit] = []  # the passage before, which a small group behind it may join
            for window, shared in self._fill_windows(section, capacity):
                *done, waiting = self._join_small_group(waiting, window, shared, capacity)
                yield from done
            yield waiting

    def _fill_windows(self, units: Iterable[Unit], capacity: int) -> Iterator[tuple[list[Unit], int]]:
        """Groups of as many units as fit, each with the number of units that the group before has too."""
        window: list[Unit] = []
        shared = 0
        for unit in units:
            while window and (window[-1].behind is Break.HARD or not _fits([*window, unit], capacity)):
                if shared == len(window):
                    window, shared = window[1:], shared - 1
                    continue
                cut = len(window) if window[-1].behind is Break.HARD else _find_best_cut(window, shared)
                yield window[:cut], shared
                overlap = self._find_overlap(window[:cut])
                window, shared = overlap + window[cut:], len(overlap)
            window.append(unit)
        if len(window) > shared:
            yield window, shared

    def _join_small_group(
        self, waiting: list[Unit], window: list[Unit], shared: int, capacity: int
    ) -> list[list[Unit]]:
        """The two groups; if the second is small, joined if both fit together, else divided at a better break."""
        fresh = window[shared:]
        if not waiting:
            return [window]
        least = int(_SMALL_SHARE * capacity)
        if sum(unit.tokens for unit in fresh) >= least or waiting[-1].behind is Break.HARD:
            return [waiting, window]
        joined = waiting + fresh
        if _fits(joined, capacity):
            return [joined]
        cut = _find_best_cut(joined, 0, least)
        left, right = joined[:cut], joined[cut:]
        if not (right and _fits(left, capacity) and _fits(right, capacity)):
            return [waiting, window]
        overlap = self._find_overlap(left)
        while not _fits(overlap + right, capacity):
            overlap = overlap[1:]
        return [left, overlap + right]

    def _find_overlap(self, group: list[Unit]) -> list[Unit]:
        """The units at the end of a passage with which the next passage begins."""
        if not self._overlap:
            return []
        tokens = 0
        for index in range(len(group) - 1, 0, -1):
            tokens += group[index].tokens
            if tokens > self._overlap or group[index].behind is Break.HARD:
                return group[index + 1 :]
        return group[1:]

    def _fit_span(self, text: str, title: str, start: int, end: int, counted: int) -> Iterator[tuple[int, int]]:
        """The span, or its halves if it has more tokens as a whole than its units were counted to have.

        `counted` is the number of units in it.
        """
        if self._adds_up or (counted == 1 and not title) or end - start < 2:
            yield start, end
            return
        piece = text[start:end]
        content = f"{title}\n{piece}" if title else piece
        if len(self._tokenizer.encode(content, add_special_tokens=False)) <= self._room:
            yield start, end
            return
        middle = len(piece) // 2
        cut = max(piece.rfind(" ", 1, middle), piece.rfind("\n", 1, middle)) + 1 or middle
        left, right = piece[:cut].rstrip(), piece[cut:].lstrip()
        yield from self._fit_span(text, title, start, start + len(left), counted=2)
        yield from self._fit_span(text, title, end - len(right), end, counted=2)

    def _fit_title(self, title: str) -> tuple[str, int]:
        """The title, shortened to a part of the room, and its number of tokens with the newline behind it."""
        limit = min(self._room // 4, _TITLE_TOKENS)
        title = title.strip()[: CHARACTERS_PER_TOKEN * limit]
        encoding = self._tokenizer.encode(title, add_special_tokens=False)
        if len(encoding) > limit:
            title = title[: encoding.offsets[limit - 1][1]].rstrip()
        return title, len(self._tokenizer.encode(f"{title}\n", add_special_tokens=False)) if title else 0

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        """The tokenizer without truncation and padding, which a model's own settings may have switched on."""
        if self._original_tokenizer.truncation is None and self._original_tokenizer.padding is None:
            return self._original_tokenizer
        from tokenizers import Tokenizer

        copy = Tokenizer.from_str(self._original_tokenizer.to_str())
        copy.no_truncation()
        copy.no_padding()
        return copy

    @cached_property
    def _adds_up(self) -> bool:
        """Whether the token counts of units add up exactly, as in BERT, which looks up one word at a time."""
        from tokenizers.normalizers import BertNormalizer
        from tokenizers.pre_tokenizers import BertPreTokenizer

        known = (self._tokenizer.pre_tokenizer, BertPreTokenizer), (self._tokenizer.normalizer, BertNormalizer)
        return all(isinstance(part, kind) for part, kind in known)


def _fits(group: list[Unit], capacity: int) -> bool:
    return (
        group[-1].end - group[0].start <= CHARACTERS_PER_TOKEN * capacity
        and sum(unit.tokens for unit in group) <= capacity
    )


def _find_best_cut(window: list[Unit], shared: int, least: int = 0) -> int:
    """How many units the passage gets: those up to the last of the best breaks in its second half.

    If that is within a quotation, they end with the last whole paragraph in its second quarter instead, if there is
    one. At least so many tokens stay behind the cut, if that can be. A window of mostly runs of signs, with less than
    two characters a token, has no good break, and is filled.
    """
    whole = sum(unit.tokens for unit in window)
    if window[-1].end - window[0].start < 2 * whole:
        runs = sum(unit.tokens for unit in window if unit.grain is Grain.WORDS)
        if 2 * runs > whole:
            return len(window)
    tokens, best, cut, early = 0, -inf, len(window), 0
    for count, unit in enumerate(window, start=1):
        tokens += unit.tokens
        if count <= shared or whole - tokens < least:
            continue
        if 2 * tokens >= whole:
            if (quality := _rate_break(unit)) >= best:
                best, cut = quality, count
        elif 4 * tokens >= whole and unit.behind >= Break.PARAGRAPH and not unit.quoted:
            early = count
    last = window[cut - 1]
    return early if early and last.quoted and last.behind < Break.PARAGRAPH else cut


def _rate_break(unit: Unit) -> float:
    """The quality of a cut behind a unit. A sentence that ends within a quotation is worse than a line outside."""
    if not unit.quoted:
        return unit.behind
    return unit.behind - (0.5 if unit.behind >= Break.PARAGRAPH else 1.5)


def _refuse_surrogates(document: Document) -> None:
    for field in ("text", "title"):
        if found := _HALF_PAIR.search(getattr(document, field)):
            raise ReadingError(
                f"the {field} of {document.name!r} holds half a surrogate pair at character {found.start()}: "
                "decode it again, or replace that character"
            )
