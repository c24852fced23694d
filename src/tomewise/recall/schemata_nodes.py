"""Passages and schemata as the nodes of one memory: their cosines, links and children; and recall over them.

Recall without a model ranks all levels at once, or goes from the top down; with one, it prunes what was found, and what
is left grows along the links (CAM, sections 4.2 and 5.4).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from tomewise.calls import CallCount
from tomewise.language.choose_model import EXTRACTIVE
from tomewise.language.forwarding import find_name
from tomewise.language.roles import SELECT_NODES, Candidate, SelectIn, Shown
from tomewise.language.usage import estimate_tokens
from tomewise.memory.build_records import read_build
from tomewise.memory.schemata.schemata_names import SchemataNames
from tomewise.recall.array_types import Keys, Vectors, sort_keys
from tomewise.recall.derived import DerivedNodes
from tomewise.recall.ranking import PlainSearch, drop_repeats, pair_scores, rank_evidence, score_by_place, take_turns
from tomewise.run import NOT_SELECTED, ask_or_fall_back
from tomewise.store.contract import Store
from tomewise.store.lookups import read_pairs, read_sources
from tomewise.store.nearest import find_top
from tomewise.store.records import PASSAGES
from tomewise.types import Embedder, Evidence, LanguageModel, Retriever, Scope

_POOL_TOKENS = 4000  # of the texts that are offered in one round, and of those shown as already kept
_MOST_OFFERED = 50  # texts that are offered in one round, however short
_REPEATS = 2  # of a question whose reply was unreadable
_KEPT, _BELOW_KEPT = 0.1, 0.05  # what a choice of the extractive model adds to a cosine


Scores: TypeAlias = tuple[Keys, Vectors]
"""Nodes that have a vector by keys (n,), and their cosines with one query (n,)."""


class SchemataNodes(DerivedNodes):
    """Reads the nodes of all levels. A schema is within a scope if all passages below it are."""

    store: Store

    def __init__(self, store: Store, embedder: Embedder, names: SchemataNames) -> None:
        super().__init__(store, names.layer, names.kind)
        self._embedder = embedder
        self._names = names

    def score(self, query: str, within: Scope | None) -> Scores:
        """The scores of all nodes."""
        vector = self._embedder.embed([query])[0]
        found = [
            self.store.scores(space, vector, among=self.store.keys_within(within, space))
            for space in (PASSAGES, self.layer)
        ]
        keys, values = (np.concatenate(parts) for parts in zip(*found, strict=True))
        if self.store.find_removed_ids(self.layer):
            # Until the next build a summary that is older than its members may tell of a passage that is gone.
            schemata = self.store.nodes(self.layer)
            is_exact = ~np.isin(keys, [key for key, node in schemata.items() if node.data.get("drift")])
            keys, values = keys[is_exact], values[is_exact]
        return keys, values

    def load_best(self, scores: Scores, limit: int, among: Collection[int] | None = None) -> dict[int, Evidence]:
        """The `limit` best nodes, of all or `among` these, as evidence by key, best first, ties by id."""
        keys, values = scores
        if among is not None:
            is_wanted = np.isin(keys, sort_keys(among))
            keys, values = keys[is_wanted], values[is_wanted]
        best = find_top(values, limit)
        return self.load_evidence(pair_scores(keys[best], values[best]), limit)

    def find_neighbours(self, keys: Collection[int]) -> dict[int, list[int]]:
        """For each of these nodes, the nodes that any level links with it.

        A passage that is in no cluster is a vertex of upper levels too.
        """
        wanted = sort_keys(keys)
        levels = read_build(self.store, self.layer).get("levels", 0)
        found: dict[int, list[int]] = {}
        for level in range(levels):
            pairs = read_pairs(self.store, self._names.links(level))
            for rows in (pairs, pairs[:, ::-1]):
                for key, neighbour in rows[np.isin(rows[:, 0], wanted)].tolist():
                    found.setdefault(key, []).append(neighbour)
        return found


@dataclass(frozen=True)
class GlobalSchemata(PlainSearch):
    """Global retrieval: passages and schemata of all levels, ranked together by cosine with the query."""

    nodes: SchemataNodes

    def _search(self, query: str, limit: int, within: Scope | None) -> list[Evidence]:
        return list(self.nodes.load_best(self.nodes.score(query, within), limit).values())


@dataclass(frozen=True)
class HierarchicalSchemata(PlainSearch):
    """Hierarchical traversal: from the top, keep the `top_k` nearest nodes, then of their children, and so on.

    The top are the nodes below no schema, isolated passages among them. In a scope these are the nodes within that are
    below no schema within.
    """

    nodes: SchemataNodes
    top_k: int = 5

    def _search(self, query: str, limit: int, within: Scope | None) -> list[Evidence]:
        scores = self.nodes.score(query, within)
        kept: dict[int, Evidence] = {}
        candidates = self.nodes.find_roots(scores[0])
        while candidates:
            best = self.nodes.load_best(scores, self.top_k, candidates)
            kept |= best
            candidates = self.nodes.find_children(best) - kept.keys()
        return rank_evidence(kept.values(), limit)


Show = Callable[[Sequence[Evidence]], list[Shown]]
Pool = Mapping[int, tuple[Evidence, str]]  # what is offered, by key, and how it was found


@dataclass(frozen=True)
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

    nodes: SchemataNodes
    model: LanguageModel
    nearest: Retriever
    show: Show
    seeds: int = 5
    rounds: int = 5

    @property
    def chooses(self) -> bool:
        """Whether a real model selects, which reads what it keeps."""
        return find_name(self.model, SELECT_NODES) != EXTRACTIVE

    @property
    def calls(self) -> CallCount:
        return CallCount(f"1 a round, at most {self.rounds}", self.rounds)

    async def retrieve(self, query: str, limit: int, *, within: Scope | None = None) -> list[Evidence]:
        """What the model kept, then the nearest passages, `limit` in all; a score is 1 / rank.

        What was kept stands by turns: the first choice of each round, the last round first, then the second. With the
        extractive model, all is ranked by cosine and what was kept is raised; a score is that sum.
        """
        if not limit:
            return []
        scores = await asyncio.to_thread(self.nodes.score, query, within)
        rounds = await self._explore(query, scores)
        found = await self.nearest.retrieve(query, limit, within=within)
        if not self.chooses:
            return await asyncio.to_thread(self._raise_kept, scores, rounds, found, limit)
        kept = take_turns([list(chosen.values()) for chosen in rounds[::-1]])
        return score_by_place(drop_repeats([*kept, *found]), limit)

    async def _explore(self, query: str, scores: Scores) -> list[dict[int, Evidence]]:
        """What the model keeps, round by round, the most useful first."""
        rounds: list[dict[int, Evidence]] = []
        active: dict[int, Evidence] = {}
        offered: set[int] = set()
        seeds = await asyncio.to_thread(self.nodes.load_best, scores, self.seeds)
        pool: Pool = {key: (piece, "") for key, piece in seeds.items()}
        known: Mapping[int, Evidence] = {}
        for _ in range(self.rounds):
            chosen = await self._select(query, list(known.values()), pool)
            if not chosen:
                break
            offered |= pool.keys()
            active |= chosen
            rounds.append(chosen)
            known = _fit_texts(sorted(active.items(), key=lambda item: (-item[1].score, item[1].id)))
            pool = await asyncio.to_thread(self._grow, scores, active, list(known), offered)
            if not pool:
                break
        return rounds

    async def _select(self, query: str, known: Sequence[Evidence], pool: Pool) -> dict[int, Evidence]:
        """What the model keeps of the pool; nothing if its replies are unreadable."""
        shown = await asyncio.to_thread(self.show, [piece for piece, _ in pool.values()])
        nodes = [
            Candidate(**{**dict(item), "label": str(number), "found": how})
            for number, (item, (_, how)) in enumerate(zip(shown, pool.values(), strict=True), start=1)
        ]
        given = SelectIn(question=query, nodes=nodes, known=await asyncio.to_thread(self.show, known))
        for _ in range(1 + _REPEATS):
            reply = await ask_or_fall_back(self.model, SELECT_NODES, given, NOT_SELECTED)
            if reply is not None:
                keys = list(pool)
                kept = [keys[number - 1] for number in reply.keep if 1 <= number <= len(keys)]
                return {key: pool[key][0] for key in kept}
        return {}

    def _grow(self, scores: Scores, active: Mapping[int, Evidence], known: Sequence[int], offered: set[int]) -> Pool:
        """The neighbours and children of what is active that were not offered yet, best first, as far as they fit.

        How they were found names the number of the finding among `known`, where it is one of these.
        """
        numbers = {key: number for number, key in enumerate(known, start=1)}
        how: dict[int, str] = {}
        for words, near in (
            ("part of", read_sources(self.nodes.store, active, self.nodes.layer)),
            ("linked with", self.nodes.find_neighbours(active)),
        ):
            for key in sorted(near, key=lambda key: (numbers.get(key, len(active) + 1), key)):
                for each in near[key]:
                    how.setdefault(each, f"{words} finding {numbers[key]}" if key in numbers else "")
        found = _fit_texts(self.nodes.load_best(scores, _MOST_OFFERED, how.keys() - offered).items())
        return {key: (piece, how[key]) for key, piece in found.items()}

    def _raise_kept(
        self, scores: Scores, rounds: Sequence[Mapping[int, Evidence]], nearest: Sequence[Evidence], limit: int
    ) -> list[Evidence]:
        kept = {key: piece for chosen in rounds for key, piece in chosen.items()}
        below = self.nodes.find_children(kept) - kept.keys()
        parts = self.nodes.load_best(scores, len(below), below)
        whole = {piece.id: piece for piece in nearest}
        for pieces, more in ((parts, _BELOW_KEPT), (kept, _KEPT)):
            whole |= {piece.id: replace(piece, score=round(piece.score + more, 6)) for piece in pieces.values()}
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
