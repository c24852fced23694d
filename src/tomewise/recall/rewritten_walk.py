"""Passages by the mass of a walk, then by rewrites of the question, then by how much of the question they cover."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tomewise.calls import CallCount, read_calls
from tomewise.recall.coverage import Coverage
from tomewise.recall.diffusion import Diffusion, ReachedPassages, complete_evidence
from tomewise.recall.leads import Leads
from tomewise.recall.rewriting import Rewriter, put_first, sort_ranking
from tomewise.store.nearest import find_top
from tomewise.types import Evidence, Scope

if TYPE_CHECKING:
    from tomewise.store.contract import Readable

_LIFTED = 2000  # passages of the greatest mass that are ranked and compared with rewrites


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
        most = find_top(reached.masses, max(limit, _LIFTED))
        keys, masses = sort_ranking(reached.keys[most], reached.masses[most])
        # Rewrites are compared with what the walk reached best; where that is all, with every passage.
        among = np.sort(keys) if len(keys) < len(reached.keys) else reached.among
        first = self._store.passages(keys[: self._rewriter.rewriting.passages].tolist())
        leads = self._leads.find_leads(query, reached.vector, first)
        lifts = self._rewriter.find_lifts(query, reached.vector, leads, among)
        walked, lifted = self._coverage.reorder(query, [(keys, masses), sort_ranking(*lifts.add_to(keys, masses))])
        keys, scores = put_first(walked[0][0], lifted)
        brought = lifts.select_brought(walked[0].tolist(), keys[:limit].tolist())
        found = replace(reached, keys=keys, masses=scores)
        return complete_evidence(self._store, found, keys[:limit], scores[:limit], limit, brought)
