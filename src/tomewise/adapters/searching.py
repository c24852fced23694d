"""The search that the retrievers of all frameworks share, with its evidence as plain data."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from tomewise.outgoing.passage_models import Evidence
from tomewise.place import describe_place, read_plain_data
from tomewise.tome.reports import describe_evidence

if TYPE_CHECKING:
    from tomewise.tome.view import TomeView
    from tomewise.types import Evidence as Found

Piece: TypeAlias = dict[str, Any]


def find_pieces(tome: TomeView, query: str, system: str | None, limit: int) -> list[Piece]:
    """The pieces of evidence of `Tome.search`, best first. Raises what it raises.

    A piece of evidence has a `node` (its id), a `text`, a `score` and `metadata`: `source` (its name and its place, for
    people), `title`, `place` (headings, pages, times), `layer`, `score`, and `document`, `passage` (the id) and
    `position` of the first passage that supports it. `sources` has these three for all of its passages. Beside these
    stand the fields of its document, such as `author`, but for those that have one of these names.
    """
    return _describe(tome, tome.search(query, system=system, limit=limit))


async def afind_pieces(tome: TomeView, query: str, system: str | None, limit: int) -> list[Piece]:
    """See `find_pieces`."""
    found = await tome.asearch(query, system=system, limit=limit)
    return await asyncio.to_thread(_describe, tome, found)


def _describe(tome: TomeView, evidence: Sequence[Found]) -> list[Piece]:
    return [_describe_piece(row) for row in describe_evidence(evidence, tome.store)]


def _describe_piece(piece: Evidence) -> Piece:
    first = piece.sources[0] if piece.sources else None
    place = describe_place(read_plain_data(piece.place), first.position + 1 if first else None)
    source = ", ".join(filter(None, (piece.title or (first.document if first else ""), place)))
    metadata = piece.model_dump(include={"title", "place", "layer", "score", "sources"})
    return {
        "node": piece.id,
        "text": piece.text,
        "score": piece.score,
        "metadata": {**piece.metadata, "source": source, **metadata, **(first.write() if first else {})},
    }
