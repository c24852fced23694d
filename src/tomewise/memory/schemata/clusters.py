"""Overlapping clusters of one level: replicas of vertices, and labels that spread among them (CAM, 4.1.2 and 4.1.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tomewise.memory.schemata.network import Network, find_changes

if TYPE_CHECKING:
    from numpy.typing import NDArray

NO_LABEL = -1
_SWEEPS = 20


@dataclass(frozen=True, slots=True, eq=False)
class Clusters:
    """The clusters of one level.

    `labels` int64 (slots,) is, for the slot of u at v, the label of the replica of v to which u belongs, or NO_LABEL if
    the link between them is a bridge. `members` are the pairs of a label and a vertex, each once, ascending:
    `member_labels` and `member_vertices`. `visits` counts the replicas visited, and `unsettled` those that had no
    majority label when the sweeps were over.
    """

    labels: NDArray[np.int64]
    member_labels: NDArray[np.int64]
    member_vertices: NDArray[np.int64]
    visits: int
    unsettled: int


def find_clusters(
    network: Network, labels: NDArray[np.int64], names: NDArray[np.int64], first_label: int, *, split: bool = True
) -> Clusters:
    """Find overlapping clusters, from the labels of the slots before (NO_LABEL where a slot is new).

    A replica begins with the label that most of its slots had (the smallest of several), or with a new label from
    `first_label` up, in the order of replicas. A cluster of one vertex gets the vertex's name in `names` as its label.
    Clusters with the same vertices become one, under the smallest label. Without `split`, each vertex has one replica.

    A bridge makes no cluster: two linked vertices without a common neighbour, of which each is also in a triangle. (In
    the paper they make a cluster of two.)
    """
    from tomewise.memory.schemata.kernels import propagate

    replicas, count = _number_replicas(network, split=split)
    replica_labels = _inherit_labels(replicas, count, labels, first_label)
    is_used = ~_find_bridges(network, replicas, count)
    replica_labels[~is_used] = NO_LABEL  # both ends have the same label, so that they need no visit
    visits, unsettled = propagate(*_link_replicas(network, replicas, count), replica_labels, _SWEEPS)
    owners = np.empty(count, np.int64)
    owners[replicas] = network.owners
    groups = _group_by_label(replica_labels[is_used], owners[is_used])
    renamed = _join_equal_clusters(groups, _rename_clusters(groups, names, first_label + count))
    replica_labels[is_used] = renamed[groups.indices]
    return Clusters(replica_labels[replicas], *_list_members(groups, renamed), visits, unsettled)


def _number_replicas(network: Network, *, split: bool) -> tuple[NDArray[np.int64], int]:
    """The replica of each slot, and how many replicas there are."""
    from tomewise.memory.schemata.kernels import find_components

    if not split:
        used, replicas = np.unique(network.owners, return_inverse=True)
        return replicas.astype(np.int64), len(used)
    replicas = np.empty(len(network.neighbours), np.int64)
    count = find_components(network.starts, network.neighbours, replicas)
    return replicas, int(count)


def _find_bridges(network: Network, replicas: NDArray[np.int64], count: int) -> NDArray[np.bool_]:
    """Which replicas hold one neighbour only, while both ends of that link have another replica in a triangle."""
    is_single = np.bincount(replicas, minlength=count)[replicas] == 1
    is_in_triangle = np.zeros(len(network.starts) - 1, np.bool_)
    is_in_triangle[network.owners[~is_single]] = True
    is_bridge = np.zeros(count, np.bool_)
    is_bridge[replicas[is_single & is_in_triangle[network.owners] & is_in_triangle[network.neighbours]]] = True
    return is_bridge


def _inherit_labels(
    replicas: NDArray[np.int64], count: int, labels: NDArray[np.int64], first_label: int
) -> NDArray[np.int64]:
    from tomewise.memory.schemata.kernels import find_ranges

    inherited = first_label + np.arange(count)
    lowest, highest = np.full(count, np.iinfo(np.int64).max), np.full(count, NO_LABEL, np.int64)
    find_ranges(replicas, labels, lowest, highest)
    is_one = lowest == highest
    inherited[is_one] = lowest[is_one]
    is_mixed = (labels != NO_LABEL) & ~is_one[replicas]
    order = np.lexsort((labels[is_mixed], replicas[is_mixed]))
    owners, shared = replicas[is_mixed][order], labels[is_mixed][order]
    starts = np.flatnonzero(find_changes(owners, shared))
    counts = np.diff(np.append(starts, len(owners)))
    owners, shared = owners[starts], shared[starts]
    order = np.lexsort((shared, -counts, owners))
    firsts, at = np.unique(owners[order], return_index=True)
    inherited[firsts] = shared[order][at]
    return inherited


def _link_replicas(
    network: Network, replicas: NDArray[np.int64], count: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The network of replicas in compressed rows. Each link joins the replicas that hold each other's vertex."""
    from tomewise.memory.schemata.kernels import group_equal

    starts, order = group_equal(replicas, count)
    return starts, replicas[network.reverse[order]]


