"""The levels of the hierarchy: each clusters the vertices below it, until there are no fewer (CAM, section 4.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tomewise.memory.schemata.clusters import NO_LABEL, Clusters, find_clusters
from tomewise.memory.schemata.network import Links, Network, count_linked, match_pairs

if TYPE_CHECKING:
    from numpy.typing import NDArray

FIRST_LABEL = 1 << 48  # labels from here up belong to clusters without a node; all keys of nodes are smaller
_LABELS_A_LEVEL = 1 << 40
MOST_LEVELS = 10


@dataclass(frozen=True, slots=True, eq=False)
class SlotLabels:
    """The labels of one level as they are stored, by names: the replica of `vertices` that holds `neighbours`.

    Bridges have none.
    """

    vertices: NDArray[np.int64]
    neighbours: NDArray[np.int64]
    labels: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """The clusters of one level. `names` are the keys of its vertices (n,), in document order.

    A vertex that is a new cluster of the level below has that cluster's label as its name. `slots` are the
    labels to store. `clusters` has the name of a vertex as the label where a cluster has this vertex alone: it is a
    vertex of the next level too. `links` are the links of the level.
    """

    names: NDArray[np.int64]
    links: Links
    slots: SlotLabels
    clusters: Clusters


def grow_levels(
    names: NDArray[np.int64], links: Links, before: Sequence[SlotLabels], k: int, *, split: bool = True
) -> list[Level]:
    """Cluster the vertices `names`, which are in document order, and the clusters themselves, level by level.

    `before` has the labels of each level after the last update; without them all clusters are new. Growth ends at a
    level whose clusters are not fewer than its linked vertices, or that has no links. The lowest level is always
    clustered.
    """
    levels: list[Level] = []
    while len(links.a) and len(levels) < MOST_LEVELS:
        level = _cluster_level(
            names, links, before[len(levels)] if len(levels) < len(before) else None, len(levels), split
        )
        count = len(np.unique(level.clusters.member_labels))
        if levels and count >= count_linked(links):
            break
        levels.append(level)
        names, links = make_next_level(level, k)
    return levels


def make_unclustered_level(names: NDArray[np.int64], links: Links) -> list[Level]:
    """The lowest level alone, without clusters; no level if there are no links."""
    none = np.empty(0, np.int64)
    return [Level(names, links, SlotLabels(none, none, none), Clusters(none, none, none, 0, 0))] if len(links.a) else []


def _cluster_level(
    names: NDArray[np.int64], links: Links, before: SlotLabels | None, number: int, split: bool
) -> Level:
    network = Network.from_links(len(names), links)
    vertices, neighbours = names[network.owners], names[network.neighbours]
    labels = np.full(len(vertices), NO_LABEL, np.int64)
    if before is not None:
        labels = find_labels(before, vertices, neighbours)
    clusters = find_clusters(network, labels, names, FIRST_LABEL + number * _LABELS_A_LEVEL, split=split)
    is_known = clusters.labels != NO_LABEL
    slots = SlotLabels(vertices[is_known], neighbours[is_known], clusters.labels[is_known])
    return Level(names, links, slots, clusters)


def find_labels(known: SlotLabels, vertices: NDArray[np.int64], neighbours: NDArray[np.int64]) -> NDArray[np.int64]:
    """The known label of each slot, or NO_LABEL."""
    at = match_pairs(known.vertices, known.neighbours, vertices, neighbours)
    return np.where(at < 0, NO_LABEL, known.labels[at]) if len(known.labels) else np.full(len(at), NO_LABEL, np.int64)


def make_next_level(level: Level, k: int) -> tuple[NDArray[np.int64], Links]:
    """The vertices and links of the next level: the clusters, in the order of their first members.

    The weight of a link is the sum of the weights between the members, and 1 for each shared member, divided by the
    product of the sizes. Each cluster keeps its k strongest links, and those that others keep to it.
    """
    from scipy.sparse import csr_array

    from tomewise.memory.schemata.kernels import keep_strongest

    labels, vertices = level.clusters.member_labels, level.clusters.member_vertices
    known, first = np.unique(labels, return_index=True)  # members ascend, so the first is the first in the documents
    order = np.lexsort((known, vertices[first]))
    ranks = np.empty(len(known), np.int64)
    ranks[order] = np.arange(len(known))
    of_cluster = ranks[np.searchsorted(known, labels)]
    shape = (len(known), len(level.names))
    members = csr_array((np.ones(len(labels)), (of_cluster, vertices)), shape=shape)
    links = level.links
    between = csr_array((links.weights, (links.a, links.b)), shape=(shape[1], shape[1]))
    half = members @ between @ members.T
    sums = (half + half.T + members @ members.T).tocsr()
    sums.sort_indices()
    sizes = np.bincount(of_cluster, minlength=len(known)).astype(np.float64)
    a, b = np.repeat(np.arange(len(known)), np.diff(sums.indptr)), sums.indices.astype(np.int64)
    weights = np.where(a == b, 0.0, np.round(sums.data / (sizes[a] * sizes[b]), 6))
    is_strongest = keep_strongest(sums.indptr.astype(np.int64), b, weights, k)
    return known[order], Links.from_pairs(a[is_strongest], b[is_strongest], weights[is_strongest])
