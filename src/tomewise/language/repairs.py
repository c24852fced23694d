"""How many replies were mended, and how many were refused, while something was done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(slots=True)
class RepairCounts:
    """`repaired` replies could be used after the model was shown what was wrong, `refused` ones not even then."""

    repaired: int = 0
    refused: int = 0

    def __bool__(self) -> bool:
        return bool(self.repaired or self.refused)


_counts: ContextVar[RepairCounts | None] = ContextVar("tomewise_mended", default=None)


@contextmanager
def collect_repairs() -> Iterator[RepairCounts]:
    """Counts for whatever is asked inside, also by tasks started inside."""
    counts = RepairCounts()
    token = _counts.set(counts)
    try:
        yield counts
    finally:
        _counts.reset(token)


def count_repair() -> None:
    """To be called by a model when a repair brought a usable reply."""
    if (counts := _counts.get()) is not None:
        counts.repaired += 1


def count_refusal() -> None:
    """To be called where a reply is given up because neither it nor its repair can be used."""
    if (counts := _counts.get()) is not None:
        counts.refused += 1
