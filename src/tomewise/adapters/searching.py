"""The search that the retrievers of all frameworks share, with its evidence as plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from tomewise.types import Evidence
from tomewise.types.place import describe_place

if TYPE_CHECKING:
    from tomewise.tome.view import TomeView

Piece: TypeAlias = dict[str, Any]


def find_pieces(tome: TomeView, query: str, system: str | None, limit: int) -> list[Piece]:
    """The pieces of evidence of `Tome.search`, best first. Raises what it raises.

    A piece of evidence has an `id`, a `text`, a `score` and `metadata`: `source` (its name and its place, for
    people), `title`, `place` (headings, pages, times), `layer`, `score`, and `document`, `passage` (the id) and
    `position` of the first passage that supports it. `sources` has these three for all of its passages. Beside these
    stand the fields of its document, such as `author`, but for those that have one of these names.
    """
    return list(map(_describe, tome.search(query, system=system, limit=limit)))


async def afind_pieces(tome: TomeView, query: str, system: str | None, limit: int) -> list[Piece]:
    """See `find_pieces`."""
    return list(map(_describe, await tome.asearch(query, system=system, limit=limit)))


def _describe(piece: Evidence) -> Piece:
    first = piece.origins[0] if piece.origins else None
    place = describe_place(piece.place, first.position + 1 if first else None)
    source = ", ".join(filter(None, (piece.title or (first.document if first else ""), place)))
    plain = piece.to_dict()
    return {
        "id": piece.id,
        "text": piece.text,
        "score": piece.score,
        "metadata": {
            **piece.metadata,
            "source": source,
            **{name: plain[name] for name in ("title", "place", "layer", "score")},
            "sources": plain["origins"],
            **(first.to_dict() if first else {}),
        },
    }
