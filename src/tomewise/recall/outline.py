"""How a document is laid out, and the part of it that a reader names: a chapter, pages, lines or characters."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

from tomewise.errors import UnknownName, UsageError, suggest
from tomewise.language.fences import oneline
from tomewise.store.contract import Texts
from tomewise.store.records import DocumentRecord
from tomewise.text.alignment import fold
from tomewise.types import DocumentId, Noun, Place
from tomewise.types.place import describe_place, name_document

_PART = re.compile(r"(page|chapter|line|part|character)s?\s++(.+)", re.IGNORECASE | re.DOTALL)
_RANGE = re.compile(r"(\d{1,9})(?:\s*(?:-|–|to)\s*(\d{1,9}))?")
_SHOWN = 5  # chapters in a message
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")
_LONGEST = 100  # characters of a heading in a message
_BEGINNING = 50_000  # characters

Marks = Sequence[tuple[int, Place]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section(Noun):
    """A heading, and the text below it up to the next heading of its level."""

    chapter: tuple[str, ...]
    """The headings above it, and itself as the last."""
    start: int
    """The offset of its first character in the document."""
    end: int
    """The offset behind its last one."""
    page: int | None
    """The page on which it begins, where the document has pages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline(Noun):
    """How a document is laid out."""

    document: DocumentId
    title: str
    characters: int
    """The length of its text."""
    lines: int
    pages: int
    """0 without pages."""
    sections: tuple[Section, ...]
    """Its headings, in order."""
    speakers: Mapping[str, int]
    """Who speaks in it, each with the number of characters; who says most comes first."""


def make_outline(record: DocumentRecord, store: Texts) -> Outline:
    """The outline of a document, as far as its source says where what stands."""
    marks = _read_marks(record, store)
    speakers: Counter[str] = Counter()
    for (start, place), (end, _) in pairwise([*marks, (record.characters, Place())]):
        if place.speaker:
            speakers[place.speaker] += end - start
    return Outline(
        document=record.id,
        title=record.title,
        characters=record.characters,
        lines=sum(1 for _ in _find_line_ends(store.document(record.id).text)),
        pages=max((place.page or 0 for _, place in marks), default=0),
        sections=tuple(_list_sections(record, marks)),
        speakers=dict(speakers.most_common()),
    )


def list_headings(record: DocumentRecord, store: Texts, most: int) -> list[str]:
    """The first headings of a document, as far as they stand near its beginning."""
    marks = _read_marks(record, store, (0, _BEGINNING))
    return [section.chapter[-1] for section in islice(_list_sections(record, marks), most)]


def find_part(part: str, record: DocumentRecord, store: Texts) -> tuple[int, int]:
    """Where a part of a document begins and ends: "page 3", "pages 3-5", "chapter The Lamp", "lines 10-20",
    "parts 2-4", "characters 0-500".

    A chapter is named by its heading, by words of it, or by its number; parts are passages, as quotations number them.
    Raises UsageError, and UnknownName for what the document does not have.
    """
    read = _PART.fullmatch(part.strip())
    if read is None:
        raise UsageError(f'cannot read the part {part!a}: write "page 3", "chapter NAME", "lines 1-20"')
    kind, name = read[1].lower(), read[2]
    if kind == "chapter":
        return _find_chapter(name, record, store)
    numbers = _RANGE.fullmatch(name)
    if numbers is None:
        raise UsageError(f"cannot read the {kind}s {name!a}: give a number, or two as 3-5")
    first, last = int(numbers[1]), int(numbers[2] or numbers[1])
    if kind == "character":
        found = first, min(last if numbers[2] else first + 1, record.characters)
    elif kind == "line":
        ends = [0, *_find_line_ends(store.document(record.id).text)]
        found = (ends[min(first, len(ends)) - 1], ends[min(last, len(ends) - 1)]) if first else (0, 0)
    elif kind == "part":
        parts = list(store.passages(documents=[record.id]).values())[max(first, 1) - 1 : last] if first else []
        found = (parts[0].start, parts[-1].end) if parts else (0, 0)
    else:
        found = _find_pages(first, last, record, store)
    if found[0] >= found[1]:
        raise UnknownName(f"{name_document(record.id)} has no {kind} {name}: see its outline")
    return found


def _find_line_ends(text: str) -> Iterator[int]:
    yield from (line.end() for line in _LINE.finditer(text))


def _find_pages(first: int, last: int, record: DocumentRecord, store: Texts) -> tuple[int, int]:
    pages = [(start, place.page) for start, place in _read_marks(record, store) if place.page]
    inside = [start for start, page in pages if first <= page <= last]
    after = [start for start, page in pages if page > last]
    return (inside[0], min(after, default=record.characters)) if inside else (0, 0)


def _find_chapter(name: str, record: DocumentRecord, store: Texts) -> tuple[int, int]:
    sections = list(_list_sections(record, _read_marks(record, store)))
    wanted = fold(name).line
    headings = [fold(section.chapter[-1]).line for section in sections]
    numbers = [describe_place(Place(chapter=section.chapter[-1:])) for section in sections]
    for fits in (
        [heading == wanted for heading in headings],
        [number == f"ch. {name}" for number in numbers],
        [wanted in heading for heading in headings],
    ):
        if sum(fits) > 1:
            several = [" › ".join(each.chapter) for each, fit in zip(sections, fits, strict=True) if fit]
            raise UsageError(f"{oneline(name)[:_LONGEST]!r} is {sum(fits)} chapters: {'; '.join(several[:_SHOWN])}")
        if any(fits):
            section = sections[fits.index(True)]
            return section.start, section.end
    near = suggest(name, [section.chapter[-1] for section in sections])
    raise UnknownName(f"{name_document(record.id)} has no chapter {oneline(name)[:_LONGEST]!r}: {near}see its outline")


def _list_sections(record: DocumentRecord, marks: Marks) -> Iterator[Section]:
    headings = [
        (start, place) for (_, before), (start, place) in pairwise([(0, Place()), *marks])
        if place.chapter and place.chapter != before.chapter
    ]  # fmt: skip
    ends = [record.characters] * len(headings)
    begun: list[int] = []  # numbers of headings, each below the one before
    for number, (start, place) in enumerate(headings):
        while begun and place.chapter[: len(above := headings[begun[-1]][1].chapter)] != above:
            ends[begun.pop()] = start
        begun.append(number)
    for (start, place), end in zip(headings, ends, strict=True):
        yield Section(chapter=place.chapter, start=start, end=end, page=place.page)


def _read_marks(record: DocumentRecord, store: Texts, between: tuple[int, int] | None = None) -> Marks:
    """The places that the passages of a document have, by the offsets at which they begin."""
    found: dict[int, Place] = {}
    for passage in store.passages(documents=[record.id], between=between).values():
        for offset, place in passage.marks or ((0, passage.place),):
            found.setdefault(max(0, passage.start + offset), place)
    return sorted(found.items())
