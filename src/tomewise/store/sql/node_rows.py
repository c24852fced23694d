"""Passages and nodes from the rows of the table `nodes`, and the texts under which passages are indexed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import select

from tomewise.place import read_marks, read_plain_data
from tomewise.store.sql.lexical import add_spaces
from tomewise.store.sql.row_values import Fields, Misfit, describe_value
from tomewise.store.sql.schema import documents, nodes
from tomewise.types import Node, Passage, Place

_NOWHERE = Place()
# What `list_indexed_texts` needs of the passages.
INDEXED = select(nodes.c.key, documents.c.title, *nodes.c["data", "text"]).join(
    documents, documents.c.key == nodes.c.document
)


def make_passage(row: dict[str, Any]) -> Passage:
    """The passage of a row, from which `data` is taken. Raises Misfit for one without a place in its document."""
    if row["start"] is None or row["end"] is None:
        raise Misfit("nodes", "a passage without a place in its document")
    return Passage(**_read_passage_data(row.pop("data")), **row)


def make_node(row: dict[str, Any]) -> Node:
    """The node of a row, without its sources."""
    return Node(**{**row, "data": Fields(row["data"], row["id"])}, sources=())


def _join_indexed_text(title: str, data: Mapping[str, Any], text: str) -> str:
    """The text under which full-text search finds a passage: title, headings and speaker, then its own text.

    It depends on nothing but the rows of the passage and of its document, since the index forgets a passage only if it
    gets the same text again (see `lexical.forget`). Headings that are part of the text are not repeated.
    """
    place: Place = _read_passage_data(data).get("place", _NOWHERE)
    headings = [words for words in (*place.chapter, place.speaker) if words and words != title and words not in text]
    return add_spaces("\n".join([*([title] if title else []), *headings, text]))


def list_indexed_texts(rows: Iterable[Sequence[Any]]) -> list[tuple[int, str]]:
    """The key and the indexed text of each passage that the query INDEXED finds."""
    return [(key, _join_indexed_text(title, data, text)) for key, title, data, text in rows]


def _read_passage_data(data: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a passage from its column `data`. Raises Misfit."""
    try:
        return {"place": read_plain_data(data.get("place", {})), "marks": read_marks(data.get("marks", ()))}
    except (ValueError, TypeError, KeyError, AttributeError):
        raise Misfit("nodes", f"no place of a passage in {describe_value(dict(data))}") from None
