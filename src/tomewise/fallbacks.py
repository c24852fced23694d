"""Fallbacks: what took the place of a step that failed, counted by kind.

A build writes them into the notes of a `LayerReport`, one note a kind, as `fallback: KIND: COUNT`; what all builds of
a layer came to stands in its build record, `store.builds()[LAYER]["fallbacks"]`. An answer has them in its events: the
last one, named `fallbacks`, has as its detail each kind with its count. Kinds are stable: programs read them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

EVENT = "fallbacks"
GIST_REPEATED = "gist asked for again"
GIST_REPLACED = "passage in place of its gist"
NOT_DECOMPOSED = "question asked whole"
NOT_RECOGNISED = "facts not filtered"
NO_WALK = "ranked by cosine alone"
REPLY_SKIPPED = "reply skipped"

_NOTE = re.compile(r"fallback: (.+): (\d+)")
_COUNTS: ContextVar[Counter[str] | None] = ContextVar("fallbacks", default=None)


@contextmanager
def count_fallbacks() -> Iterator[Counter[str]]:
    """Counts the fallbacks inside, also those of tasks and threads that are started inside."""
    outer, counts = _COUNTS.get(), Counter[str]()
    token = _COUNTS.set(counts)
    try:
        yield counts
    finally:
        _COUNTS.reset(token)
        if outer is not None:
            outer.update(counts)


def record_fallback(kind: str) -> None:
    """Count one fallback, where somebody counts."""
    counts = _COUNTS.get()
    if counts is not None:
        counts[kind] += 1


def write_notes(counts: Mapping[str, int]) -> list[str]:
    """The notes of a report: `fallback: KIND: COUNT` for each kind that occurred."""
    return [f"fallback: {kind}: {count}" for kind, count in counts.items() if count]


def read_notes(notes: Iterable[str]) -> dict[str, int]:
    """The counts by kind that the notes of a report hold; other notes are passed over."""
    counts = Counter[str]()
    for note in notes:
        if found := _NOTE.fullmatch(note):
            counts[found[1]] += int(found[2])
    return dict(counts)
