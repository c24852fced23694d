"""The relations of a graph as pairs of entities, with all that passages say of each pair (LightRAG)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tomewise.memory.graph.fact_ends import read_fact_ends
from tomewise.memory.graph.graph_names import GraphNames
from tomewise.store.key_indices import find_known_indices
from tomewise.store.lifetimes import name_source_space
from tomewise.store.lookups import read_pairs
from tomewise.store.nearest import DECIMALS, find_top
from tomewise.types import NodeId, Scope

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tomewise.store.contract import Readable

    Keys = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Pairs of entities, each by its number, the index in `heads` and `tails` (n,), which are keys of entities.

    `facts` (m,) are the facts that join them, ascending, `numbers` (m,) the pair of each. `grounds` (k, 2) are pairs
    and passages, each pair and each of its passages once. All of it is within a scope.
    """

    store: Readable
    names: GraphNames
    heads: Keys
    tails: Keys
    facts: Keys
    numbers: Keys
    grounds: Keys

    @classmethod
    def read(cls, store: Readable, names: GraphNames, within: Scope) -> Pairs:
        """The pairs that facts within a scope join, with their passages within it."""
        ends = read_fact_ends(store, names)
        among = store.keys_within(within, names.facts)
        kept = np.ones(len(ends.keys), np.bool_) if among is None else np.isin(ends.keys, among)
        facts, heads, tails = ends.keys[kept], ends.heads[kept], ends.tails[kept]
        codes = np.minimum(heads, tails) << 32 | np.maximum(heads, tails)
        _, firsts, numbers = np.unique(codes, return_index=True, return_inverse=True)
        seen = read_pairs(store, name_source_space(names.facts, "any"))
        seen = seen[np.isin(seen[:, 0], facts)]
        passages = store.keys_within(within)
        seen = seen if passages is None else seen[np.isin(seen[:, 1], passages)]
        at, _ = find_known_indices(seen[:, 0], facts)
        grounds = np.unique(np.column_stack((numbers[at], seen[:, 1])), axis=0)
        return cls(store, names, heads[firsts], tails[firsts], facts, numbers, grounds)

    def rank_at(self, entities: Iterable[int], limit: int) -> list[int]:
        """The `limit` best pairs of these entities: by the neighbours of both ends together, then by passages."""
        keys = np.array(sorted(entities), np.int64)
        chosen = np.flatnonzero(np.isin(self.heads, keys) | np.isin(self.tails, keys))
        ends, counts = np.unique(np.concatenate((self.heads, self.tails)), return_counts=True)
        degrees = sum(counts[np.searchsorted(ends, side[chosen])] for side in (self.heads, self.tails))
        weights = np.bincount(self.grounds[:, 0], minlength=len(self.heads))
        return self._rank(chosen, degrees * (1.0 + weights.max(initial=0)) + weights[chosen], limit)

    def rank_near(self, vector: NDArray[np.float32], limit: int) -> list[int]:
        """The `limit` pairs of which a fact is nearest to a vector."""
        keys, scores = self.store.scores(self.names.facts, vector, among=self.facts)
        at, _ = find_known_indices(keys, self.facts)
        nearest = np.full(len(self.heads), -1.0)
        np.maximum.at(nearest, self.numbers[at], scores.round(DECIMALS))
        return self._rank(np.arange(len(nearest)), nearest, limit)

    def list_ends(self, order: Sequence[int]) -> list[NodeId]:
        """The entities of these pairs in their order, each once."""
        keys = np.column_stack((self.heads[order], self.tails[order])).ravel().tolist()
        nodes = self.store.nodes_at(dict.fromkeys(keys))
        return [node.id for node in nodes.values()]

    def list_facts(self, order: Sequence[int]) -> dict[int, list[int]]:
        """The facts of each of these pairs."""
        return _group(order, np.column_stack((self.numbers, self.facts)))

    def list_passages(self, order: Sequence[int]) -> dict[int, list[int]]:
        """The passages that say something of each of these pairs."""
        return _group(order, self.grounds)

    def _rank(self, chosen: Keys, scores: NDArray[np.float64], limit: int) -> list[int]:
        """The pairs `chosen` by their scores, ties by the ids of their ends."""
        best = find_top(scores, limit)
        found = dict(zip(chosen[best].tolist(), scores[best].tolist(), strict=True))
        ends = {number: (int(self.heads[number]), int(self.tails[number])) for number in found}
        nodes = self.store.nodes_at({key for pair in ends.values() for key in pair})
        known = [number for number in found if nodes.keys() >= {*ends[number]}]
        return sorted(known, key=lambda number: (-found[number], *(nodes[key].id for key in ends[number])))[:limit]


def _group(order: Sequence[int], rows: Keys) -> dict[int, list[int]]:
    """The second of each row by the first, for the numbers in `order`."""
    groups: dict[int, list[int]] = {number: [] for number in order}
    for number, key in rows[np.isin(rows[:, 0], np.array(order, np.int64))].tolist():
        groups[number].append(key)
    return groups