@dataclass(frozen=True, slots=True, eq=False)
class _Groups:
    """Distinct labels, ascending; of each replica the index of its label; and each label's vertices, ascending.

    The vertices of label i are `members[starts[i]:starts[i + 1]]`, each once.
    """

    labels: NDArray[np.int64]
    indices: NDArray[np.int64]
    starts: NDArray[np.int64]
    members: NDArray[np.int64]


def _group_by_label(labels: NDArray[np.int64], owners: NDArray[np.int64]) -> _Groups:
    """Group the vertices of replicas, which are in the order of their vertices, by label."""
    from tomewise.memory.schemata.kernels import group_equal

    known, indices = np.unique(labels, return_inverse=True)
    _, order = group_equal(indices, len(known))
    groups, members = indices[order], owners[order]
    is_new = find_changes(groups, members)
    starts = np.zeros(len(known) + 1, np.int64)
    np.cumsum(np.bincount(groups[is_new], minlength=len(known)), out=starts[1:])
    return _Groups(known, indices, starts, members[is_new])


def _rename_clusters(groups: _Groups, names: NDArray[np.int64], first_label: int) -> NDArray[np.int64]:
    """Name a cluster of one vertex after it. A larger cluster that has the name of a vertex gets a new label.

    The second happens when others joined a cluster of one. Returns the new label of each group.
    """
    is_single = np.diff(groups.starts) == 1
    is_taken = ~is_single & np.isin(groups.labels, names)
    renamed = groups.labels.copy()
    renamed[is_single] = names[groups.members[groups.starts[:-1][is_single]]]
    renamed[is_taken] = first_label + np.arange(np.count_nonzero(is_taken))
    return renamed


def _join_equal_clusters(groups: _Groups, labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Give groups with the same vertices the smallest of their `labels` (groups,).

    A set of vertices is recognised by its size and the sums of two hashes of its members.
    """
    if not len(labels):
        return labels
    marks = np.empty((len(labels), 3), np.uint64)
    marks[:, 0] = np.diff(groups.starts)
    for column, seed in ((1, 0x9E3779B97F4A7C15), (2, 0xC2B2AE3D27D4EB4F)):
        marks[:, column] = np.add.reduceat(mix_bits(groups.members, seed), groups.starts[:-1])
    order = np.lexsort((labels, marks[:, 2], marks[:, 1], marks[:, 0]))
    is_new = np.ones(len(labels), np.bool_)
    is_new[1:] = (marks[order][1:] != marks[order][:-1]).any(axis=1)
    smallest = np.empty_like(labels)
    smallest[order] = labels[order][is_new][np.cumsum(is_new) - 1]
    return smallest


def _list_members(groups: _Groups, labels: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Each pair of a label and a vertex once, ascending; `labels` (groups,) may repeat for groups of equal vertices."""
    known, firsts = np.unique(labels, return_index=True)
    sizes = np.diff(groups.starts)[firsts]
    indices = np.repeat(groups.starts[firsts] - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())
    return np.repeat(known, sizes), groups.members[indices]


def mix_bits(values: NDArray[np.int64], seed: int) -> NDArray[np.uint64]:
    """Mix the bits of each value (the finaliser of splitmix64)."""
    mixed = values.astype(np.uint64) + np.uint64(seed)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
