"""A slow, plain reading of CAM's section 4.1 with sets and dictionaries, to check the arrays against."""

from __future__ import annotations

from collections import Counter
from itertools import count

import numpy as np

Graph = dict[int, dict[int, float]]
Replica = tuple[int, int]  # a vertex, and the smallest neighbour that the replica holds


def link_passages(vectors, documents, positions, *, alpha, sigma, k, theta) -> Graph:
    """Equation 2, with the plain cosine across documents; a link where one end ranks the other among its k best."""
    vertices = range(len(vectors))

    def score(a: int, b: int) -> float:
        cosine = float(np.float32(vectors[a] @ vectors[b]))
        if documents[a] != documents[b]:
            return cosine
        distance = (positions[a] - positions[b]) / sigma
        return alpha * cosine + (1 - alpha) * float(np.exp(-0.5 * distance**2))

    graph: Graph = {vertex: {} for vertex in vertices}
    for a in vertices:
        scores = {b: score(a, b) for b in vertices if b != a}
        for b in sorted(scores, key=lambda b: (-scores[b], b))[:k]:
            if scores[b] >= theta:
                graph[a][b] = graph[b][a] = scores[b]
    return graph


def split_vertices(graph: Graph) -> dict[int, list[set[int]]]:
    """The connected components of each ego network without its centre, by first member."""
    found = {}
    for centre, around in graph.items():
        rest, components = set(around), []
        while rest:
            component, front = set(), [min(rest)]
            while front:
                vertex = front.pop()
                component.add(vertex)
                front += [
                    near for near in graph[vertex] if near in rest and near not in component and near not in front
                ]
            rest -= component
            components.append(component)
        found[centre] = components
    return found


def find_bridges(graph: Graph) -> set[frozenset[int]]:
    """The links in no triangle between two vertices that are each in one. Ours: the paper makes clusters of them."""
    linked = {frozenset((a, b)) for a, around in graph.items() for b in around}
    closed = {pair for pair in linked if set.intersection(*(set(graph[vertex]) for vertex in pair))}
    cornered = {vertex for pair in closed for vertex in pair}
    return {pair for pair in linked - closed if pair <= cornered}


def cluster(graph: Graph, *, sweeps: int = 20) -> set[frozenset[int]]:
    """The overlapping clusters of a graph where all is new, as in the paper."""
    components = split_vertices(graph)
    replicas = [(vertex, index) for vertex in sorted(graph) for index in range(len(components[vertex]))]
    home = {
        (vertex, near): index
        for vertex, parts in components.items()
        for index, part in enumerate(parts)
        for near in part
    }
    numbers = dict(zip(replicas, count(), strict=False))
    around = {
        (vertex, index): [(near, home[near, vertex]) for near in sorted(components[vertex][index])]
        for vertex, index in replicas
    }
    labels = dict(numbers)
    waiting = set(replicas)
    for _ in range(sweeps):
        front, waiting = sorted(waiting), set()
        while front:
            replica = front.pop(0)
            waiting.discard(replica)
            votes = Counter(labels[near] for near in around[replica])
            most = max(votes.values())
            if votes[labels[replica]] == most:
                continue
            labels[replica] = min(label for label, number in votes.items() if number == most)
            waiting.update(around[replica])
    clusters: dict[int, set[int]] = {}
    for (vertex, _index), label in labels.items():
        clusters.setdefault(label, set()).add(vertex)
    return {frozenset(members) for members in clusters.values()}
