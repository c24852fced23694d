"""What the row of a passage holds besides its text: its place and its marks, in the column `data`."""

from __future__ import annotations

import json
from typing import Any

from tomewise.place import read_marks, read_plain_data, write_places
from tomewise.types import Passage, Place

_EMPTY = "{}"  # also in tomes that were made before passages had places
_NOWHERE = Place()


def write_passage_data(passage: Passage) -> str:
    """The column `data` of a passage."""
    places = write_places(passage)
    return json.dumps(places, ensure_ascii=False, sort_keys=True) if places else _EMPTY


def read_passage_data(data: str) -> dict[str, Any]:
    """The fields of a passage from its column `data`."""
    if data == _EMPTY:
        return {}
    fields = json.loads(data)
    return {"place": read_plain_data(fields.get("place", {})), "marks": read_marks(fields.get("marks", ()))}


def join_indexed_text(title: str, data: str, text: str) -> str:
    """The text under which full-text search finds a passage: title, headings and speaker, then its own text.

    It depends on nothing but the rows of the passage and of its document, since the index forgets a passage only if it
    gets the same text again (see `lexical.forget`). Headings that stand in the text are not repeated.
    """
    place: Place = read_passage_data(data).get("place", _NOWHERE)
    headings = [words for words in (*place.chapter, place.speaker) if words and words != title and words not in text]
    return "\n".join([*([title] if title else []), *headings, text])
