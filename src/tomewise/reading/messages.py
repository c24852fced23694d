"""The messages to and from the reader process: JSON, each on a line of its own."""

from __future__ import annotations

import json
from typing import Any, BinaryIO

from tomewise.place import as_plain_data, read_plain_data
from tomewise.types import Document

LONGEST_REQUEST = 1 << 20  # bytes
_FIELDS = ("id", "text", "title", "source", "metadata", "body")


def encode(message: object) -> bytes:
    """The line of a message: a request, None when its reader is loaded, and the reply."""
    return json.dumps(message, ensure_ascii=False).encode() + b"\n"


def send(pipe: BinaryIO, line: bytes) -> None:
    """Send the line of a message. Raises OSError if the other end is closed."""
    pipe.write(line)
    pipe.flush()


def receive(pipe: BinaryIO, most_bytes: int) -> bytes:
    """The line of the next message. Raises EOFError if the other end is closed, or if the line is longer."""
    line = pipe.readline(most_bytes)
    if not line.endswith(b"\n"):
        raise EOFError("the other end is closed, or sends too much")
    return line


def write_document(document: Document) -> dict[str, Any]:
    """A document in a reply."""
    # Only what a mark says is written: a table has a mark for each row.
    marks = [(start, as_plain_data(place)) for start, place in document.marks]
    return {**{name: getattr(document, name) for name in _FIELDS}, "marks": marks}


def read_document(fields: dict[str, Any]) -> Document:
    """The inverse of `write_document`."""
    marks = tuple((start, read_plain_data(place)) for start, place in fields.pop("marks"))
    return Document(**fields, marks=marks)
