"""Passages and schemata as the nodes of one memory: their cosines, links and children; and recall over them.

Recall without a model ranks all levels at once, or goes from the top down; with one, it prunes what was found, and what
is left grows along the links (CAM, sections 4.2 and 5.4).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeAlias

import numpy as np

from tomewise.calls import CallCount
from tomewise.language.roles import SELECT_NODES, SelectIn, Shown
from tomewise.language.usage import estimate_tokens
from tomewise.language.wrapped import find_room
from tomewise.memory.build_records import read_build
from tomewise.memory.schemata.schemata_names import SchemataNames
from tomewise.recall.array_types import Keys, Vectors, sort_keys
from tomewise.recall.derived import DerivedNodes
from tomewise.recall.ranking import PlainSearch, pair_scores, rank_evidence, score_by_place
from tomewise.run import NOT_SELECTED, ask_or_fall_back
from tomewise.store.contract import Store
from tomewise.store.lookups import read_pairs, read_sources
from tomewise.store.nearest import find_top
from tomewise.store.records import PASSAGES
from tomewise.types import Embedder, Evidence, LanguageModel, Scope

_WINDOW_SHARE = 0.8  # of the window that a pool may take: the prompt has words of its own


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


@dataclass(frozen=True)
class PruneAndGrow:
    """The `seeds` nearest nodes of all levels; then in rounds those of their neighbours and children that help.

    In each round a model selects from a pool: at first the seeds, then the neighbours and children of all that was
    selected. The search ends after `rounds`, when the model selects nothing, or when nothing is left to offer. What was
    selected is the evidence, and nothing else; if nothing was, the seeds are, as in the released code. The paper leaves
    open how large a pool is: here it is what the model's window holds, the nearest first.

    With `fill`, ours, a pool of fewer nodes is filled to so many with the nearest that were not offered yet, so that
    the search ends at a full pool of which nothing helps.

    `show` writes evidence for a prompt.
    """

    nodes: SchemataNodes
    model: LanguageModel
    show: Show
    seeds: int = 5
    rounds: int = 5
    fill: int = 0

    @property
    def calls(self) -> CallCount:
        return CallCount(f"1 a round, at most {self.rounds}", self.rounds)

    async def retrieve(self, query: str, limit: int, *, within: Scope | None = None) -> list[Evidence]:
        """The first `limit` nodes that were selected, in the order in which they were; a score is 1 / rank."""
        if not limit:
            return []
        scores = await asyncio.to_thread(self.nodes.score, query, within)
        seeds = await asyncio.to_thread(self.nodes.load_best, scores, self.seeds)
        active, pool, offered = dict[int, Evidence](), seeds, set[int]()
        for _ in range(self.rounds):
            if len(pool) < self.fill:
                pool = await asyncio.to_thread(self._fill, scores, pool, offered)
            offered |= pool.keys()
            chosen = await self._select(query, pool) if pool else {}
            if not chosen:
                break
            active |= chosen
            pool = await asyncio.to_thread(self._grow, scores, active)
        return score_by_place([*(active or seeds).values()], limit)

    async def _select(self, query: str, pool: Mapping[int, Evidence]) -> dict[int, Evidence]:
        """What the model keeps of the pool; nothing if its reply is unreadable."""
        shown = await asyncio.to_thread(self.show, list(pool.values()))
        nodes = [item.model_copy(update={"label": str(number)}) for number, item in enumerate(shown, start=1)]
        reply = await ask_or_fall_back(self.model, SELECT_NODES, SelectIn(question=query, nodes=nodes), NOT_SELECTED)
        keys = list(pool)
        kept = [keys[number - 1] for number in reply.keep if 1 <= number <= len(keys)] if reply else []
        return {key: pool[key] for key in kept}

    def _grow(self, scores: Scores, active: Mapping[int, Evidence]) -> dict[int, Evidence]:
        """The neighbours and children of what is active, as far as they fit into the window, the nearest first."""
        links = (self.nodes.find_neighbours(active), read_sources(self.nodes.store, active, self.nodes.layer))
        found = {key for near in links for keys in near.values() for key in keys} - active.keys()
        return self._fit(self.nodes.load_best(scores, len(found), found))

    def _fill(self, scores: Scores, pool: Mapping[int, Evidence], offered: Collection[int]) -> dict[int, Evidence]:
        """The pool, and behind it the nearest nodes that were not `offered`, up to `fill`, as far as they fit."""
        left = set(scores[0].tolist()).difference(offered, pool)
        return self._fit({**pool, **self.nodes.load_best(scores, self.fill - len(pool), left)})

    def _fit(self, pieces: Mapping[int, Evidence]) -> dict[int, Evidence]:
        """The first that fit into the window."""
        room = _WINDOW_SHARE * find_room(self.model, SELECT_NODES)
        sizes = accumulate(estimate_tokens(f"{piece.title}\n{piece.text}") for piece in pieces.values())
        return {key: piece for (key, piece), size in zip(pieces.items(), sizes, strict=True) if size <= room}
