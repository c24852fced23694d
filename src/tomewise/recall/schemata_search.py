"""Recall over the schemata without a model: all levels at once, or from the top down (CAM, sections 4.2 and 5.4)."""

from __future__ import annotations

import asyncio

from tomewise.calls import NO_CALLS
from tomewise.recall.schemata_nodes import SchemataNodes
from tomewise.types import Evidence, Scope


class GlobalSchemata:
    """Global retrieval: passages and schemata of all levels, ranked together by cosine with the query."""

    calls = NO_CALLS

    def __init__(self, nodes: SchemataNodes) -> None:
        self._nodes = nodes

    async def retrieve(self, query: str, limit: int, *, within: Scope | None = None) -> list[Evidence]:
        """The `limit` nearest nodes; scores are cosines."""
        return await asyncio.to_thread(self._retrieve, query, limit, within)

    def _retrieve(self, query: str, limit: int, within: Scope | None) -> list[Evidence]:
        best = self._nodes.score(query, within).find_best(limit)
        return list(self._nodes.load_evidence(best, limit).values())


class HierarchicalSchemata:
    """Hierarchical traversal: from the top, keep the `top_k` nearest nodes, then of their children, and so on.

    The top are the nodes below no schema, isolated passages among them. In a scope these are the nodes within that are
    below no schema within.
    """

    calls = NO_CALLS

    def __init__(self, nodes: SchemataNodes, *, top_k: int = 5) -> None:
        self._nodes = nodes
        self._top_k = top_k

    async def retrieve(self, query: str, limit: int, *, within: Scope | None = None) -> list[Evidence]:
        """The best `limit` of all nodes kept on the way down; scores are cosines."""
        return await asyncio.to_thread(self._retrieve, query, limit, within)

    def _retrieve(self, query: str, limit: int, within: Scope | None) -> list[Evidence]:
        scores = self._nodes.score(query, within)
        kept: dict[int, float] = {}
        candidates = self._nodes.find_roots(scores.keys)
        while candidates:
            best = scores.take(candidates).find_best(self._top_k)
            chosen = self._nodes.load_evidence(best, self._top_k)
            kept |= {key: best[key] for key in chosen}
            children = self._nodes.find_children(chosen).values()
            candidates = {child for below in children for child in below} - kept.keys()
        return list(self._nodes.load_evidence(kept, limit).values())
