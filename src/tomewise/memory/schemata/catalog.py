"""All clusters as arrays: what each is made of, and which summaries are out of date."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tomewise.memory.schemata.clusters import mix_bits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tomewise.memory.schemata.levels import Level


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster of two or more vertices, which has a node one level above them.

    `label` is the key of the node, or a number from FIRST_LABEL up if it is new. `children` are keys or labels, in
    document order. `position` is that of the first passage below it in its document. `stamp` changes with the children,
    and with the stamps of those that are clusters themselves.
    """

    label: int
    level: int
    children: tuple[int, ...]
    position: int
    stamp: str


@dataclass(frozen=True, slots=True, eq=False)
class Catalog:
    """The fields of `Cluster`, one array each, the lowest level first; objects are made on demand.

    The children of cluster i are `children[starts[i]:starts[i + 1]]`. `stamps` are uint64, all others int64.
    """

    labels: NDArray[np.int64]
    levels: NDArray[np.int64]
    starts: NDArray[np.int64]
    children: NDArray[np.int64]
    positions: NDArray[np.int64]
    stamps: NDArray[np.uint64]

    @classmethod
    def from_levels(cls, levels: Sequence[Level], positions: NDArray[np.int64]) -> Catalog:
        """All clusters of two or more vertices. `positions` are those of the vertices of the lowest level."""
        empty = np.empty(0, np.int64)
        catalog = cls(empty, empty, np.zeros(1, np.int64), empty, empty, np.empty(0, np.uint64))
        for number, level in enumerate(levels, start=1):
            found, sizes, vertices = _list_members(level)
            children = level.names[vertices]
            if number > 1:
                positions = catalog._find_positions(level.names, levels[number - 2], positions)
            firsts = positions[vertices[np.cumsum(sizes) - sizes]]
            catalog = cls(
                np.concatenate((catalog.labels, found)),
                np.concatenate((catalog.levels, np.full(len(found), number))),
                np.concatenate((catalog.starts, catalog.starts[-1] + np.cumsum(sizes))),
                np.concatenate((catalog.children, children)),
                np.concatenate((catalog.positions, firsts)),
                np.concatenate((catalog.stamps, catalog._combine(children, sizes))),
            )
        return catalog

    def list_clusters(self, indices: NDArray[np.int64] | None = None) -> list[Cluster]:
        """The clusters at these indices, or all."""
        chosen = np.arange(len(self.labels)) if indices is None else indices
        fields = (self.labels, self.levels, self.starts[:-1], self.starts[1:], self.positions, self.stamps)
        return [
            Cluster(label, level, tuple(self.children[start:end].tolist()), position, write_stamp(stamp))
            for label, level, start, end, position, stamp in zip(
                *(each[chosen].tolist() for each in fields), strict=True
            )
        ]

    def list_stale(self, stored: Mapping[int, str]) -> list[Cluster]:
        """The clusters that `stored` does not have with the same stamp, and those made from one of these."""
        known = np.fromiter(stored, np.int64, len(stored))
        stamps = np.array([int(stamp or "0", 16) for stamp in stored.values()], np.uint64)
        order = np.argsort(known)
        is_stale = _look_up(known[order], stamps[order], self.labels, 0) != self.stamps
        for level in np.unique(self.levels).tolist():
            at = slice(*np.searchsorted(self.levels, (level, level + 1)).tolist())
            changed = np.isin(self.children[self.starts[at.start] : self.starts[at.stop]], self.labels[is_stale])
            is_stale[at] |= np.logical_or.reduceat(changed, self.starts[at] - self.starts[at.start])
        return self.list_clusters(np.flatnonzero(is_stale))

    def find_leaves(self, label: int) -> set[int]:
        """The keys of the passages below a cluster."""
        front, leaves = np.array([label], np.int64), np.empty(0, np.int64)
        while front.size:
            is_cluster = np.isin(front, self.labels)
            leaves = np.union1d(leaves, front[~is_cluster])
            is_below = np.repeat(np.isin(self.labels, front[is_cluster]), np.diff(self.starts))
            front = np.unique(self.children[is_below])
        return set(leaves.tolist())

    def _find_positions(
        self, names: NDArray[np.int64], below: Level, positions: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """The positions of the vertices `names`: clusters, or vertices of the level `below`, which has `positions`."""
        keys, known = np.concatenate((self.labels, below.names)), np.concatenate((self.positions, positions))
        order = np.argsort(keys)
        return _look_up(keys[order], known[order], names, 0)

    def _combine(self, children: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.uint64]:
        """One number for each run of children in their order: from the stamps of clusters, the keys of passages."""
        if not len(sizes):
            return np.empty(0, np.uint64)
        order = np.argsort(self.labels)
        values = _look_up(self.labels[order], self.stamps[order], children, children.astype(np.uint64))
        starts = np.cumsum(sizes) - sizes
        ranks = (np.arange(len(children)) - np.repeat(starts, sizes)).astype(np.uint64)
        mixed = values + ranks * np.uint64(0x9E3779B97F4A7C15) + np.repeat(sizes, sizes).astype(np.uint64)
        sums: NDArray[np.uint64] = np.add.reduceat(mix_bits(mixed.view(np.int64), 0), starts)
        return sums


def write_stamp(stamp: int) -> str:
    """A stamp as it is stored."""
    return f"{stamp:016x}"


def _list_members(level: Level) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Labels and sizes of the clusters with two or more vertices, and all their vertices, cluster by cluster."""
    labels, vertices = level.clusters.member_labels, level.clusters.member_vertices
    known, sizes = np.unique(labels, return_counts=True)
    vertices = vertices[np.repeat(sizes > 1, sizes)]
    return known[sizes > 1], sizes[sizes > 1], vertices


def _look_up(keys: NDArray[np.int64], values: NDArray[Any], wanted: NDArray[np.int64], missing: Any) -> NDArray[Any]:
    """The value of each key wanted, or `missing`; `keys` are ascending."""
    found: NDArray[Any] = np.empty(len(wanted), values.dtype)
    found[:] = missing
    if len(keys):
        at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        is_known = keys[at] == wanted
        found[is_known] = values[at[is_known]]
    return found
