"""What the row of a passage holds besides its text: its place, in the column `data`."""

from __future__ import annotations

import json

from tomewise.place import as_plain_data, read_plain_data
from tomewise.types import Passage, Place

_EMPTY = "{}"  # also in tomes that were made before passages had places
_NOWHERE = Place()


def write_passage_data(passage: Passage) -> str:
    """The column `data` of a passage."""
    place = as_plain_data(passage.place)
    return json.dumps({"place": place}, ensure_ascii=False, sort_keys=True) if place else _EMPTY


def read_passage_place(data: str) -> Place:
    """The place of a passage from its column `data`."""
    return _NOWHERE if data == _EMPTY else read_plain_data(json.loads(data).get("place", {}))


def join_indexed_text(title: str, data: str, text: str) -> str:
    """The text under which full-text search finds a passage: title, headings and speaker, then its own text.

    It depends on nothing but the rows of the passage and of its document, since the index forgets a passage only if it
    gets the same text again (see `lexical.forget`). Headings that stand in the text are not repeated.
    """
    place = read_passage_place(data)
    headings = [words for words in (*place.chapter, place.speaker) if words and words != title and words not in text]
    return "\n".join([*([title] if title else []), *headings, text])
