"""Count the replies that were repaired, and those that were given up, during a piece of work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(slots=True)
class RepairCounts:
    """`repaired` replies became usable after the model saw what was wrong; `refused` replies did not."""

    repaired: int = 0
    refused: int = 0

    def __bool__(self) -> bool:
        return bool(self.repaired or self.refused)


_counts: ContextVar[RepairCounts | None] = ContextVar("tomewise_repairs", default=None)


@contextmanager
def collect_repairs() -> Iterator[RepairCounts]:
    """Count for all asks inside this context, also from tasks started inside."""
    counts = RepairCounts()
    token = _counts.set(counts)
    try:
        yield counts
    finally:
        _counts.reset(token)


def count_repair() -> None:
    """Count one repair. A model calls this when a repair led to a usable reply."""
    if (counts := _counts.get()) is not None:
        counts.repaired += 1


def count_refusal() -> None:
    """Count one reply that was given up: neither the reply nor its repair can be used."""
    if (counts := _counts.get()) is not None:
        counts.refused += 1
