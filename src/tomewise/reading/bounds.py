"""Limits on the time, memory and text of reading one file."""

from __future__ import annotations

from dataclasses import dataclass, fields

from tomewise.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Limits on converting one file: a few kilobytes can unpack to gigabytes of text.

    `seconds` is wall time. `memory` is in megabytes, added to what the reader uses before it opens the file.
    `characters` is the length of the text. Raises UsageError for a limit that is not positive.
    """

    seconds: float = 300.0  # a PDF takes some milliseconds a page
    memory: int = 1024
    characters: int = 50_000_000

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not 0 < value < float("inf"):
                raise UsageError(f"read_{field.name} is {value!r}: give a number above 0")

    @classmethod
    def of(cls, *, seconds: float | None, memory: int | None, characters: int | None) -> Bounds:
        """Bounds in which None means the default."""
        limits = {"seconds": seconds, "memory": memory, "characters": characters}
        return cls(**{name: value for name, value in limits.items() if value is not None})  # type: ignore[arg-type]
