"""Places in documents, how they are written for people, and as plain data."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Protocol

_NUMBERED = re.compile(
    r"(?i:(?:chapter|section)\s+)?(?:(\d{1,3}(?:\.\d{1,3})+)\b|(\d{1,3}|[IVXLC]+)(?=[.:)]|\s*$|\s+[—–-]\s))"
)  # a year does not number a chapter
_LONGEST = 60  # characters of a heading


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a text stands in its document, as far as the source says. Numbers count from 1."""

    chapter: tuple[str, ...] = ()
    """The headings above it, from the outermost to the innermost."""
    page: int | None = None
    """A page, in a PDF."""
    last_page: int | None = None
    """Set only for a text that goes on after `page`."""
    slide: int | None = None
    """A slide of a presentation."""
    row: int | None = None
    """A row of a table or a sheet."""
    last_row: int | None = None
    """Set only for a text that goes on after `row`."""
    cell: int | None = None
    """A cell of a notebook."""
    time: str = ""
    """A time in a recording, as "12:04", or a date; empty if none is stated."""
    speaker: str = ""
    """Who speaks; empty if nobody is named."""

    def __str__(self) -> str:
        return describe_place(self)


_FIELDS = frozenset(field.name for field in fields(Place))


def describe_place(place: Place, part: int | None = None) -> str:
    """The place in a few words, as "ch. 3, p. 37–38, part 12" or "12:04, Anna"; empty for an empty place.

    A heading with a number gives "ch. 3"; the innermost heading is quoted if it has none. `part` counts from 1.
    """
    parts = (
        *_describe_chapter(place.chapter),
        _describe_number("p.", place.page, place.last_page),
        _describe_number("slide", place.slide),
        _describe_number("row", place.row, place.last_row),
        _describe_number("cell", place.cell),
        place.time,
        # A time is that of the beginning, and so is its speaker.
        place.speaker if place.time or not place.speaker else f"begins with {place.speaker}",
        f"part {part}" if part is not None else "",
    )
    return ", ".join(words for words in parts if words)


class _Placed(Protocol):
    """A text with its place in a document: a quote, or a passage."""

    @property
    def document(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def place(self) -> Place: ...
    @property
    def position(self) -> int: ...


def describe_source(text: _Placed) -> str:
    """Where a text stands, with its document by its title or short name: "Emma, ch. 3, part 12"."""
    name = text.title or name_document(text.document)
    return f"{name}, {describe_place(text.place, text.position + 1)}"


def name_document(document: str) -> str:
    """The short name of a document without a title: the last part of a path, but an address as it is."""
    return document if "://" in document else document.rstrip("/").rsplit("/", 1)[-1]


def as_plain_data(place: Place) -> dict[str, Any]:
    """The fields of the place that are set, as JSON can hold them."""
    values = {field.name: getattr(place, field.name) for field in fields(place)}
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in values.items()
        if value not in (None, "", ())
    }


def read_plain_data(data: Mapping[str, Any]) -> Place:
    """The inverse of `as_plain_data`. Fields that are unknown here, from a later version, are passed over."""
    known = {name: value for name, value in data.items() if name in _FIELDS}
    if "chapter" in known:
        known["chapter"] = tuple(known["chapter"])
    return Place(**known)


def write_places(place: Place, marks: Iterable[tuple[int, Place]]) -> dict[str, Any]:
    """The place and the marks of a passage, if it has any, as JSON can hold them."""
    pairs = [[offset, as_plain_data(mark)] for offset, mark in marks]
    return {name: value for name, value in (("place", as_plain_data(place)), ("marks", pairs)) if value}


def read_marks(marks: Iterable[Sequence[Any]]) -> tuple[tuple[int, Place], ...]:
    """The marks of a passage from what `write_places` made of them."""
    return tuple((offset, read_plain_data(place)) for offset, place in marks)


def _describe_number(unit: str, first: int | None, last: int | None = None) -> str:
    if first is None:
        return ""
    return f"{unit} {first}" if last is None else f"{unit} {first}–{last}"


def _describe_chapter(chapter: tuple[str, ...]) -> list[str]:
    if not chapter:
        return []
    numbers = [found[1] or found[2] for heading in chapter if (found := _NUMBERED.match(heading))]
    innermost = chapter[-1]
    words = [f"ch. {numbers[-1]}"] if numbers else []
    if not _NUMBERED.match(innermost):
        words.append(f"“{innermost if len(innermost) <= _LONGEST else innermost[: _LONGEST - 1] + '…'}”")
    return words
