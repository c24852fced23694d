"""A retriever: the openings of documents that share words with the question, and the recall that it makes."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, TypeAlias

from tomewise.parts import CallCount, Count, Everything, Evidence, Kit, Recall, Retriever, Scope

Words: TypeAlias = Annotated[Count, "words of a passage that count"]


class Openings:
    """Passages ranked by the words they share with the query, earlier passages first where they share as many."""

    calls = CallCount("0", 0)

    def __init__(self, passages: Retriever, words: int) -> None:
        self._passages = passages
        self._words = words  # only so many words of a passage count

    async def retrieve(self, query: str, limit: int, *, within: Scope | None = None) -> list[Evidence]:
        """The `limit` best passages; scores count shared words."""
        wanted = set(query.lower().split())
        found = await self._passages.retrieve(query, 10_000, within=within)
        scores = {piece.id: len(wanted.intersection(piece.text.lower().split()[: self._words])) for piece in found}
        return [
            replace(piece, score=scores[piece.id])
            for piece in sorted(found, key=lambda piece: (-scores[piece.id], piece.id))[:limit]
        ]


def find_openings(kit: Kit, *, words: Words = 50) -> Recall:
    """Passages whose openings share words with the question."""
    return Recall(retriever=Openings(Everything(kit.store), words))
