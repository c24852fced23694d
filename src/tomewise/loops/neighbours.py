"""The passages around a hit: an answer often stands just after the words that a search finds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tomewise.recall.ranking import as_evidence
from tomewise.types import Evidence, Scope

if TYPE_CHECKING:
    from tomewise.store.sqlite.store import SqliteStore


class Neighbours:
    """Adds the passages that stand at most `distance` before or after a passage in its document."""

    def __init__(self, store: SqliteStore, distance: int) -> None:
        self._store = store
        self._distance = distance

    def add(self, found: Sequence[Evidence], within: Scope | None) -> list[Evidence]:
        """The evidence, each passage followed by its neighbours: the nearest first, of two the later one first.

        Neighbours have the score of their passage; no passage comes twice. A scope of entities admits no neighbours,
        since these need not see the entities.
        """
        if not self._distance or (within and (within.entities is not None or within.without_entities)):
            return list(found)
        keys = self._store.keys_of(piece.node for piece in found)
        around = self._store.find_neighbours(keys.values(), self._distance)
        passages = self._store.passages({key for keys_around in around.values() for key in keys_around})
        widened: dict[str, Evidence] = {}
        for piece in found:
            widened.setdefault(piece.node, piece)
            for key in around.get(keys.get(piece.node, 0), ()):
                if key in passages:
                    widened.setdefault(passages[key].id, as_evidence(passages[key], piece.score))
        return list(widened.values())
