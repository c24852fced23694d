"""The messages to and from the reader process."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

from tomewise.place import as_plain_data, read_plain_data
from tomewise.reading.bounds import Bounds
from tomewise.types import Document

Failure: TypeAlias = Literal["", "refused", "missing", "memory", "characters", "error"]


_FIELDS = ("id", "text", "title", "source", "metadata")
_MAX_CHARACTER_BYTES = 6  # of one character in a reply
_MAX_OVERHEAD_BYTES = 2**20  # of a reply without its text


def find_longest_reply(bounds: Bounds) -> int:
    """The most bytes that a reply within these bounds has."""
    return _MAX_CHARACTER_BYTES * bounds.characters + _MAX_OVERHEAD_BYTES


@dataclass(frozen=True, slots=True)
class Request:
    """A request to read the file at `path` as `format`, within `bounds`."""

    path: str
    format: str
    bounds: Bounds

    def encode(self) -> bytes:
        """The request as JSON."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def decode(cls, raw: bytes) -> Request:
        """The inverse of `encode`."""
        fields = json.loads(raw)
        return cls(fields["path"], fields["format"], Bounds(**fields["bounds"]))


@dataclass(frozen=True, slots=True)
class Reply:
    """The documents of a file, or a kind of failure and the message of the error."""

    documents: tuple[Document, ...] = ()
    failure: Failure = ""
    message: str = ""

    def encode(self) -> bytes:
        """The reply as JSON."""
        documents = [_write_document(document) for document in self.documents]
        fields = {"documents": documents, "failure": self.failure, "message": self.message}
        return json.dumps(fields, ensure_ascii=False).encode()

    @classmethod
    def decode(cls, raw: bytes) -> Reply:
        """The inverse of `encode`."""
        fields = json.loads(raw)
        documents = tuple(_read_document(document) for document in fields["documents"])
        return cls(documents, fields["failure"], fields["message"])


def _write_document(document: Document) -> dict[str, Any]:
    # Only what a mark says is written: a table has a mark for each row.
    marks = [(start, as_plain_data(place)) for start, place in document.marks]
    return {**{name: getattr(document, name) for name in _FIELDS}, "marks": marks}


def _read_document(fields: dict[str, Any]) -> Document:
    marks = tuple((start, read_plain_data(place)) for start, place in fields.pop("marks"))
    return Document(**fields, marks=marks)
