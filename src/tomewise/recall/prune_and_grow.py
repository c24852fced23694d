"""Recall over the schemata along their links: a model prunes what was found, and what is left grows (CAM, 4.2)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from tomewise.calls import CallCount
from tomewise.errors import BadReply, Refused
from tomewise.language.choose_model import EXTRACTIVE
from tomewise.language.per_role import find_name
from tomewise.language.roles import SELECT_NODES, Candidate, SelectIn, Shown
from tomewise.language.usage import estimate_tokens
from tomewise.recall.ranking import drop_repeats, rank_evidence, score_by_place, take_turns
from tomewise.recall.schemata_nodes import SchemataNodes, Scores
from tomewise.run import NOT_SELECTED, record_fallback
from tomewise.types import Evidence, LanguageModel, Retriever, Scope

_POOL_TOKENS = 4000  # of the texts that are offered in one round, and of those shown as already kept
_MOST_OFFERED = 50  # texts that are offered in one round, however short
_REPEATS = 2  # of a question whose reply was unreadable
_KEPT, _BELOW_KEPT = 0.1, 0.05  # what a choice of the extractive model adds to a cosine

Show = Callable[[Sequence[Evidence]], list[Shown]]
Pool = Mapping[int, tuple[Evidence, str]]  # what is offered, by key, and how it was found


class PruneAndGrow:
    """The `seeds` nearest nodes of all levels; then in rounds those of their neighbours and children that help.

    In each round a model selects from a pool, at first the seeds, then the neighbours and children of all that was
    selected, best first as far as they fit into the pool's tokens. The search ends after `rounds`, when the model
    selects nothing, or when nothing is left to offer. What was selected is the evidence, and what `nearest` finds fills
    it up. The paper leaves open how a pool is bounded and when it has stopped growing. Ours: no node is offered twice,
    so that every pool is new; what was selected is shown beside the pool. `show` writes evidence for a prompt.

    The extractive model chooses by words, worse than a cosine does: what it keeps is not put first, but raised a little
    among the nearest.
    """

    def __init__(
        self,
        nodes: SchemataNodes,
        model: LanguageModel,
        nearest: Retriever,
        show: Show,
        *,
        seeds: int = 5,
        rounds: int = 5,
    ) -> None:
        self._nodes = nodes
        self._model = model
        self._nearest = nearest
        self._show = show
        self._seeds = seeds
        self._rounds = rounds

    @property
    def chooses(self) -> bool:
        """Whether a real model selects, which reads what it keeps."""
        return find_name(self._model, SELECT_NODES) != EXTRACTIVE

    @property
    def calls(self) -> CallCount:
        return CallCount(f"1 a round, at most {self._rounds}", self._rounds)

    async def retrieve(self, query: str, limit: int, *, within: Scope | None = None) -> list[Evidence]:
        """What the model kept, then the nearest passages, `limit` in all; a score is 1 / rank.

        What was kept stands by turns: the first choice of each round, the last round first, then the second. With the
        extractive model, all is ranked by cosine and what was kept is raised; a score is that sum.
        """
        if not limit:
            return []
        scores = await asyncio.to_thread(self._nodes.score, query, within)
        seeds = await asyncio.to_thread(self._nodes.load_evidence, scores.find_best(self._seeds), self._seeds)
        rounds = await self._explore(query, scores, seeds)
        found = await self._nearest.retrieve(query, limit, within=within)
        if not self.chooses:
            return await asyncio.to_thread(self._raise_kept, scores, rounds, found, limit)
        kept = take_turns([list(chosen.values()) for chosen in rounds[::-1]])
        return score_by_place(drop_repeats([*kept, *found]), limit)

    async def _explore(self, query: str, scores: Scores, seeds: Mapping[int, Evidence]) -> list[dict[int, Evidence]]:
        """What the model keeps, round by round, the most useful first."""
        rounds: list[dict[int, Evidence]] = []
        active: dict[int, Evidence] = {}
        offered: set[int] = set()
        pool: Pool = {key: (piece, "") for key, piece in seeds.items()}
        known: Mapping[int, Evidence] = {}
        for _ in range(self._rounds):
            chosen = await self._select(query, list(known.values()), pool)
            if not chosen:
                break
            offered |= pool.keys()
            active |= chosen
            rounds.append(chosen)
            known = _fit_texts(sorted(active.items(), key=lambda item: (-item[1].score, item[1].node)))
            pool = await asyncio.to_thread(self._grow, scores, active, list(known), offered)
            if not pool:
                break
        return rounds

    async def _select(self, query: str, known: Sequence[Evidence], pool: Pool) -> dict[int, Evidence]:
        """What the model keeps of the pool; nothing if its replies are unreadable."""
        shown = await asyncio.to_thread(self._show, [piece for piece, _ in pool.values()])
        nodes = [
            Candidate(**{**dict(item), "label": str(number), "found": how})
            for number, (item, (_, how)) in enumerate(zip(shown, pool.values(), strict=True), start=1)
        ]
        given = SelectIn(question=query, nodes=nodes, known=await asyncio.to_thread(self._show, known))
        for _ in range(1 + _REPEATS):
            try:
                reply = await self._model.ask(SELECT_NODES, given)
            except (BadReply, Refused):
                record_fallback(NOT_SELECTED)
                continue
            numbered = dict(enumerate(((key, piece) for key, (piece, _) in pool.items()), start=1))
            return dict(numbered[number] for number in dict.fromkeys(reply.keep) if number in numbered)
        return {}

    def _grow(self, scores: Scores, active: Mapping[int, Evidence], known: Sequence[int], offered: set[int]) -> Pool:
        """The neighbours and children of what is active that were not offered yet, best first, as far as they fit.

        How they were found names the number of the finding among `known`, where it is one of these.
        """
        numbers = {key: number for number, key in enumerate(known, start=1)}
        how: dict[int, str] = {}
        for words, near in (
            ("part of", self._nodes.find_children(active)),
            ("linked with", self._nodes.find_neighbours(active)),
        ):
            for key in sorted(near, key=lambda key: (numbers.get(key, len(active) + 1), key)):
                for each in near[key]:
                    how.setdefault(each, f"{words} finding {numbers[key]}" if key in numbers else "")
        best = scores.take(how.keys() - offered).find_best(_MOST_OFFERED)
        found = _fit_texts(self._nodes.load_evidence(best, _MOST_OFFERED).items())
        return {key: (piece, how[key]) for key, piece in found.items()}

    def _raise_kept(
        self, scores: Scores, rounds: Sequence[Mapping[int, Evidence]], nearest: Sequence[Evidence], limit: int
    ) -> list[Evidence]:
        kept = {key: piece for chosen in rounds for key, piece in chosen.items()}
        below = {child for children in self._nodes.find_children(kept).values() for child in children} - kept.keys()
        parts = self._nodes.load_evidence(scores.take(below).find_best(len(below)))
        whole = {piece.node: piece for piece in nearest}
        for pieces, more in ((parts, _BELOW_KEPT), (kept, _KEPT)):
            whole |= {piece.node: replace(piece, score=round(piece.score + more, 6)) for piece in pieces.values()}
        return rank_evidence(whole.values(), limit)


def _fit_texts(pieces: Iterable[tuple[int, Evidence]]) -> dict[int, Evidence]:
    """The first pieces by key, as many as fit into the pool's tokens, at least one."""
    fitting: dict[int, Evidence] = {}
    room = _POOL_TOKENS
    for key, piece in pieces:
        room -= estimate_tokens(f"{piece.title}\n{piece.text}")
        if room < 0 and fitting:
            break
        fitting[key] = piece
    return fitting
