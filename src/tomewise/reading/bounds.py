"""Limits on the time, memory, text and documents of reading one file, and the errors of files that are refused."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from tomewise.errors import ReadingError, UsageError
from tomewise.reading.decode import find_codec, join_words

_BYTES_PER_CHARACTER = 4  # at most, in every encoding that is read
_REPLY_BYTES_PER_CHARACTER = 6  # at most, as JSON writes it
_REPLY_OVERHEAD = 2**20  # bytes of a reply without its text
# What a source does that exceeds a bound.
LIMITS = {
    "seconds": "took longer than {:g} seconds to read",
    "memory": "takes more than {:,} MB of memory to read",
    "characters": "holds more than {:,} characters of text",
    "documents": "holds more than {:,} documents",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Limits on converting one file, since a few kilobytes can unpack to gigabytes of text, and its stated encoding.

    `seconds` is wall time. `memory` is in megabytes, added to what the reader uses before it opens the file.
    `characters` is the length of the text. `documents` are the messages of a mailbox or the rows of JSON Lines.
    `encoding` is that of a file of text that is not UTF-8; empty: what it declares, or a guess. Raises UsageError for a
    limit that is not positive and for an unknown encoding.
    """

    seconds: float = 300.0  # a PDF takes some milliseconds a page
    memory: int = 1024
    characters: int = 50_000_000
    documents: int = 100_000  # each takes a few milliseconds to store, however short it is
    encoding: str = ""

    def __post_init__(self) -> None:
        for name in LIMITS:
            value = getattr(self, name)
            if not 0 < value < float("inf"):
                raise UsageError(f"read_{name} is {value!r}: give a number above 0")
        if self.encoding and find_codec(self.encoding) is None:
            raise UsageError(f"the encoding {self.encoding!r} is unknown: name one such as cp1252 or utf-16")

    @property
    def bytes(self) -> int:
        """The most bytes that plain text of so many characters can have."""
        return _BYTES_PER_CHARACTER * self.characters

    @property
    def reply_bytes(self) -> int:
        """The most bytes that a reply of the reader process has."""
        return _REPLY_BYTES_PER_CHARACTER * self.characters + _REPLY_OVERHEAD

    @classmethod
    def of(cls, **limits: Any) -> Bounds:
        """Bounds by their names, in which None means the default."""
        return cls(**{name: value for name, value in limits.items() if value is not None})


class Exceeded(Exception):
    """A file exceeds a bound, whose name is the argument."""


def open_within(path: Path, bounds: Bounds) -> BinaryIO:
    """Open a file of plain text. Raises `ReadingError` if it has more bytes than the bounds allow."""
    if path.stat().st_size > bounds.bytes:
        raise make_bound_error(path, bounds, "characters")
    return path.open("rb")


def make_bound_error(name: Path | str, bounds: Bounds, bound: str, before: str = "") -> ReadingError:
    """The error for a source that exceeds the bound of this name. `before` says what happened."""
    excess = LIMITS[bound].format(getattr(bounds, bound))
    return ReadingError(f"{name} {before}{excess}: raise the setting `read_{bound}`, or leave it out")


def make_locked_error(path: Path) -> ReadingError:
    """The error for a file that is encrypted with a password."""
    return ReadingError(f"{path} needs a password, because it is encrypted: save a copy without it, or leave it out")


def make_damage_error(path: Path, reason: Exception | str, remedy: str = "repair it, or leave it out") -> ReadingError:
    """The error for a file that its reader cannot convert."""
    words = describe_error(reason) if isinstance(reason, Exception) else reason
    return ReadingError(f"{path} could not be converted: {words}; {remedy}")


def describe_error(error: Exception) -> str:
    """What an error says, in one short line; its type if it says nothing."""
    return join_words(str(error))[:200] or type(error).__name__
