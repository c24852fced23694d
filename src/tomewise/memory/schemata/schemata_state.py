"""The state of the schemata as the store keeps it: lists, links of all levels, and clusters with their members."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tomewise.memory.schemata.hierarchy import Hierarchy, fill_clusters
from tomewise.memory.schemata.network import Floats, Ints, Links, Lists, Passages
from tomewise.memory.schemata.schemata_names import SchemataNames, SchemataRules
from tomewise.store.contract import Store
from tomewise.store.lookups import read_edges, read_pairs, read_vectors

_UNKNOWN = -2  # the key of a cluster without a node; -1 is that of no member


@dataclass(frozen=True, eq=False)
class Base:
    """The passages in document order: their keys (n,), which are new to the layer, and the lists of the others."""

    keys: Ints
    is_new: NDArray[np.bool_]
    passages: Passages
    lists: Lists


@dataclass(frozen=True, eq=False)
class Stored:
    """The clusters of the last build that are left.

    `keys` are those of the passages and of the clusters' nodes, by name (see `Level`); `usable` (clusters,) says which
    summaries may go on.
    """

    hierarchy: Hierarchy
    keys: Ints
    usable: NDArray[np.bool_]

    def match_clusters(self, hierarchy: Hierarchy) -> Ints:
        """The keys of passages and of the nodes with the members of these clusters, by name, else -1."""
        stored = _find_member_keys(self.hierarchy.children, self.keys)
        stored_keys = self.keys[self.hierarchy.passages :].tolist()
        known = {
            row.tobytes(): key for row, key, usable in zip(stored, stored_keys, self.usable, strict=True) if usable
        }
        keys = np.concatenate((self.keys[: hierarchy.passages], np.full(len(hierarchy.children), _UNKNOWN)))
        for height in range(1, 1 + int(hierarchy.heights.max(initial=0))):
            at = np.flatnonzero(hierarchy.heights == height)
            rows = _find_member_keys(hierarchy.children[at], keys)
            keys[hierarchy.passages + at] = [known.get(row.tobytes(), _UNKNOWN) for row in rows]
        keys[keys == _UNKNOWN] = -1
        return keys

    def find_heirs(self, hierarchy: Hierarchy, clusters: Ints) -> Iterator[tuple[int, int, float]]:
        """For clusters, the key of the node with the most similar passages below it, and the share that differs."""
        leaves, stored = hierarchy.leaves[clusters], self.hierarchy.leaves
        shared = (leaves @ stored.T).tocoo()
        rows, columns = shared.coords
        larger = np.maximum(np.diff(leaves.indptr)[rows], np.diff(stored.indptr)[columns])
        distances = np.where(self.usable[columns], 1 - shared.data / larger, 2.0)
        order = np.lexsort((columns, distances, rows))
        firsts, at = np.unique(rows[order], return_index=True)
        best = order[at]
        keys = self.keys[self.hierarchy.passages + columns[best]]
        yield from zip(clusters[firsts].tolist(), keys.tolist(), distances[best].tolist(), strict=True)


def _find_member_keys(children: Ints, keys: Ints) -> Ints:
    """Rows of the keys of members, ascending, -1 for none."""
    return np.sort(np.where(children < 0, -1, keys[children]), axis=1)


def load_base(store: Store, names: SchemataNames, k: int) -> Base:
    """The passages of the tome, and the lists of those that the layer has processed."""
    keys, documents, positions = store.passage_order()
    intake = store.intake(names.layer)
    known = np.fromiter({*intake.done, *intake.failed}, np.int64)
    is_new = ~np.isin(keys, known)
    columns = read_vectors(store, "passages")
    passages = Passages(columns.rows, np.searchsorted(columns.keys, keys), documents, positions)
    table = read_edges(store, names.lists).rows
    owners, partners = find_indices(keys, table[:, 0]), find_indices(keys, table[:, 1])
    is_known = (owners >= 0) & (partners >= 0)
    is_known[is_known] = ~(is_new[owners[is_known]] | is_new[partners[is_known]])
    lists = Lists.from_entries(len(keys), k, owners[is_known], partners[is_known], table[is_known, 2])
    return Base(keys, is_new, passages, lists)


def load_stored(store: Store, names: SchemataNames, passages: Ints, without: Collection[int]) -> Stored:
    """The clusters of the last build; summaries `without` may not go on. `passages` are the keys of all passages."""
    parents, members = read_pairs(store, names.sources).T
    nodes, owners = np.unique(parents, return_inverse=True)  # a node is older than those made from it
    keys = np.concatenate((passages, nodes))
    children = fill_clusters(owners, find_indices(keys, members), len(nodes))
    usable = ~np.isin(nodes, np.fromiter(without, np.int64, len(without)))
    return Stored(Hierarchy(len(passages), children), keys, usable)


def load_shared(store: Store, base: Base, rules: SchemataRules) -> Links:
    """Links between passages that see the same entity, see `pair_passages`."""
    entities, passages = read_pairs(store, f"seen-in:{rules.entities}").T
    indices = find_indices(base.keys, passages)
    a, b = pair_passages(entities[indices >= 0], indices[indices >= 0], rules.k)
    return Links.from_pairs(a, b, base.passages.score(a, b, rules))


def pair_passages(entities: Ints, passages: Ints, most: int) -> tuple[Ints, Ints]:
    """All pairs of passages that see the same entity, for entities that 2 to `most` passages see.

    `entities` and `passages` (n,) say which passage sees which entity; no pair of these comes twice. An entity of more
    passages says little of each of them. (The paper does not state its rule.) A pair may be found more than once.
    """
    order = np.lexsort((passages, entities))
    entities, passages = entities[order], passages[order]
    _, groups, sizes = np.unique(entities, return_inverse=True, return_counts=True)
    is_rare = sizes[groups] <= most
    groups, passages = groups[is_rare], passages[is_rare]
    firsts, seconds = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for gap in range(1, most):
        is_pair = groups[gap:] == groups[:-gap]
        firsts.append(passages[:-gap][is_pair])
        seconds.append(passages[gap:][is_pair])
    return np.concatenate(firsts), np.concatenate(seconds)


def find_indices(keys: Ints, wanted: Floats | Ints) -> Ints:
    """The index in `keys` (n,), which are distinct and in any order, of each key wanted; -1 for other keys."""
    wanted = wanted.astype(np.int64)
    table = np.full(1 + max(int(keys.max(initial=0)), int(wanted.max(initial=0))), -1, np.int64)
    table[keys] = np.arange(len(keys))
    return table[wanted]
