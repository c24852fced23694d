"""Find the places in a text, headings and speakers, for the marks of a document; and the places of its passages."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from dataclasses import replace
from operator import itemgetter
from os.path import commonprefix
from typing import TypeAlias

from tomewise.types import Document, Place

Marks: TypeAlias = tuple[tuple[int, Place], ...]

_FENCE = r"(?P<fence>`{3,}|~{3,})"
_HEADING_OR_FENCE = re.compile(
    rf"^ {{0,3}}(?:{_FENCE}|(?P<level>#{{1,6}})(?:[ \t]+(?P<words>[^\n]*))?$)", re.MULTILINE
)
_CLOSING = re.compile(r"(?:^|[ \t])#+[ \t]*$")
_MARKUP = re.compile(r"(?<!\\)[*_`]+|\\(?=[^\w\s])")
_SPEAKER = re.compile(r"^(?P<name>[^\W\d_][\w.’' -]{0,39}?)[ \t]*:[ \t]", re.MULTILINE)
_LINE = re.compile(r"^[^\n]*\S", re.MULTILINE)
_TRANSCRIPT_SHARE = 0.5  # of the lines of a transcript that begin with a speaker, at least
_MIN_TURNS = 3  # of the speaker who speaks most; a list of "term: meaning" names each term once


def mark_headings(text: str) -> Marks:
    """The headings of Markdown that begin with `#`, each with its path. Those in fenced code do not count."""
    marks: list[tuple[int, Place]] = []
    path: list[tuple[int, str]] = []
    fence = ""
    for found in _HEADING_OR_FENCE.finditer(text):
        if found["fence"]:
            # A fence is closed by one of the same characters that is at least as long.
            fence = "" if fence and found["fence"].startswith(fence) else fence or found["fence"]
            continue
        words = " ".join(_MARKUP.sub("", _CLOSING.sub("", found["words"] or "")).split())
        if fence or not words:
            continue
        level = len(found["level"])
        path = [(above, heading) for above, heading in path if above < level] + [(level, words)]
        marks.append((found.start("level"), Place(chapter=tuple(heading for _, heading in path))))
    return tuple(marks)


def mark_speakers(text: str) -> Marks:
    """The turns of a transcript, whose lines begin with `NAME: `. Empty for a text that is likely no transcript."""
    turns = list(_SPEAKER.finditer(text))
    lines = sum(1 for _ in _LINE.finditer(text)) if turns else 0
    counts = Counter(turn["name"] for turn in turns)
    if len(turns) < _TRANSCRIPT_SHARE * lines or len(counts) < 2 or max(counts.values()) < _MIN_TURNS:
        return ()
    return tuple((turn.start(), Place(speaker=turn["name"])) for turn in turns)


def find_sections(document: Document) -> list[int]:
    """The offsets, ascending, at which a new section begins, the first one apart.

    A heading with nothing below it but the next heading is in one section with that heading. One at the end of the text
    is in the section before it.
    """
    text, marks = document.text, document.marks
    headings = [
        start for (start, place), before in zip(marks, [Place(), *map(itemgetter(1), marks)], strict=False)
        if place.chapter != before.chapter
    ]  # fmt: skip
    if not headings:
        return []
    sections: list[int] = []
    bare = not text[: headings[0]].strip()
    for start, end in zip(headings, [*headings[1:], len(text)], strict=True):
        if not bare:
            sections.append(start)
        bare = "\n" not in text[start:end].strip()
    if bare and sections and sections[-1] == headings[-1]:
        sections.pop()
    return sections


class PlaceFinder:
    """Finds the places of passages in one document."""

    def __init__(self, document: Document) -> None:
        self._text = document.text
        self._marks = document.marks
        self._starts = [start for start, _ in document.marks]

    def find(self, start: int, end: int) -> Place:
        """The place at `start` of a passage that ends at `end`.

        `last_page` is its last page, if it has several. Of a passage that goes on in another section the chapter holds
        only the headings that both have; headings at its beginning with nothing below them do not count as sections.
        """
        first = bisect_right(self._starts, start) - 1
        last = bisect_left(self._starts, end) - 1
        if first < 0:
            return Place()
        while first < last and self._is_bare(start, first):
            first += 1
        here, there = self._marks[first][1], self._marks[last][1]
        if first == last:
            return here
        chapter = commonprefix([place.chapter for _, place in self._marks[first : last + 1]])
        return replace(here, chapter=tuple(chapter), last_page=there.page if there.page != here.page else None)

    def _is_bare(self, start: int, at: int) -> bool:
        """Whether the passage has only a heading between `start` and the mark after `at`."""
        here, following = self._marks[at], self._marks[at + 1]
        piece = self._text[max(start, here[0]) : following[0]].strip()
        return here[1].chapter != following[1].chapter and start <= here[0] and "\n" not in piece
