"""The search that the retrievers of all frameworks share, with its evidence as plain data."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from tomewise.outgoing.passage_models import Evidence
from tomewise.place import describe_place, read_plain_data
from tomewise.tome.reports import describe_evidence

if TYPE_CHECKING:
    from tomewise.tome.tome import Tome
    from tomewise.types import Evidence as Found

Piece: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A search in a tome, as `Tome.search` takes it.

    A piece of evidence has a `node` (its id), a `text`, a `score` and `metadata`: `source` (its name and its place, for
    people), `title`, `place` (headings, pages, times), `layer`, `score`, and `document`, `passage` (the id) and
    `position` of the first passage that supports it. `sources` has these three for all of its passages. Beside these
    stand the fields of its document, such as `author`, but for those that have one of these names.
    """

    tome: Tome
    system: str | None = None
    limit: int = 10
    documents: Sequence[str] = ()
    where: Sequence[str] = ()

    def run(self, query: str) -> list[Piece]:
        """The pieces of evidence, best first. Raises what `Tome.search` raises."""
        return self._describe(self.tome.search(query, **self._settings))

    async def arun(self, query: str) -> list[Piece]:
        """See `run`."""
        return await asyncio.to_thread(self._describe, await self.tome.asearch(query, **self._settings))

    @property
    def _settings(self) -> dict[str, Any]:
        return {"system": self.system, "limit": self.limit, "documents": self.documents, "where": self.where}

    def _describe(self, evidence: Sequence[Found]) -> list[Piece]:
        return [_describe_piece(row) for row in describe_evidence(evidence, self.tome.store)]


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
