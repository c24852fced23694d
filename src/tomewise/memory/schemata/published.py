"""CAM's clusters as published (section 4.1): link a batch of passages, split egos, spread labels, level by level.

Plain, for experiments: the result depends on the batches, and the paper has no removing. Where it says nothing, this
reads it so: a component keeps the label of the old replica with which it shares most; labels are taken one after the
other, in the order of vertices, of tied ones the own or else the oldest; growth ends where the next level would not
have fewer vertices, as in the released code.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from tomewise.memory.schemata.hierarchy import Hierarchy, Level
from tomewise.memory.schemata.network import Ints, Links, Passages
from tomewise.memory.schemata.schemata_names import SchemataRules

Graph: TypeAlias = dict[int, set[int]]  # the neighbours of each vertex
Replica: TypeAlias = tuple[int, tuple[int, ...]]  # a vertex, and the neighbours that one replica of it has
Labels: TypeAlias = dict[Replica, int]  # the cluster of each replica, which is a vertex of the next level
_SWEEPS = 20  # of one level at most


def find_partners(passages: Passages, new: Ints, rules: SchemataRules) -> list[tuple[int, int]]:
    """The pairs of new passages and those among their k best whose score exceeds theta (equation 2)."""
    vectors, pairs = passages.vectors[passages.rows], list[tuple[int, int]]()
    for vertex in new.tolist():
        distances = (passages.positions - passages.positions[vertex]) / rules.sigma
        near = np.where(passages.documents == passages.documents[vertex], np.exp(-0.5 * distances**2), 0.0)
        scores = np.round(rules.alpha * (vectors @ vectors[vertex]) + (1 - rules.alpha) * near, 6)
        scores[vertex] = -np.inf
        best = np.argsort(-scores, kind="stable")[: rules.k]
        pairs += [(vertex, partner) for partner in best[scores[best] > rules.theta].tolist()]
    return pairs


def join_graph(known: Labels, pairs: Iterable[tuple[int, int]]) -> Graph:
    """The graph whose replicas these are, with further links."""
    graph: Graph = {}
    for a, b in [*((vertex, near) for vertex, part in known for near in part), *pairs]:
        graph.setdefault(a, set()).add(b)
        graph.setdefault(b, set()).add(a)
    return graph


def split_vertices(graph: Graph, *, split: bool = True) -> dict[Replica, list[Replica]]:
    """The neighbours of each replica (4.1.2): a vertex has one for each component of its ego network.

    Without `split` it has one for all its neighbours, if it has any.
    """
    replicas = [
        (vertex, tuple(sorted(part)))
        for vertex in sorted(graph)
        for part in (_find_components(graph, graph[vertex]) if split else [graph[vertex]] if graph[vertex] else [])
    ]
    homes = {(vertex, near): (vertex, part) for vertex, part in replicas for near in part}
    return {(vertex, part): [homes[near, vertex] for near in part] for vertex, part in replicas}


def _find_components(graph: Graph, vertices: Collection[int]) -> list[set[int]]:
    left, found = set(vertices), []
    while left:
        part, front = set[int](), {min(left)}
        while front:
            part |= front
            front = {near for vertex in front for near in graph[vertex] & left} - part
        left -= part
        found.append(part)
    return found


def spread_labels(near: Mapping[Replica, Sequence[Replica]], known: Labels) -> Labels:
    """The labels of replicas: those of new and of changed ones follow the majority of their neighbours (4.1.3)."""
    old: dict[int, list[Replica]] = {}
    for replica in known:
        old.setdefault(replica[0], []).append(replica)
    unused, labels = 1 + max(known.values(), default=-1), Labels()
    for vertex, part in near:
        shared = [(-len({*part} & {*each[1]}), known[each]) for each in old.get(vertex, ())]
        overlap, label = min(shared, default=(0, 0))
        labels[vertex, part] = label if overlap else unused
        unused += not overlap
    affected = {replica for replica in near if replica not in known}
    for _ in range(_SWEEPS):
        moved = []
        for replica in sorted(affected):
            votes = Counter(labels[neighbour] for neighbour in near[replica])
            most = max(votes.values())
            if votes[labels[replica]] < most:
                labels[replica] = min(label for label in votes if votes[label] == most)
                moved.append(replica)
        if not moved:
            break
        affected.update(neighbour for replica in moved for neighbour in near[replica])
    return labels


def list_clusters(labels: Labels) -> dict[int, list[int]]:
    """The vertices of each cluster, ascending, two at least; of equal clusters the oldest label."""
    members: dict[int, set[int]] = {}
    for (vertex, _), label in labels.items():
        members.setdefault(label, set()).add(vertex)
    distinct = {tuple(sorted(members[label])): label for label in sorted(members, reverse=True)}
    return {label: list(vertices) for vertices, label in sorted(distinct.items()) if len(vertices) > 1}


def link_clusters(near: Mapping[Replica, Sequence[Replica]], labels: Labels, clusters: Collection[int]) -> Graph:
    """The clusters, linked where a link joins two of their replicas."""
    graph: Graph = {label: set() for label in clusters}
    for replica, neighbours in near.items():
        for neighbour in neighbours:
            a, b = labels[replica], labels[neighbour]
            if a != b and a in graph and b in graph:
                graph[a].add(b)
    return graph


@dataclass(frozen=True)
class Grown:
    """One level: its graph, the labels of its replicas, and the vertices of each of its clusters, by label."""

    graph: Graph
    labels: Labels
    clusters: Mapping[int, list[int]]


def grow_levels(graph: Graph, known: Sequence[Labels], rules: SchemataRules) -> list[Grown]:
    """All levels, the last of which gives no clusters; `known` are the labels before this batch, by level."""
    levels = list[Grown]()
    while True:
        near = split_vertices(graph, split=rules.clusters != "as published but disjoint")
        labels = spread_labels(near, known[len(levels)] if len(levels) < len(known) else {})
        clusters = list_clusters(labels)
        if len(clusters) >= len(graph) or len(levels) == rules.levels:
            clusters = {}
        levels.append(Grown(graph, labels, clusters))
        if not clusters:
            return levels
        graph = link_clusters(near, labels, clusters)


def name_levels(grown: Sequence[Grown], passages: Passages, rules: SchemataRules) -> tuple[Hierarchy, list[Level]]:
    """The same with names, see `Level`."""
    count = len(passages.rows)
    names, places = np.arange(count), {vertex: vertex for vertex in range(count)}
    children, levels = list[list[int]](), list[Level]()
    for level in grown:
        pairs = [(places[a], places[b]) for a in level.graph for b in level.graph[a] if a < b]
        a, b = np.array(pairs, np.int64).reshape(-1, 2).T
        weights = np.ones(len(a)) if levels else passages.score(a, b, rules)
        levels.append(Level(names, Links.from_pairs(a, b, weights)))
        rows = sorted((sorted(names[places[each]] for each in found), label) for label, found in level.clusters.items())
        names, places = count + len(children) + np.arange(len(rows)), {label: n for n, (_, label) in enumerate(rows)}
        children += [row for row, _ in rows]
    table = np.full((len(children), max(map(len, children), default=1)), -1, np.int64)
    for number, row in enumerate(children):
        table[number, : len(row)] = row
    return Hierarchy(count, table), levels


def dump_labels(levels: Sequence[Grown], passages: Sequence[str]) -> dict[str, Any]:
    """What the next batch needs, as plain data: `passages` are the ids of the vertices of the lowest level."""
    return {
        "passages": list(passages),
        "levels": [[[*each, n] for each, n in level.labels.items()] for level in levels],
    }


def load_labels(data: Mapping[str, Any], passages: Sequence[str]) -> tuple[list[Labels], set[str]]:
    """The labels by level, and the passages that have been linked; none if one of these is gone."""
    places = {passage: number for number, passage in enumerate(passages)}
    known = data.get("passages", [])
    if not places.keys() >= {*known}:
        return [], set()
    levels = [{(vertex, tuple(part)): label for vertex, part, label in rows} for rows in data.get("levels", [])]
    lowest = {
        (places[known[vertex]], tuple(sorted(places[known[near]] for near in part))): label
        for vertex, part, label in data.get("levels", [[]])[0]
    }
    return [lowest, *levels[1:]], {*known}
