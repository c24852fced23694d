"""A limit on what a tome stores beside a text: vectors, rows, headings, marks.

A document takes in a tome at most 20 kB and ten times its text, with vectors of 256 numbers as `hash` makes
them. Its text is stored twice and indexed, and so a heading for every word, or long headings above short passages, must
not be stored for each. Such a document has fewer sections than headings, and passages with fewer places.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from tomewise.types import Document, Place

_FREE = 16_000  # bytes, however short the text is
_BESIDE_TEXT = 5  # bytes for each of the text
_SECTIONS = 3.5  # of these, for passages that end only where a section ends
_PASSAGE = 1_300  # bytes of a passage without its text and places: its row, its index and its vector
_PAGE = 4_000  # bytes: a row that does not fit in a page of the database begins another

_Marks: TypeAlias = tuple[tuple[int, Place], ...]


def choose_sections(document: Document, sections: Sequence[int]) -> list[int]:
    """The sections that may begin a passage: all, unless there are more than the text before them has room for."""
    free = _count_free(document)
    chosen: list[int] = []
    for start in sections:
        if _PASSAGE * (len(chosen) + 1) <= free + _SECTIONS * start:
            chosen.append(start)
    return chosen


class Allowance:
    """Follows the passages of a document, and leaves out places for which its text has no room."""

    def __init__(self, document: Document) -> None:
        self._left = _count_free(document)

    def fit(self, text: str, title: str, place: Place, marks: _Marks) -> tuple[Place, _Marks]:
        """The place and the marks of the next passage: both, or the place alone, or only its numbers."""
        self._left += _BESIDE_TEXT * len(text) - _PASSAGE - len(title)
        inside = sum(_measure_place(mark) for _, mark in marks)
        # The headings and the speaker of a passage are stored and indexed.
        outside = 2 * _measure_place(place)
        if marks and len(text.encode()) + inside > _PAGE:
            inside += _PAGE
        if outside + inside > self._left:
            marks, inside = (), 0
        if outside > self._left:
            return replace(place, chapter=(), time="", speaker=""), ()
        self._left -= outside + inside
        return place, marks


def _count_free(document: Document) -> int:
    metadata = len(json.dumps(document.metadata, ensure_ascii=False)) if document.metadata else 0
    # An id is stored and indexed.
    return max(0, _FREE - 2 * len(document.id) - len(document.source) - len(document.title) - metadata)


def _measure_place(place: Place) -> int:
    words = (*place.chapter, place.time, place.speaker)
    return 25 + sum(len(word.encode()) + 4 for word in words if word)
