"""Evidence collected over several searches of one question."""

from __future__ import annotations

from collections.abc import Sequence

from tomewise.loops.events import as_event_detail, list_facts
from tomewise.types import Event, Evidence, NodeId


class Collection:
    """Pieces of evidence in the order in which they were found, each once; `most` bounds them, None does not."""

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        self._pieces: dict[NodeId, Evidence] = {}

    @property
    def pieces(self) -> list[Evidence]:
        return list(self._pieces.values())

    @property
    def is_full(self) -> bool:
        return self._most is not None and len(self._pieces) >= self._most

    def take(self, query: str, found: Sequence[Evidence], step: int) -> Event:
        """Add what a search found as far as there is room. Returns the event, which holds what is new."""
        new: list[Evidence] = []
        for piece in found:
            if piece.node not in self._pieces and not self.is_full:
                self._pieces[piece.node] = piece
                new.append(piece)
        summary = list_facts(query=query, new=len(new), collected=len(self._pieces))
        detail = {"query": query, "evidence": as_event_detail(new), "collected": len(self._pieces)}
        return Event(name="recalled", step=step, summary=summary, detail=detail)
