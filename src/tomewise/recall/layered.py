"""Recall from several memory layers at once (ComoRAG's Tri-Retrieve, section 2.3)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tomewise.calls import CallCount, read_calls, sum_calls
from tomewise.types import Evidence, Retriever, Scope

Found = Mapping[str, list[Evidence]]


@dataclass(frozen=True, eq=False)
class LayeredRecall:
    """One retriever for each layer; all of them run concurrently. Layers keep the order in which they are given."""

    retrievers: Mapping[str, Retriever]

    @property
    def layers(self) -> tuple[str, ...]:
        return tuple(self.retrievers)

    @property
    def calls(self) -> CallCount:
        """The calls of one query."""
        return sum_calls(map(read_calls, self.retrievers.values()))

    async def retrieve(self, queries: Sequence[str], limit: int, *, within: Scope | None = None) -> list[Found]:
        """For each query the evidence from each layer, best first. All of it is within the scope."""

        async def search(query: str) -> Found:
            searches = (retriever.retrieve(query, limit, within=within) for retriever in self.retrievers.values())
            return dict(zip(self.retrievers, await asyncio.gather(*searches), strict=True))

        return await asyncio.gather(*map(search, queries))
