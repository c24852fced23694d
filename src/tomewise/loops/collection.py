"""Evidence collected over several searches of one question."""

from __future__ import annotations

from collections.abc import Sequence

from tomewise.events import Collected, as_pieces
from tomewise.recall.ranking import take_turns
from tomewise.types import Evidence, NodeId


class Collection:
    """Pieces of evidence, each once; `most` bounds them, None does not."""

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        self._searches: list[list[Evidence]] = []  # what each search found first
        self._known: set[NodeId] = set()

    @property
    def pieces(self) -> list[Evidence]:
        """The best of each search, the latest search first; then the second best of each, and so on.

        So what the last search found is shown even where few pieces fit.
        """
        return list(take_turns(self._searches[::-1]))

    @property
    def is_full(self) -> bool:
        return self._most is not None and len(self._known) >= self._most

    def add(self, query: str, found: Sequence[Evidence], step: int) -> Collected:
        """Add what a search found until the collection is full. Returns the event, which holds what is new."""
        new: list[Evidence] = []
        for piece in found:
            if piece.node not in self._known and not self.is_full:
                self._known.add(piece.node)
                new.append(piece)
        self._searches.append(new)
        return Collected(step=step, query=query, evidence=as_pieces(new), collected=len(self._known))
