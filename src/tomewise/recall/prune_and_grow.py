"""Recall over the schemata along their links: a model prunes what was found, and what is left grows (CAM, 4.2)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice

from tomewise.calls import CallCount
from tomewise.errors import BadReply, Refused
from tomewise.fallbacks import NOT_SELECTED, record_fallback
from tomewise.language.roles import SELECT_NODES, SelectIn
from tomewise.language.usage import estimate_tokens
from tomewise.recall.ranking import take_turns
from tomewise.recall.schemata_nodes import SchemataNodes, Scores
from tomewise.types import Evidence, LanguageModel, Scope

_POOL_TOKENS = 4000  # of the texts that are offered in one round, and of those shown as already kept
_MOST_OFFERED = 50  # texts that are offered in one round, however short
_REPEATS = 2  # of a question whose reply was unreadable


class PruneAndGrow:
    """The `seeds` nearest nodes of all levels; then in rounds those of their neighbours and children that help.

    In each round a model selects from a pool, at first the seeds, then the neighbours and children of all that was
    selected, best first as far as they fit into the pool's tokens. The search ends after `rounds`, when the model
    selects nothing, or when nothing is left to offer. What was selected is the evidence; the seeds are it if nothing
    was. The paper leaves open how a pool is bounded and when it has stopped growing. Ours: no node is offered twice,
    so that every pool is new; what was selected is shown beside the pool.
    """

    def __init__(self, nodes: SchemataNodes, model: LanguageModel, *, seeds: int = 5, rounds: int = 5) -> None:
        self._nodes = nodes
        self._model = model
        self._seeds = seeds
        self._rounds = rounds

    @property
    def calls(self) -> CallCount:
        return CallCount(f"1 a round, at most {self._rounds}", self._rounds)

    async def retrieve(self, query: str, limit: int, *, within: Scope | None = None) -> list[Evidence]:
        """What the model kept, at most `limit`: the first choice of each round, the last round first, then the second.

        A score is 1 / rank. Where the model keeps nothing, the seeds are the evidence, and scores are cosines.
        """
        if not limit:
            return []
        scores = await asyncio.to_thread(self._nodes.score, query, within)
        seeds = await asyncio.to_thread(self._nodes.load_evidence, scores.find_best(self._seeds), self._seeds)
        rounds = await self._explore(query, scores, seeds)
        if not rounds:
            return sorted(seeds.values(), key=lambda piece: (-piece.score, piece.node))[:limit]
        kept = islice(take_turns(rounds[::-1]), limit)
        return [replace(piece, score=1 / rank) for rank, piece in enumerate(kept, start=1)]

    async def _explore(self, query: str, scores: Scores, seeds: Mapping[int, Evidence]) -> list[list[Evidence]]:
        """What the model keeps, round by round, the most useful first."""
        rounds: list[list[Evidence]] = []
        active: dict[int, Evidence] = {}
        offered: set[int] = set()
        pool = seeds
        for _ in range(self._rounds):
            chosen = await self._select(query, active, pool)
            if not chosen:
                break
            offered |= pool.keys()
            active |= chosen
            rounds.append(list(chosen.values()))
            pool = await asyncio.to_thread(self._grow, scores, active, offered)
            if not pool:
                break
        return rounds

    async def _select(
        self, query: str, active: Mapping[int, Evidence], pool: Mapping[int, Evidence]
    ) -> dict[int, Evidence]:
        """What the model keeps of the pool; nothing if its replies are unreadable."""
        known = _fit_texts(sorted(active.values(), key=lambda piece: (-piece.score, piece.node)))
        given = SelectIn(question=query, nodes=[_write_text(piece) for piece in pool.values()], known=known)
        for _ in range(1 + _REPEATS):
            try:
                reply = await self._model.ask(SELECT_NODES, given)
            except (BadReply, Refused):
                record_fallback(NOT_SELECTED)
                continue
            numbered = dict(enumerate(pool.items(), start=1))
            return dict(numbered[number] for number in dict.fromkeys(reply.keep) if number in numbered)
        return {}

    def _grow(self, scores: Scores, active: Mapping[int, Evidence], offered: set[int]) -> dict[int, Evidence]:
        """The neighbours and children of what is active that were not offered yet, best first, as far as they fit."""
        near = self._nodes.find_neighbours(active) | self._nodes.find_children(active)
        best = scores.take(near - offered).find_best(_MOST_OFFERED)
        found = self._nodes.load_evidence(best, _MOST_OFFERED)
        fitting = len(_fit_texts(list(found.values())))
        return dict(list(found.items())[:fitting])


def _fit_texts(evidence: Sequence[Evidence]) -> list[str]:
    """The texts of the first pieces, as many as fit into the pool's tokens, at least one."""
    texts: list[str] = []
    room = _POOL_TOKENS
    for piece in evidence:
        text = _write_text(piece)
        room -= estimate_tokens(text)
        if room < 0 and texts:
            break
        texts.append(text)
    return texts


def _write_text(piece: Evidence) -> str:
    return f"{piece.title}\n{piece.text}" if piece.title else piece.text
