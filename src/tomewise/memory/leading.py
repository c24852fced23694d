"""The text before a passage in its document: it shows a model who is meant, and where the scene is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from tomewise.store.contract import Texts
from tomewise.text.sentences import split_sentences
from tomewise.types import Passage

_SENTENCES = 3  # of the passage before that are shown
_CHARACTERS = 500  # that these may have together
_SEPARATOR = " > "  # between the headings of a path
_WORD = re.compile(r"\w")
_HEADING = re.compile(r"^[ ]{0,3}#{1,6}[ \t]+(\S.*)$", re.MULTILINE)


def find_leads(store: Texts, passages: Iterable[Passage]) -> dict[str, str]:
    """For each passage, by its id, its heading and the last sentences before it; empty where there are none.

    All of it comes from the document of the passage. A document is stored and replaced as a whole, so a memory that is
    made with it stays a pure function of its documents. The heading is the path of chapters in the passage's place, or
    the last heading in Markdown where it has none. A passage that opens with its own heading has at most the chapters
    above it: a new chapter begins. Ours, not in any of the papers.
    """
    documents = {passage.id: passage.document for passage in passages}
    leads: dict[str, str] = {}
    previous, heading, before = None, "", ""
    for passage in store.passages(documents=sorted(set(documents.values()))).values():
        if previous is None or passage.document != previous.document:
            previous, heading, before = None, "", ""
        if passage.id in documents:
            leads[passage.id] = _find_lead(passage, previous, heading, before)
        heading, before = _find_last_heading(passage.text, heading)
        previous = passage
    return leads


def _find_lead(passage: Passage, previous: Passage | None, heading: str, before: str) -> str:
    """The lead of one passage; `heading` and `before` are what Markdown shows, for a passage without a chapter."""
    chapter = passage.place.chapter
    if not chapter:
        return "" if _HEADING.match(passage.text.lstrip()) else _join_lead(heading, before)
    opening = _read_opening(passage.text, chapter)
    if chapter[-1] in opening:
        return _SEPARATOR.join(heading for heading in chapter if heading not in opening)
    text = previous.text if previous else ""
    lines = text.splitlines(keepends=True)
    found = [number for number, line in enumerate(lines) if _is_heading(line, chapter[-1])]
    if found:
        text = "".join(lines[found[-1] + 1 :])
    elif previous and previous.place.chapter != chapter:
        text = ""
    return _join_lead(_SEPARATOR.join(chapter), text)


def _read_opening(text: str, chapter: Sequence[str]) -> list[str]:
    """The headings of the path with which a text opens, before any other line."""
    opening: list[str] = []
    for line in filter(str.strip, text.splitlines()):
        found = [heading for heading in chapter if _is_heading(line, heading)]
        if not found:
            break
        opening += found
    return opening


def _is_heading(line: str, heading: str) -> bool:
    """Whether a line has this heading and no other words."""
    before, found, after = line.partition(heading)
    return bool(found) and not _WORD.search(before + after)


def _join_lead(heading: str, text: str) -> str:
    return "\n\n".join(filter(None, (heading, _select_last_sentences(text))))


def _find_last_heading(text: str, heading: str) -> tuple[str, str]:
    """The last heading of a text, and the text behind it; `heading` and the whole text where it has none."""
    found = list(_HEADING.finditer(text))
    return (found[-1][1].strip(), text[found[-1].end() :]) if found else (heading, text)


def _select_last_sentences(text: str) -> str:
    """The last sentences of a text, as many as have room, and one at least: of a longer one its end."""
    text = text[-4 * _CHARACTERS :]
    sentences = split_sentences(text)
    end = sentences[-1].end if sentences else 0
    starts = [sentence.start for sentence in sentences[-_SENTENCES:] if end - sentence.start <= _CHARACTERS]
    return text[starts[0] if starts else max(0, end - _CHARACTERS) : end].strip()
