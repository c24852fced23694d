"""Find the places in a text, headings and speakers, for the marks of a document; and the places of its passages."""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from itertools import groupby, takewhile
from operator import itemgetter
from pathlib import Path
from typing import TypeAlias

from tomewise.reading.decode import join_words
from tomewise.reading.metadata import add_losses
from tomewise.types import Document, Metadata, Passage, Place

# A document takes in a tome at most 20 kB and ten times its text, with vectors of 256 numbers as `hash` makes them. Its
# text is stored twice and indexed, and so a heading for every word, or long headings above short passages, must not be
# stored for each. Such a document has fewer sections than headings, and passages with fewer places.
_FREE = 16_000  # bytes, however short the text is
_BESIDE_TEXT = 5  # bytes for each of the text
_SECTIONS = 3.5  # of these, for passages that end only where a section ends
_PASSAGE = 1_300  # bytes of a passage without its text and places: its row, its index and its vector
_PAGE = 4_000  # bytes: a row that does not fit in a page of the database begins another

Marks: TypeAlias = tuple[tuple[int, Place], ...]

_FENCE = r"(?P<fence>`{3,}|~{3,})"
_HEADING_OR_FENCE = re.compile(rf"^ {{0,3}}(?:{_FENCE}|(?P<level>#{{1,6}})(?:[ \t]+(?P<words>[^\n]*))?$)", re.MULTILINE)
_CLOSING = re.compile(r"(?:^|[ \t])#+[ \t]*$")
_MARKUP = re.compile(r"(?<!\\)[*_`]+|\\(?=[^\w\s])")
_SPEAKER = re.compile(r"^(?P<name>[^\W\d_][\w.’' -]{0,39}?)[ \t]*:[ \t]", re.MULTILINE)
_DAY = r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}"
_MESSAGE = re.compile(
    rf"^\u200e?[\[(]?(?P<time>(?:{_DAY},?[T ])?\d{{1,2}}[:.]\d\d(?:[:.]\d\d)?(?:[ \u202f]?[AaPp]\.?[Mm]\.?)?)[\])]?"
    r"(?: [-–])? (?:<(?P<nick>[^<>\n]{1,40})> |(?:\u200e?~?[ \u202f]?(?P<name>[^:\[\]/\n]{1,60}): )?)",
    re.MULTILINE,
)
_LEVELS = frozenset("DEBUG INFO WARN WARNING ERROR FATAL CRITICAL".split())  # of a log
_MESSAGE_SHARE = 0.25  # of the lines of a chat that begin a message, at least: a message may have many
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
        words = join_words(_MARKUP.sub("", _CLOSING.sub("", found["words"] or "")))
        if fence or not words:
            continue
        level = len(found["level"])
        path = [(above, heading) for above, heading in path if above < level] + [(level, words)]
        marks.append((found.start("level"), Place(chapter=tuple(heading for _, heading in path))))
    return tuple(marks)


def mark_speakers(text: str) -> Marks:
    """The turns of a transcript, whose lines open with `NAME: `, or the messages of a chat; empty for other texts.

    Each message of a chat, such as WhatsApp exports it, begins with its time: `[12/03/2024, 18:04:11] NAME: `.
    """
    if marks := _mark_messages(text):
        return marks
    turns = list(_SPEAKER.finditer(text))
    lines = sum(1 for _ in _LINE.finditer(text)) if turns else 0
    counts = Counter(turn["name"] for turn in turns)
    if len(turns) < _TRANSCRIPT_SHARE * lines or len(counts) < 2 or max(counts.values()) < _MIN_TURNS:
        return ()
    return tuple((turn.start(), Place(speaker=turn["name"])) for turn in turns)


def _mark_messages(text: str) -> Marks:
    messages = list(_MESSAGE.finditer(text))
    names = [found["name"] or found["nick"] or "" for found in messages]
    known = {name for name in names if name}
    if (
        len(known) < 2
        or known & _LEVELS
        or len(messages) < _MIN_TURNS
        or len(messages) < _MESSAGE_SHARE * sum(1 for _ in _LINE.finditer(text))
    ):
        return ()
    places = (Place(time=found["time"], speaker=join_words(name)) for found, name in zip(messages, names, strict=True))
    return tuple((found.start(), place) for found, place in zip(messages, places, strict=True))


def join_turns(turns: Collection[Mapping[str, str]]) -> tuple[str, Marks]:
    """The transcript, with a line `speaker: content` for each turn, and the mark of each.

    Each turn is a mapping with `speaker` and `content`, as in QMSum. A newline within a turn becomes a space.
    """
    lines = (" ".join(f"{turn['speaker']}: {turn['content']}".splitlines()).strip() for turn in turns)
    speakers = (Place(speaker=join_words(turn["speaker"])) for turn in turns)
    return join_marked(zip(lines, speakers, strict=True), "\n")


