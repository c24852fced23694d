"""What stands before a passage in its document: it shows a model who is meant, and where the scene is."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tomewise.language.sentences import split_sentences

if TYPE_CHECKING:
    from tomewise.store.sqlite.store import SqliteStore
    from tomewise.types import Passage

_SENTENCES = 3  # of the passage before that are shown
_CHARACTERS = 500  # that these may have together
_HEADING = re.compile(r"^[ ]{0,3}#{1,6}[ \t]+(\S.*)$", re.MULTILINE)


def find_leads(store: SqliteStore, passages: Iterable[Passage]) -> dict[str, str]:
    """For each passage, by its id, its heading and the last sentences before it; empty where there are none.

    All of it comes from the document of the passage. A document is stored and replaced as a whole, so a memory that is
    made with it stays a pure function of its documents. A passage that opens with a heading has no lead: a new chapter
    begins. Ours, not in any of the papers.
    """
    wanted = {passage.id: passage.document for passage in passages}
    leads: dict[str, str] = {}
    document, heading, before = "", "", ""
    for passage in store.passages_of(sorted(set(wanted.values()))).values():
        if passage.document != document:
            document, heading, before = passage.document, "", ""
        if passage.id in wanted:
            opens = _HEADING.match(passage.text.lstrip())
            leads[passage.id] = "" if opens else "\n\n".join(filter(None, (heading, _take_last(before))))
        heading, before = _read_on(passage.text, heading)
    return leads


def _read_on(text: str, heading: str) -> tuple[str, str]:
    """The heading in force at the end of a text, and the text since then."""
    found = list(_HEADING.finditer(text))
    return (found[-1][1].strip(), text[found[-1].end() :]) if found else (heading, text)


def _take_last(text: str) -> str:
    """The last sentences of a text, as many as have room, and one at least: of a longer one its end."""
    text = text[-4 * _CHARACTERS :]
    sentences = split_sentences(text)
    end = sentences[-1].end if sentences else 0
    starts = [sentence.start for sentence in sentences[-_SENTENCES:] if end - sentence.start <= _CHARACTERS]
    return text[starts[0] if starts else max(0, end - _CHARACTERS) : end].strip()
