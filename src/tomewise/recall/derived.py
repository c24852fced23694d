"""Dense recall over a layer of derived texts: summaries, windows of a story, gists."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from tomewise.calls import NO_CALLS
from tomewise.memory.grounds import find_grounds
from tomewise.store.lifetimes import list_source_spaces
from tomewise.types import Embedder, Evidence, Layer, PassageId, Scope

if TYPE_CHECKING:
    from tomewise.store.contract import Readable


class DenseDerived:
    """Nodes of one layer, ranked by cosine with the query; all levels together (RAPTOR's collapsed tree).

    `layer`, or its name, is that of the nodes, of the space of their vectors, and of the evidence, which is of the kind
    that the layer declares. A node is within a scope if all passages that it was made from are.
    """

    calls = NO_CALLS

    def __init__(self, store: Readable, embedder: Embedder, layer: str | Layer) -> None:
        self._store = store
        self._embedder = embedder
        self._layer = layer if isinstance(layer, str) else layer.name
        self._kind = str(getattr(layer, "kind", ""))
        self._grounds = Grounds(store, self._layer)

    async def retrieve(self, query: str, limit: int, *, within: Scope | None = None) -> list[Evidence]:
        """The `limit` nearest nodes, each with the passages it was made from as sources; scores are cosines."""
        return await asyncio.to_thread(self._retrieve, query, limit, within)

    def _retrieve(self, query: str, limit: int, within: Scope | None) -> list[Evidence]:
        among = self._store.keys_within(within, self._layer)
        found = self._store.nearest(self._layer, self._embedder.embed([query])[0], limit, among=among)
        nearest = dict(zip(found.keys.tolist(), found.cosines.tolist(), strict=True))
        nodes = self._store.nodes_at(nearest)
        order = sorted(nodes, key=lambda key: (-round(nearest[key], 6), nodes[key].id))[:limit]
        sources = self._grounds.find_passages_below(order)
        return [
            Evidence(
                node=nodes[key].id,
                layer=self._layer,
                text=nodes[key].text,
                score=round(nearest[key], 6),
                sources=sources[key],
                kind=self._kind,
            )
            for key in order
        ]


class Grounds:
    """The passages from which nodes of one layer were made. They are cached until the layer changes."""

    def __init__(self, store: Readable, layer: str) -> None:
        self._store = store
        self._layer = layer
        self._cache: tuple[Mapping[str, int], dict[int, tuple[PassageId, ...]]] = ({}, {})  # versions, passages by node

    def find_passages_below(self, keys: Iterable[int]) -> Mapping[int, tuple[PassageId, ...]]:
        """For each node the passages at the bottom of its tree, however many levels down, in document order."""
        wanted = list(keys)
        versions = self._store.versions(f"edges/{space}" for space in list_source_spaces(self._layer))
        if self._cache[0] != versions:
            self._cache = (versions, {})
        cache = self._cache[1]  # stays correct for `versions` even if another thread now replaces `self._cache`
        cache.update(self._read([key for key in wanted if key not in cache]))
        return {key: cache[key] for key in wanted}

    def _read(self, roots: Sequence[int]) -> dict[int, tuple[PassageId, ...]]:
        leaves = find_grounds(self._store, roots, self._layer)
        passages = self._store.passages({leaf for root_leaves in leaves.values() for leaf in root_leaves})
        order = {key: (passage.document, passage.position) for key, passage in passages.items()}
        # A passage may have been removed between the two reads.
        existing = {
            root: sorted((leaf for leaf in root_leaves if leaf in order), key=order.__getitem__)
            for root, root_leaves in leaves.items()
        }
        return {root: tuple(passages[leaf].id for leaf in root_leaves) for root, root_leaves in existing.items()}
