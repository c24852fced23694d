"""What the row of a passage holds besides its text: its place and its marks, in the column `data`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tomewise.place import read_marks, read_plain_data
from tomewise.store.sqlite.decode import Misfit, describe_value
from tomewise.types import Place

_NOWHERE = Place()


def read_passage_data(data: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a passage from its column `data`, which is empty in tomes from before passages had places.

    Raises Misfit.
    """
    if not data:
        return {}
    try:
        return {"place": read_plain_data(data.get("place", {})), "marks": read_marks(data.get("marks", ()))}
    except (ValueError, TypeError, KeyError, AttributeError):
        raise Misfit("nodes", f"no place of a passage in {describe_value(dict(data))}") from None


def join_indexed_text(title: str, data: Mapping[str, Any], text: str) -> str:
    """The text under which full-text search finds a passage: title, headings and speaker, then its own text.

    It depends on nothing but the rows of the passage and of its document, since the index forgets a passage only if it
    gets the same text again (see `lexical.forget`). Headings that stand in the text are not repeated.
    """
    place: Place = read_passage_data(data).get("place", _NOWHERE)
    headings = [words for words in (*place.chapter, place.speaker) if words and words != title and words not in text]
    return "\n".join([*([title] if title else []), *headings, text])