def find_sections(document: Document) -> list[int]:
    """The offsets, ascending, at which a new section begins, without the first one.

    A heading with nothing below it but the next heading is in one section with that heading. One at the end of the text
    is in the section before it. Where headings are so many that a passage for each would take too much of a tome, some
    begin no section: only where the text before has room for a passage more.
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
    free = _count_free(document)
    chosen: list[int] = []
    for start in sections:
        if _PASSAGE * (len(chosen) + 1) <= free + _SECTIONS * start:
            chosen.append(start)
    return chosen


def find_place(passage: Passage, start: int, end: int) -> Place:
    """The place of `passage.text[start:end]`, or of the passage if it has no marks."""
    return PlaceFinder(passage.text, passage.marks).find(start, end) if passage.marks else passage.place


def join_marked(parts: Iterable[tuple[str, Place]], gap: str = "\n\n", start: int = 0) -> tuple[str, Marks]:
    """The texts with a gap between them, and the mark of each. `start` is where they begin in their document."""
    texts: list[str] = []
    marks: list[tuple[int, Place]] = []
    for text, place in parts:
        texts.append(text)
        marks.append((start, place))
        start += len(text) + len(gap)
    return gap.join(texts), tuple(marks)


def make_document(
    path: Path,
    text: str,
    title: str = "",
    metadata: Metadata | None = None,
    marks: Marks | None = None,
    losses: Mapping[str, int] | None = None,
) -> tuple[Document]:
    """The document that a file is, alone in a tuple, as readers return it. Without `marks` its headings are marked.

    `losses` are the kinds of things that were seen and left out, counted; they are its metadata `left_out`.
    """
    name, title = str(path), join_words(title)
    marks = mark_headings(text) if marks is None else marks
    fields = add_losses(metadata or {}, losses or {})
    return (Document(id=name, text=text, title=title, source=name, metadata=fields, marks=marks),)


class PlaceFinder:
    """Finds the places of pieces of a text with these marks, such as the passages of a document."""

    def __init__(self, text: str, marks: Marks) -> None:
        self._text = text
        self._marks = marks
        self._starts = [start for start, _ in marks]

    def find(self, start: int, end: int) -> Place:
        """The place at `start` of a piece that ends at `end`.

        `last_page` is its last page, if it has several, and `last_row` its last row. Of a piece that reaches into
        another section the chapter holds only the headings that both have; headings of which the piece has no text do
        not count.
        """
        first = bisect_right(self._starts, start) - 1
        last = bisect_left(self._starts, end) - 1
        if first < 0:
            return Place()
        there = self._marks[last][1]
        seen = [self._marks[at][1] for at in range(first, last + 1) if not self._is_bare(at, start, end)]
        here = seen[0] if seen else self._marks[first][1]
        chapter = _find_common({place.chapter for place in seen or (here,)})
        last_page = there.page if there.page != here.page else None
        last_row = there.row if there.row != here.row and there.chapter == here.chapter else None
        return replace(here, chapter=chapter, last_page=last_page, last_row=last_row)

    def list_marks(self, start: int, end: int) -> Marks:
        """The marks of a piece, with offsets from its `start`; none for a piece with one place (see `Passage`)."""
        first = max(0, bisect_right(self._starts, start) - 1)
        inside = self._marks[first : bisect_left(self._starts, end)]
        marks = tuple((at - start, place) for at, place in (next(same) for _, same in groupby(inside, itemgetter(1))))
        return marks if marks and marks[-1][0] > 0 else ()

    def _is_bare(self, at: int, start: int, end: int) -> bool:
        """Whether this piece has only a heading of what the mark is for."""
        heading = self._marks[at][0]
        if heading < start or self._marks[at][1].chapter == (self._marks[at - 1][1].chapter if at else ()):
            return False
        following = self._starts[at + 1] if at + 1 < len(self._starts) else end
        return "\n" not in self._text[heading : min(end, following)].strip()


def _find_common(chapters: Collection[tuple[str, ...]]) -> tuple[str, ...]:
    """The outer headings that all the paths have."""
    levels = takewhile(lambda headings: len(set(headings)) == 1, zip(*chapters, strict=False))
    return tuple(headings[0] for headings in levels)


class Allowance:
    """Follows the passages of a document, and leaves out places for which its text has no room."""

    def __init__(self, document: Document) -> None:
        self._left = _count_free(document)

    def fit(self, text: str, title: str, place: Place, marks: Marks) -> tuple[Place, Marks]:
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
