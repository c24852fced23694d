"""The messages to and from the reader process."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

from tomewise.reading.bounds import Bounds
from tomewise.types import Document, Place

Failure: TypeAlias = Literal["", "refused", "missing", "memory", "characters", "error"]


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
        return json.dumps(asdict(self), ensure_ascii=False).encode()

    @classmethod
    def decode(cls, raw: bytes) -> Reply:
        """The inverse of `encode`."""
        fields = json.loads(raw)
        documents = tuple(_read_document(document) for document in fields["documents"])
        return cls(documents, fields["failure"], fields["message"])


def _read_document(fields: dict[str, Any]) -> Document:
    marks = tuple(
        (start, Place(**{**place, "chapter": tuple(place["chapter"])})) for start, place in fields.pop("marks")
    )
    return Document(**fields, marks=marks)
