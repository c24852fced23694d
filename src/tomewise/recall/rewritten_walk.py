"""Passages by the mass of a walk, then by rewrites of the question, then by how much of the question they cover."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from tomewise.calls import CallCount, read_calls
from tomewise.recall.coverage import Coverage
from tomewise.recall.diffusion import Diffusion, ReachedPassages, complete_evidence
from tomewise.recall.leads import Leads
from tomewise.recall.ranking import rank_passages
from tomewise.recall.rewriting import Rewriter, put_first, sort_ranking
from tomewise.store.nearest import find_top
from tomewise.types import Evidence, Scope

if TYPE_CHECKING:
    from tomewise.store.contract import Readable


class RewrittenWalk:
    """Ours: a passage's score is its mass relative to the greatest, plus its lift (`rewriting.Rewriter`).

    The first passages of the walk lead to the rewrites. `coverage` then orders the best again. What is first without
    lifts stays first (`rewriting.put_first`). If the walk reaches nothing, passages are ranked by cosine, and nothing
    is rewritten.
    """

    def __init__(
        self, store: Readable, diffusion: Diffusion, leads: Leads, rewriter: Rewriter, coverage: Coverage
    ) -> None:
        self._store = store
        self._diffusion = diffusion
        self._leads = leads
        self._rewriter = rewriter
        self._coverage = coverage

    @property
    def calls(self) -> CallCount:
        return read_calls(self._diffusion)

    async def retrieve(self, query: str, limit: int, *, within: Scope | None = None) -> list[Evidence]:
        """The `limit` best passages; scores are relative to the best, or cosine - 1 for what nothing led to."""
        return await asyncio.to_thread(self._rank, query, await self._diffusion.spread(query, within), limit)

    def _rank(self, query: str, reached: ReachedPassages, limit: int) -> list[Evidence]:
        if not len(reached.keys):
            return complete_evidence(self._store, reached, reached.keys, reached.masses, limit)
        count = self._rewriter.rewriting.passages
        best = find_top(reached.masses, count)
        first = rank_passages(self._store, reached.keys[best].tolist(), reached.masses[best].tolist(), count)
        leads = self._leads.find_leads(query, first)
        lifts = self._rewriter.find_lifts(query, reached.vector, leads, reached.among)
        walked, lifted = self._coverage.reorder(
            query,
            [sort_ranking(reached.keys, reached.masses), sort_ranking(*lifts.add_to(reached.keys, reached.masses))],
        )
        keys, scores = put_first(walked[0][0], lifted)
        brought = lifts.select_brought(walked[0].tolist(), keys[:limit].tolist())
        found = replace(reached, keys=keys, masses=scores)
        return complete_evidence(self._store, found, keys[:limit], scores[:limit], limit, brought)
