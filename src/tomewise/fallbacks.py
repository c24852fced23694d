"""Fallbacks: a simpler step that replaces a step that failed. They are counted by kind.

A build writes one note for each kind, `fallback: KIND: COUNT`, into the notes of a `LayerReport`. The build record of a
layer, `store.notes(BUILDS)[LAYER]["fallbacks"]`, holds the sums over all its builds. An answer reports them in its last
event, `fallbacks`, which maps each kind to its count. Kinds are stable, because programs read them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from tomewise.run import change_run, current_run

GIST_REPEATED = "gist asked for again"
GIST_REPLACED = "passage in place of its gist"
NOT_DECOMPOSED = "question asked whole"
NOT_FOLLOWED_UP = "question searched once"
NO_KEYWORDS = "searched with the question in place of keywords"
NOT_RECOGNISED = "facts not filtered"
NOT_SELECTED = "nodes not selected"
NO_WALK = "ranked by cosine alone"
ASKED_ALONE = "passage asked alone"
REPLY_SKIPPED = "reply skipped"
PART_SKIPPED = "part of a reply skipped"


@contextmanager
def count_fallbacks() -> Iterator[Counter[str]]:
    """Count the fallbacks inside this context, also those of tasks and threads that start inside it."""
    counts = Counter[str]()
    with change_run(fallbacks=(*current_run().fallbacks, counts)):
        yield counts


def record_fallback(kind: str, times: int = 1) -> None:
    """Count a fallback in every `count_fallbacks` that is open."""
    for counts in current_run().fallbacks:
        counts[kind] += times


def write_notes(counts: Mapping[str, int]) -> list[str]:
    """The notes for a report: `fallback: KIND: COUNT` for each kind that occurred."""
    return [f"fallback: {kind}: {count}" for kind, count in counts.items() if count]
