"""The levels of the hierarchy: each clusters the vertices below it, until there are no fewer (CAM, section 4.1).

The clusters of a level overlap (4.1.2 and 4.1.3). The paper's majority labels (`memory.schemata.published`) flood a
component or leave pairs, and depend on the batches. Ours
raise one objective, links within less `_GAMMA` for each pair within (the constant Potts model, Traag et al. 2011), in
clusters of `LEAST` to `MOST` members.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tomewise.memory.schemata.network import Floats, Ints, Links, Network
from tomewise.memory.schemata.schemata_names import MOST_LEVELS, SchemataRules

LEAST, MOST = 3, 16
_GAMMA = 0.15
_PASSES = 3  # in which whole labels join
_TIE = 0.001  # of its weight that a link counts for more: only where labels tie


def find_clusters(network: Network, nearest: Ints | None = None, *, split: bool = True) -> Ints:
    """The clusters (n, MOST) in the order of their members: vertices, ascending, then -1.

    `nearest` (vertices, k) are the best partners of each vertex, then -1; with it, nearly every vertex is in a cluster.
    Without `split`, each vertex has one replica.
    """
    from tomewise.memory.schemata.kernels import find_labels, place_by_links, place_by_nearest

    vertices = len(network.starts) - 1
    replicas, owners = _split_vertices(network, split=split)
    is_kept = (replicas >= 0) & (replicas[network.reverse] >= 0)
    order = np.argsort(replicas[is_kept], kind="stable")
    starts = np.zeros(len(owners) + 1, np.int64)
    np.cumsum(np.bincount(replicas[is_kept], minlength=len(owners)), out=starts[1:])
    values = 1 + _TIE * network.weights[is_kept][order]
    labels = find_labels(starts, replicas[network.reverse][is_kept][order], values, _GAMMA, MOST, _PASSES)
    members, sizes = _keep_clusters(labels, owners, vertices)
    clusters, places = np.nonzero(members >= 0)
    homes = fill_clusters(members[clusters, places], clusters, vertices, room=None)
    place_by_links(network.starts, network.neighbours, network.weights, members, sizes, homes)
    members, sizes = _join_leftovers(network, members, sizes, homes)
    if nearest is not None:
        place_by_nearest(nearest, members, sizes, homes)
    return sort_rows(members)


def _split_vertices(network: Network, *, split: bool) -> tuple[Ints, Ints]:
    """The replica of each slot, -1 for none, and the vertex of each replica.

    A replica is a component of two vertices or more of the ego network, or, of a vertex in no triangle, all of it.
    """
    from tomewise.memory.schemata.kernels import find_components

    replicas = network.owners.copy()
    if split:
        parts = np.empty(len(replicas), np.int64)
        count = find_components(network.starts, network.neighbours, parts)
        is_single = np.bincount(parts, minlength=count)[parts] == 1
        is_in_triangle = np.zeros(len(network.starts) - 1, np.bool_)
        is_in_triangle[network.owners[~is_single]] = True
        replicas = np.where(is_single, parts[network.starts[network.owners]], parts)
        replicas[is_single & is_in_triangle[network.owners]] = -1
    used, firsts, numbers = np.unique(replicas, return_index=True, return_inverse=True)
    has_none = int(len(used) > 0 and used[0] < 0)
    return numbers - has_none, network.owners[firsts[has_none:]]


def _keep_clusters(labels: Ints, owners: Ints, vertices: int) -> tuple[Ints, Ints]:
    """The clusters of `LEAST` vertices or more that are not inside another, and their sizes; see `sort_rows`."""
    from scipy.sparse import csr_array

    pairs = np.unique(labels * vertices + owners)
    clusters, members = np.unique(pairs // vertices, return_inverse=True)[1], pairs % vertices
    sizes = np.bincount(clusters)
    is_large = sizes[clusters] >= LEAST
    clusters, members = np.unique(clusters[is_large], return_inverse=True)[1], members[is_large]
    sizes = np.bincount(clusters)
    table = csr_array((np.ones(len(members)), (clusters, members)), shape=(len(sizes), vertices))
    shared = (table @ table.T).tocoo()
    a, b = shared.coords
    is_inside = (shared.data == sizes[a]) & ((sizes[b] > sizes[a]) | (b < a))
    is_kept = ~np.isin(np.arange(len(sizes)), a[is_inside])
    return fill_clusters(clusters, members, len(sizes))[is_kept], sizes[is_kept]


def _join_leftovers(network: Network, members: Ints, sizes: Ints, homes: Ints) -> tuple[Ints, Ints]:
    """Add the clusters of vertices without a home that are linked among each other, if these are not too many."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    is_left = homes[:, 0] < 0
    slots = np.flatnonzero(is_left[network.owners] & is_left[network.neighbours])
    shape = (len(homes), len(homes))
    table = csr_array((np.ones(len(slots)), (network.owners[slots], network.neighbours[slots])), shape=shape)
    left = np.flatnonzero(is_left)
    groups = np.unique(connected_components(table)[1][left], return_inverse=True)[1]
    counts = np.bincount(groups)
    is_fit = ((counts >= LEAST) & (counts <= MOST))[groups]
    left, groups = left[is_fit], np.unique(groups[is_fit], return_inverse=True)[1]
    counts = np.bincount(groups)
    homes[left, 0] = len(members) + groups
    return np.concatenate((members, fill_clusters(groups, left, len(counts)))), np.concatenate((sizes, counts))


def fill_clusters(owners: Ints, values: Ints, count: int, room: int | None = MOST) -> Ints:
    """Rows (count, room) of the values of each owner, ascending, then -1; without `room`, as wide as they must be."""
    order = np.lexsort((values, owners))
    counts = np.bincount(owners, minlength=count)
    rows = np.full((count, room or max(1, int(counts.max(initial=0)))), -1, np.int64)
    rows[owners[order], np.arange(len(order)) - (np.cumsum(counts) - counts)[owners[order]]] = values[order]
    return rows


def sort_rows(members: Ints) -> Ints:
    """Rows of numbers and -1 with the numbers ascending, -1 last, and the rows in the order of their numbers."""
    most = np.iinfo(np.int64).max
    rows = np.sort(np.where(members < 0, most, members), axis=1)
    rows[rows == most] = -1
    return rows[np.lexsort(rows.T[::-1])]


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

    `children` (clusters, members at most) are names in document order, then -1; a cluster comes after those in it.
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

    def find_leaves(self, clusters: Iterable[int]) -> list[int]:
        """The passages below these clusters, each once."""
        found, front = set[int](), set(clusters)
        while front:
            below = {*self.list_children(sorted(front))}
            found |= {name for name in below if name < self.passages}
            front = {name - self.passages for name in below - found}
        return sorted(found)


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
