"""What the reading of one file may take."""

from __future__ import annotations

from dataclasses import dataclass, fields

from tomewise.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Limits on the reading of one file that is converted: a few kilobytes can unfold to gigabytes of text.

    `seconds` of wall time; `memory` in megabytes, beyond what the reader takes before it opens the file; `characters`
    of the text. Raises UsageError for a limit that is not positive.
    """

    seconds: float = 300.0  # a page of a PDF takes a tenth of a second: enough for a book of 2,000 pages
    memory: int = 1024
    characters: int = 50_000_000

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not 0 < value < float("inf"):
                raise UsageError(f"read_{field.name} is {value!r}: give a number above 0")

    @classmethod
    def of(cls, *, seconds: float | None, memory: int | None, characters: int | None) -> Bounds:
        """Bounds where None stands for the default."""
        given = {"seconds": seconds, "memory": memory, "characters": characters}
        return cls(**{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]
