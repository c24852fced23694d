"""What a batch asks for: the clusters that need a node, what each is made of, and which summaries are out of date."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tomewise.memory.schemata.clusters import mix_bits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tomewise.memory.schemata.levels import Level

_SMALLEST, _LARGEST = 4, 12  # children that are summarised in one call; the paper's release cuts at 12
_MEAN_GAP = 6  # a cut follows one in so many children on average


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


def slice_run(items: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Cut items into runs of 4 to 12 for one call each; the last run may be shorter.

    Whether a run ends after an item depends mostly on that item, so that a new item changes one run or two.
    """
    marks = mix_bits(np.array(items, np.int64), 0) % np.uint64(_MEAN_GAP) == 0
    start = 0
    for end, is_cut in enumerate(marks.tolist(), start=1):
        if end - start == _LARGEST or (is_cut and end - start >= _SMALLEST):
            yield tuple(items[start:end])
            start = end
    if start < len(items):
        yield tuple(items[start:])


def list_clusters(levels: Sequence[Level], positions: Mapping[int, int]) -> list[Cluster]:
    """All clusters of two or more vertices, the lowest level first. `positions` are those of passages by key."""
    stamps: dict[int, int] = {}
    firsts = dict(positions)
    found = []
    for number, level in enumerate(levels, start=1):
        for label, places in _group_members(level):
            children = level.names[places].tolist()
            stamp = _combine(children, stamps)
            stamps[label] = stamp
            firsts[label] = firsts[children[0]]
            found.append(Cluster(label, number, tuple(children), firsts[label], f"{stamp:016x}"))
    return found


def _group_members(level: Level) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Labels of clusters with two or more vertices, each with its vertices."""
    labels, vertices = level.clusters.member_labels, level.clusters.member_vertices
    known, starts, sizes = np.unique(labels, return_index=True, return_counts=True)
    for at in np.flatnonzero(sizes > 1).tolist():
        yield int(known[at]), vertices[starts[at] : starts[at] + sizes[at]]


def _combine(children: Sequence[int], stamps: Mapping[int, int]) -> int:
    """One number for children in their order, from the stamps of clusters and the keys of passages."""
    values = np.array([stamps.get(child, child) for child in children], np.uint64)
    places = np.arange(len(values), dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return int(mix_bits((values + places).view(np.int64), len(values)).sum(dtype=np.uint64))
