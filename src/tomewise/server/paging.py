"""Lists in pages: a reply has some rows, how many there are, and what to ask for next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import Query

from tomewise.outgoing.form import Outgoing

PAGE = 100
Limit = Annotated[int, Query(ge=1, le=1000)]
MOST_START = 10**12  # a larger number does not fit into a store
Start = Annotated[int, Query(ge=0, le=MOST_START)]


def make_page(name: str, rows: Sequence[Outgoing], key: str, after: str, limit: int) -> dict[str, Any]:
    """The rows, sorted by `key`, that come after a value of it. `next` is the `after` of the following page."""
    rest = sorted((row for row in rows if getattr(row, key) > after), key=lambda row: getattr(row, key))
    return {
        name: rest[:limit],
        "total": len(rows),
        "next": getattr(rest[limit - 1], key) if len(rest) > limit else None,
    }
