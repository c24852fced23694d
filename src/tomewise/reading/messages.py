"""What the reader process is asked, and what it replies."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Literal, TypeAlias

from tomewise.reading.bounds import Bounds
from tomewise.types import Document

Failure: TypeAlias = Literal["", "refused", "missing", "memory", "characters", "error"]


@dataclass(frozen=True, slots=True)
class Request:
    """Read the file at `path`, which is of `format`, within `bounds`."""

    path: str
    format: str
    bounds: Bounds

    def encode(self) -> bytes:
        """The request as it is sent."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def decode(cls, raw: bytes) -> Request:
        """A request that was received."""
        found = json.loads(raw)
        return cls(found["path"], found["format"], Bounds(**found["bounds"]))


@dataclass(frozen=True, slots=True)
class Reply:
    """The documents of a file, or the kind of failure and what an error should say."""

    documents: tuple[Document, ...] = ()
    failure: Failure = ""
    message: str = ""

    def encode(self) -> bytes:
        """The reply as it is sent."""
        return json.dumps(asdict(self), ensure_ascii=False).encode()

    @classmethod
    def decode(cls, raw: bytes) -> Reply:
        """A reply that was received."""
        found = json.loads(raw)
        documents = tuple(Document(**fields) for fields in found["documents"])
        return cls(documents, found["failure"], found["message"])
