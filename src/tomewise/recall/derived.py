"""Dense recall over a layer of derived texts: summaries, windows of a story, gists."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tomewise.memory.grounds import find_grounds
from tomewise.recall.ranking import top
from tomewise.types import Embedder, Evidence, PassageId

if TYPE_CHECKING:
    from tomewise.store.sqlite.store import SqliteStore


class DenseDerived:
    """Nodes of one layer by cosine with the query, all levels searched as one (RAPTOR's collapsed tree).

    `layer` names the nodes, their vectors and the layer of the evidence. Scores are cosines.
    """

    def __init__(self, store: SqliteStore, embedder: Embedder, layer: str) -> None:
        self._store = store
        self._embedder = embedder
        self._layer = layer
        self._grounds = Grounds(store, layer)

    async def retrieve(self, query: str, limit: int) -> list[Evidence]:
        """The `limit` nearest nodes with the passages below them."""
        return await asyncio.to_thread(self._retrieve, query, limit)

    def _retrieve(self, query: str, limit: int) -> list[Evidence]:
        columns = self._store.vectors(self._layer)
        if not len(columns.stored_keys):
            return []
        scores = columns.stored_rows @ self._embedder.embed([query])[0]
        if columns.live is not None:
            scores = np.where(columns.live, scores, -np.inf)
        best = top(scores, limit)
        nearest = dict(zip(columns.stored_keys[best].tolist(), scores[best].tolist(), strict=True))
        nodes = self._store.nodes_at(nearest)
        order = sorted(nodes, key=lambda key: (-round(nearest[key], 6), nodes[key].id))[:limit]
        below = self._grounds.below(order)
        return [
            Evidence(
                node=nodes[key].id,
                layer=self._layer,
                text=nodes[key].text,
                score=round(nearest[key], 6),
                sources=below[key],
            )
            for key in order
        ]


class Grounds:
    """The passages that nodes of one layer rest on, read once for as long as the layer stays as it is."""

    def __init__(self, store: SqliteStore, layer: str) -> None:
        self._store = store
        self._layer = layer
        self._known: tuple[int, dict[int, tuple[PassageId, ...]]] = (0, {})  # of which version

    def below(self, keys: Iterable[int]) -> Mapping[int, tuple[PassageId, ...]]:
        """For each node the passages, however many levels down, in document order."""
        wanted = list(keys)
        version = self._store.version(f"edges/made-of:{self._layer}")
        if self._known[0] != version:
            self._known = (version, {})
        known = self._known[1]  # should another thread replace it now, this one is right nonetheless
        known.update(self._read([key for key in wanted if key not in known]))
        return {key: known[key] for key in wanted}

    def _read(self, roots: Sequence[int]) -> dict[int, tuple[PassageId, ...]]:
        found = find_grounds(self._store, roots, self._layer)
        passages = self._store.passages({key for some in found.values() for key in some})
        order = {key: (passage.document, passage.position) for key, passage in passages.items()}
        # A passage may have gone between two reads.
        left = {
            root: sorted((key for key in some if key in order), key=order.__getitem__) for root, some in found.items()
        }
        return {root: tuple(passages[key].id for key in some) for root, some in left.items()}
