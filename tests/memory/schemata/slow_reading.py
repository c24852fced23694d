"""A slow, plain reading of the algorithm with sets and dictionaries, to check the arrays against."""

from __future__ import annotations

import math

Graph = dict[int, set[int]]


def list_partners(vectors, documents, positions, *, alpha, sigma, k):
    """The k best partners of each passage by equation 2, with their scores; of equal scores the first passage wins."""

    def score(a, b):
        near = 0.0
        if documents[a] == documents[b]:
            near = math.exp(-0.5 * ((positions[a] - positions[b]) / sigma) ** 2)
        cosine = sum(float(x) * float(y) for x, y in zip(vectors[a], vectors[b], strict=True))
        return round(alpha * cosine + (1 - alpha) * near, 5)

    lists = {}
    for a in range(len(vectors)):
        scores = {b: score(a, b) for b in range(len(vectors)) if b != a}
        lists[a] = [(b, scores[b]) for b in sorted(scores, key=lambda b: (-scores[b], b))[:k]]
    return lists


def split_vertices(graph: Graph) -> dict[int, list[set[int]]]:
    """The neighbours that each replica of a vertex holds: components of two or more, or all if no component has two."""
    found = {}
    for centre, around in graph.items():
        rest, components = set(around), []
        while rest:
            component, front = set(), [min(rest)]
            while front:
                vertex = front.pop()
                component.add(vertex)
                front += sorted((graph[vertex] & rest) - component - set(front))
            rest -= component
            components.append(component)
        found[centre] = [part for part in components if len(part) > 1] or [around]
    return found


def link_replicas(graph: Graph) -> dict[tuple[int, int], set[tuple[int, int]]]:
    """The network of replicas, each a vertex and a number: a link needs a replica at both ends."""
    parts = split_vertices(graph)
    home = {(vertex, near): n for vertex, own in parts.items() for n, part in enumerate(own) for near in part}
    links = {(vertex, n): set() for vertex, own in parts.items() for n in range(len(own))}
    for (vertex, near), number in home.items():
        if (near, vertex) in home:
            links[vertex, number].add((near, home[near, vertex]))
    return links
