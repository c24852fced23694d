"""Graphs and passages for the tests of the schemata, and a slow, plain reading of the algorithm for them."""

from __future__ import annotations

import itertools
import math

import numpy as np
from hypothesis import strategies as st

from tomewise.memory.schemata.network import Links, Passages

GRAPHS = st.integers(3, 40).flatmap(
    lambda n: st.tuples(
        st.just(n),
        st.sets(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda p: p[0] < p[1]), min_size=1),
    )
)


def link_pairs(pairs) -> Links:
    table = np.array(sorted(pairs), np.int64).reshape(-1, 2)
    return Links.from_pairs(table[:, 0], table[:, 1], np.ones(len(table)))


def plant_communities(seed, mixing):
    """A benchmark graph in the way of Lancichinetti and Fortunato (2009), simpler; returns its size, pairs and truth.

    Communities of 8 to 15 vertices, each pair linked with probability 0.6; a tenth of the vertices is in two of them; a
    share `mixing` of the links joins random vertices.
    """
    random = np.random.default_rng(seed)
    places = random.permutation(np.concatenate((np.arange(120), random.choice(120, 12, replace=False))))
    pairs, truth, start = set(), [], 0
    while start < len(places):
        truth.append(sorted(set(places[start : (start := start + int(random.integers(8, 16)))].tolist())))
        pairs |= {pair for pair in itertools.combinations(truth[-1], 2) if random.random() < 0.6}
    noise = random.integers(0, 120, (int(mixing / (1 - mixing) * len(pairs)), 2)).tolist()
    return 120, pairs | {(min(a, b), max(a, b)) for a, b in noise if a != b}, truth


def make_passages(seed: int, count: int, documents: int) -> Passages:
    random = np.random.default_rng(seed)
    vectors = random.normal(size=(count, 6)).astype(np.float32)
    vectors[::5] = vectors[0]  # equal passages, whose scores tie
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    homes = np.sort(random.integers(0, documents, count))
    positions = np.arange(count) - np.searchsorted(homes, homes)
    return Passages(vectors, np.arange(count), homes, positions)


def list_partners(passages: Passages, *, alpha, sigma, k):
    """The k best partners of each passage by equation 2, with their scores; of equal scores the first passage wins."""
    vectors, documents, positions = passages.vectors, passages.documents, passages.positions

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


def split_vertices(vertices, pairs) -> dict[int, list[set[int]]]:
    """The neighbours that each replica of a vertex holds: components of two or more, or all if no component has two."""
    graph = {vertex: set() for vertex in range(vertices)}
    for a, b in pairs:
        graph[a].add(b)
        graph[b].add(a)
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


def link_replicas(vertices, pairs) -> dict[tuple[int, int], set[tuple[int, int]]]:
    """The network of replicas, each a vertex and a number: a link needs a replica at both ends."""
    parts = split_vertices(vertices, pairs)
    home = {(vertex, near): n for vertex, own in parts.items() for n, part in enumerate(own) for near in part}
    links = {(vertex, n): set() for vertex, own in parts.items() for n in range(len(own))}
    for (vertex, near), number in home.items():
        if (near, vertex) in home:
            links[vertex, number].add((near, home[near, vertex]))
    return links
