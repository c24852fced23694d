"""The levels of the hierarchy: each clusters the vertices below it, until there are no fewer (CAM, section 4.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tomewise.memory.schemata.clusters import LEAST, MOST, find_clusters, sort_rows
from tomewise.memory.schemata.network import Floats, Ints, Links, Network
from tomewise.memory.schemata.schemata_names import MOST_LEVELS, SchemataRules


@dataclass(frozen=True, eq=False)
class Level:
    """The network of one level. Vertices have `names` (n,): passages by their index, cluster i as `passages + i`."""

    names: Ints
    links: Links

    def find_ends(self, keys: Ints) -> tuple[Ints, Ints, Floats]:
        """Both ends of each link, by their `keys`, and its weight, without links of vertices that have no key."""
        a, b = keys[self.names[self.links.a]], keys[self.names[self.links.b]]
        is_whole = (a >= 0) & (b >= 0)
        return a[is_whole], b[is_whole], self.links.weights[is_whole]


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """Clusters of `passages` passages and of other clusters.

    `children` (clusters, MOST) are names in document order, then -1; a cluster comes after those in it.
    """

    passages: int
    children: Ints

    def list_children(self, clusters: Sequence[int]) -> list[int]:
        """The names of the members of these clusters, cluster by cluster, in document order."""
        found = self.children[list(clusters)]
        names: list[int] = found[found >= 0].tolist()
        return names

    @cached_property
    def heights(self) -> Ints:
        """How many levels of clusters each cluster is made of, itself included."""
        heights = np.zeros(self.passages + len(self.children) + 1, np.int64)  # the last one is that of no child
        for _ in range(MOST_LEVELS):
            heights[self.passages : -1] = 1 + heights[self.children].max(axis=1, initial=0)
        return heights[self.passages : -1]

    @cached_property
    def leaves(self) -> Any:
        """The passages below each cluster, as a matrix (clusters, passages) of ones in compressed rows."""
        from scipy.sparse import csr_array

        from tomewise.memory.schemata.kernels import collect_leaves

        starts, leaves = collect_leaves(self.children, self.passages)
        return csr_array((np.ones(len(leaves)), leaves, starts), shape=(len(self.children), self.passages))


def grow_hierarchy(links: Links, nearest: Ints, rules: SchemataRules) -> tuple[Hierarchy, list[Level]]:
    """Cluster passages, then the clusters, level by level; a vertex in no cluster is one of the next level too.

    `nearest` (passages, k) are the best partners of each passage. Growth ends below 3 vertices, with the last of the
    levels, or where the next level would not have fewer vertices.
    """
    passages = len(nearest)
    names, children = np.arange(passages), np.empty((0, MOST), np.int64)
    levels = [Level(names, links)]
    while len(names) >= LEAST and len(levels) <= rules.levels:
        network = Network.from_links(len(names), levels[-1].links)
        members = find_clusters(network, nearest if len(levels) == 1 else None, split=rules.clusters != "disjoint")
        alone = np.setdiff1d(np.arange(len(names)), members)
        if len(members) + len(alone) >= len(names):
            break
        rows = np.full((len(alone), MOST), -1, np.int64)
        rows[:, 0] = alone
        rows = sort_rows(np.concatenate((members, rows)))
        is_cluster = rows[:, 1] >= 0
        new_names = np.where(is_cluster, passages + len(children) + np.cumsum(is_cluster) - 1, names[rows[:, 0]])
        children = np.concatenate((children, np.where(rows < 0, -1, names[rows])[is_cluster]))
        levels.append(Level(new_names, _link_clusters(levels[-1].links, rows, len(names), rules.k)))
        names = new_names
    if rules.clusters == "shuffled":
        order = np.random.default_rng(0).permutation(passages)
        children = np.where((children >= 0) & (children < passages), order[children % max(1, passages)], children)
    return Hierarchy(passages, children), levels


def _link_clusters(links: Links, rows: Ints, vertices: int, k: int) -> Links:
    """The links between clusters that are each among the k strongest of the other.

    The weight is the sum of the weights between the members, and 1 for each shared member, divided by the product of
    the sizes.
    """
    from scipy.sparse import csr_array

    from tomewise.memory.schemata.kernels import keep_strongest

    clusters, places = np.nonzero(rows >= 0)
    sizes = np.bincount(clusters).astype(np.float64)
    table = csr_array((np.ones(len(clusters)), (clusters, rows[clusters, places])), shape=(len(rows), vertices))
    between = csr_array((links.weights, (links.a, links.b)), shape=(vertices, vertices))
    half = table @ between @ table.T
    sums = (half + half.T + table @ table.T).tocsr()
    sums.sort_indices()
    a, b = np.repeat(np.arange(len(rows)), np.diff(sums.indptr)), sums.indices.astype(np.int64)
    weights = np.where(a == b, 0.0, np.round(sums.data / (sizes[a] * sizes[b]), 6))
    is_strong = keep_strongest(sums.indptr.astype(np.int64), b, weights, k)
    a, b, weights = a[is_strong], b[is_strong], weights[is_strong]
    is_mutual = np.isin(a * len(rows) + b, b * len(rows) + a)
    return Links.from_pairs(a[is_mutual], b[is_mutual], weights[is_mutual])
