"""The greatest lengths of what a source says of a document: title, headings, speakers, times and metadata.

They are stored with every passage or shown with every answer, so a file must not decide how long they are.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tomewise.types import Document, Metadata, Place, Scalar

TITLE = 200  # characters, as all of these
HEADING = 100
SPEAKER = 120
TIME = 40
DEEPEST = 8  # headings above one another
VALUE = 1_000  # of metadata
METADATA = 4_000  # of all fields together, written as JSON
ID = 1_000  # a longer one is refused, because a part of an id names another document
PATH = 4_096  # of a file, as long as Linux allows


def cut_document(document: Document) -> Document:
    """The document with title, metadata and marks of at most these lengths; the text stays as it is."""
    metadata = cut_metadata(document.metadata) if document.metadata else document.metadata
    marks = tuple((start, cut_place(place)) for start, place in document.marks)
    return replace(document, title=_cut_text(document.title, TITLE), metadata=metadata, marks=marks)


def cut_place(place: Place) -> Place:
    """The place with headings, speaker and time of at most these lengths."""
    chapter = place.chapter
    if len(chapter) > DEEPEST or any(len(heading) > HEADING for heading in chapter):
        chapter = tuple(_cut_text(heading, HEADING) for heading in chapter[:DEEPEST])
    elif len(place.speaker) <= SPEAKER and len(place.time) <= TIME:
        return place
    return replace(place, chapter=chapter, speaker=_cut_text(place.speaker, SPEAKER), time=_cut_text(place.time, TIME))


def cut_metadata(fields: Metadata) -> dict[str, Scalar | list[Scalar]]:
    """The first fields that fit, in their order: long strings are cut, and a list keeps its first items."""
    cut_fields: dict[str, Scalar | list[Scalar]] = {}
    left = METADATA
    for name, value in fields.items():
        is_list = isinstance(value, list | tuple)
        items = [_cut_text(item, VALUE) if isinstance(item, str) else item for item in list_values(value)]
        left -= _measure_json(name)
        fitting: list[Scalar] = []
        for item in items:
            if _measure_json(item) > left:
                break
            left -= _measure_json(item)
            fitting.append(item)
        if left >= 0 and (is_list or fitting):
            cut_fields[name] = fitting if is_list else fitting[0]
    return cut_fields


def list_values(value: Any) -> Sequence[Any]:
    """The items of a list; any other value alone in one."""
    return value if isinstance(value, list | tuple) else [value]


def _measure_json(value: Scalar) -> int:
    return len(json.dumps(value)) + 4  # with the signs between two of them


def _cut_text(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[:longest].rstrip()
