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


@dataclass(frozen=True, slots=True)
class Runs:
    """How many texts one call summarises, from `smallest` to `largest`; a run ends after one in `gap` on average."""

    smallest: int
    largest: int
    gap: int


PASSAGE_RUNS = Runs(4, 12, 6)  # the paper's release cuts at 12
SUMMARY_RUNS = Runs(12, 36, 18)  # summaries are short: these are about as many tokens


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


def slice_run(items: Sequence[int], runs: Runs) -> Iterator[tuple[int, ...]]:
    """Cut items into runs for one call each; the last run may be shorter. Items that fit into one run are one.

    Whether a run ends after an item depends mostly on that item, so that a new item changes one run or two.
    """
    if len(items) <= runs.largest:
        yield tuple(items)
        return
    marks = mix_bits(np.array(items, np.int64), 0) % np.uint64(runs.gap) == 0
    start = 0
    for end, is_cut in enumerate(marks.tolist(), start=1):
        if end - start == runs.largest or (is_cut and end - start >= runs.smallest):
            yield tuple(items[start:end])
            start = end
    if start < len(items):
        yield tuple(items[start:])


def list_clusters(levels: Sequence[Level], positions: Mapping[int, int]) -> list[Cluster]:
    """All clusters of two or more vertices, the lowest level first. `positions` are those of passages by key."""
    labels, stamps = np.empty(0, np.int64), np.empty(0, np.uint64)  # of all clusters so far, by label
    firsts = dict(positions)
    found = []
    for number, level in enumerate(levels, start=1):
        known, starts, places = _group_members(level)
        if not len(known):
            continue
        children = level.names[places]
        fresh = _combine(children, starts, labels, stamps)
        order = np.argsort(np.concatenate((labels, known)))
        labels, stamps = np.concatenate((labels, known))[order], np.concatenate((stamps, fresh))[order]
        members = children.tolist()
        ends = [*starts[1:].tolist(), len(members)]
        for label, start, end, stamp in zip(known.tolist(), starts.tolist(), ends, fresh.tolist(), strict=True):
            firsts[label] = firsts[members[start]]
            found.append(Cluster(label, number, tuple(members[start:end]), firsts[label], f"{stamp:016x}"))
    return found


def _group_members(level: Level) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Labels of clusters with two or more vertices, where each begins among their vertices, and these vertices."""
    labels, vertices = level.clusters.member_labels, level.clusters.member_vertices
    known, sizes = np.unique(labels, return_counts=True)
    vertices = vertices[np.repeat(sizes > 1, sizes)]
    known, sizes = known[sizes > 1], sizes[sizes > 1]
    return known, np.cumsum(sizes) - sizes, vertices


def _combine(
    children: NDArray[np.int64], starts: NDArray[np.int64], labels: NDArray[np.int64], stamps: NDArray[np.uint64]
) -> NDArray[np.uint64]:
    """One number for each run of children in their order: from the stamps of clusters, the keys of passages.

    Runs begin at `starts`. `stamps` are those of the clusters with the labels `labels`, ascending.
    """
    if not len(starts):
        return np.empty(0, np.uint64)
    values = children.astype(np.uint64)
    if len(labels):
        at = np.minimum(np.searchsorted(labels, children), len(labels) - 1)
        values = np.where(labels[at] == children, stamps[at], values)
    sizes = np.diff(np.append(starts, len(children)))
    places = (np.arange(len(children)) - np.repeat(starts, sizes)).astype(np.uint64)
    mixed = values + places * np.uint64(0x9E3779B97F4A7C15) + np.repeat(sizes, sizes).astype(np.uint64)
    sums: NDArray[np.uint64] = np.add.reduceat(mix_bits(mixed.view(np.int64), 0), starts)
    return sums
