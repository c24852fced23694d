"""The messages to and from the reader process."""

from __future__ import annotations

import json
import struct
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, BinaryIO, Literal, TypeAlias

from tomewise.place import as_plain_data, read_plain_data
from tomewise.reading.bounds import Bounds
from tomewise.types import Document

Failure: TypeAlias = Literal["", "refused", "missing", "ended"]
"""Of a reply: none; a file that was refused; libraries that are missing; a file after which the worker is replaced."""

LONGEST_REQUEST = 1 << 20  # bytes
_LENGTH = struct.Struct("!Q")  # the number of bytes of a message, before it
_FIELDS = ("id", "text", "title", "source", "metadata", "body")
_MAX_CHARACTER_BYTES = 6  # of one character in a reply
_MAX_OVERHEAD_BYTES = 2**20  # of a reply without its text


class Channel:
    """Messages through two pipes."""

    def __init__(self, incoming: BinaryIO, outgoing: BinaryIO) -> None:
        self._incoming = incoming
        self._outgoing = outgoing

    def send(self, message: bytes) -> None:
        """Send a message. Raises OSError if the other end is closed."""
        self._outgoing.write(_LENGTH.pack(len(message)) + message)
        self._outgoing.flush()

    def receive(self, most_bytes: int) -> bytes:
        """The next message. Raises EOFError if the other end is closed, and OSError for a longer message."""
        (length,) = _LENGTH.unpack(self._read(_LENGTH.size))
        if length > most_bytes:
            raise OSError(f"a message of {length:,} bytes, not of {most_bytes:,} at most")
        return self._read(length)

    def close(self) -> None:
        """Close both pipes."""
        with suppress(OSError):  # what was not sent yet has no reader any more
            self._outgoing.close()
        self._incoming.close()

    def _read(self, count: int) -> bytes:
        content = self._incoming.read(count)
        if len(content) < count:
            raise EOFError("the other end is closed")
        return content


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
