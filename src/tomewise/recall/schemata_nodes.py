"""Passages and schemata as the nodes of one memory: their cosines, links and children; and recall over them.

Recall without a model ranks all levels at once, or goes from the top down (CAM, sections 4.2 and 5.4).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from tomewise.memory.build_records import read_build
from tomewise.memory.schemata.schemata_names import SchemataNames
from tomewise.recall.array_types import Keys, Vectors, sort_keys
from tomewise.recall.derived import Grounds
from tomewise.recall.ranking import PlainSearch, pair_scores
from tomewise.store.contract import Store
from tomewise.store.lookups import read_pairs, read_sources
from tomewise.store.nearest import find_top
from tomewise.store.records import PASSAGES
from tomewise.types import Embedder, Evidence, Scope


@dataclass(frozen=True, eq=False)
class Scores:
    """Cosines with one query, `values` (n,), of nodes that have a vector, by `keys` (n,), ascending."""

    keys: Keys
    values: Vectors

    def take(self, wanted: Collection[int]) -> Scores:
        """The scores of those of these nodes that have one."""
        is_wanted = np.isin(self.keys, sort_keys(wanted))
        return Scores(self.keys[is_wanted], self.values[is_wanted])

    def find_best(self, limit: int) -> dict[int, float]:
        """The `limit` best nodes, and those that tie with the last of them."""
        best = find_top(self.values, limit)
        return pair_scores(self.keys[best], self.values[best])


class SchemataNodes:
    """Reads the nodes of all levels. A schema is within a scope if all passages below it are."""

    def __init__(self, store: Store, embedder: Embedder, names: SchemataNames) -> None:
        self._store = store
        self._embedder = embedder
        self._names = names
        self._grounds = Grounds(store, names.layer)

    def score(self, query: str, within: Scope | None = None) -> Scores:
        """The scores of all nodes."""
        vector = self._embedder.embed([query])[0]
        found = [
            self._store.scores(space, vector, among=self._store.keys_within(within, space))
            for space in (PASSAGES, self._names.layer)
        ]
        keys, values = (np.concatenate(parts) for parts in zip(*found, strict=True))
        order = np.argsort(keys)
        keys, values = keys[order], values[order]
        if self._store.find_removed_ids(self._names.layer):
            # Until the next build a summary that is older than its members may tell of a passage that is gone.
            schemata = self._store.nodes(self._names.layer)
            is_exact = ~np.isin(keys, [key for key, node in schemata.items() if node.data.get("drift")])
            keys, values = keys[is_exact], values[is_exact]
        return Scores(keys, values)

    def find_neighbours(self, keys: Collection[int]) -> dict[int, list[int]]:
        """For each of these nodes, the nodes that any level links with it.

        A passage that is in no cluster is a vertex of upper levels too.
        """
        wanted = sort_keys(keys)
        levels = read_build(self._store, self._names.layer).get("levels", 0)
        found: dict[int, list[int]] = {}
        for level in range(levels):
            ends = read_pairs(self._store, self._names.links(level)).T
            for near, far in (ends, ends[::-1]):
                is_near = np.isin(near, wanted)
                for key, neighbour in zip(near[is_near].tolist(), far[is_near].tolist(), strict=True):
                    found.setdefault(key, []).append(neighbour)
        return found

    def find_children(self, keys: Iterable[int]) -> dict[int, list[int]]:
        """For each of these nodes, the nodes that it was made from."""
        return read_sources(self._store, keys, self._names.layer)

    def find_roots(self, keys: Keys) -> set[int]:
        """Those of these nodes that are below none of these schemata."""
        parents, children = read_pairs(self._store, self._names.sources).T
        return set(np.setdiff1d(keys, children[np.isin(parents, keys)]).tolist())

    def load_evidence(self, scores: Mapping[int, float], limit: int | None = None) -> dict[int, Evidence]:
        """The `limit` best nodes as evidence by key, best first, ties by id."""
        return self._grounds.load_evidence(scores, self._names.kind, limit)


@dataclass(frozen=True, eq=False)
class GlobalSchemata(PlainSearch):
    """Global retrieval: passages and schemata of all levels, ranked together by cosine with the query."""

    nodes: SchemataNodes

    def _search(self, query: str, limit: int, within: Scope | None) -> list[Evidence]:
        best = self.nodes.score(query, within).find_best(limit)
        return list(self.nodes.load_evidence(best, limit).values())


@dataclass(frozen=True, eq=False)
class HierarchicalSchemata(PlainSearch):
    """Hierarchical traversal: from the top, keep the `top_k` nearest nodes, then of their children, and so on.

    The top are the nodes below no schema, isolated passages among them. In a scope these are the nodes within that are
    below no schema within.
    """

    nodes: SchemataNodes
    top_k: int = 5

    def _search(self, query: str, limit: int, within: Scope | None) -> list[Evidence]:
        scores = self.nodes.score(query, within)
        kept: dict[int, float] = {}
        candidates = self.nodes.find_roots(scores.keys)
        while candidates:
            best = scores.take(candidates).find_best(self.top_k)
            chosen = self.nodes.load_evidence(best, self.top_k)
            kept |= {key: best[key] for key in chosen}
            children = self.nodes.find_children(chosen).values()
            candidates = {child for below in children for child in below} - kept.keys()
        return list(self.nodes.load_evidence(kept, limit).values())
