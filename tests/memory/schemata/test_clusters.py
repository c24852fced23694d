"""Overlapping clusters, against a slow reading of the paper and by their invariants."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.memory.schemata.slow_reading import cluster, find_bridges

from tomewise.memory.schemata.clusters import NO_LABEL, find_clusters
from tomewise.memory.schemata.kernels import propagate
from tomewise.memory.schemata.levels import FIRST_LABEL, SlotLabels, find_labels, grow_levels
from tomewise.memory.schemata.network import Links, Network

CLIQUES = [range(5), range(4, 10), range(9, 14)]  # neighbours share one vertex


def links_of(pairs) -> Links:
    table = np.array(sorted(pairs), np.int64).reshape(-1, 2)
    return Links.from_pairs(table[:, 0], table[:, 1], np.ones(len(table)))


def clique_pairs():
    return {(a, b) for members in CLIQUES for a in members for b in members if a < b}


def plant_communities(seed, mixing):
    """A benchmark graph in the way of Lancichinetti and Fortunato (2009), simpler; returns its size and its pairs.

    Communities of 8 to 15 vertices, each pair linked with probability 0.6; a tenth of the vertices is in two of them; a
    share `mixing` of the links joins random vertices.
    """
    random = np.random.default_rng(seed)
    places = random.permutation(np.concatenate((np.arange(120), random.choice(120, 12, replace=False))))
    pairs, start = set(), 0
    while start < len(places):
        members = sorted(set(places[start : (start := start + int(random.integers(8, 16)))].tolist()))
        pairs |= {pair for pair in itertools.combinations(members, 2) if random.random() < 0.6}
    noise = random.integers(0, 120, (int(mixing / (1 - mixing) * len(pairs)), 2)).tolist()
    return 120, pairs | {(min(a, b), max(a, b)) for a, b in noise if a != b}


def graph_of(vertices, pairs):
    graph = {vertex: {} for vertex in range(vertices)}
    for a, b in pairs:
        graph[a][b] = graph[b][a] = 1.0
    return graph


def sets_of(clusters):
    found = defaultdict(set)
    for label, vertex in zip(clusters.member_labels.tolist(), clusters.member_vertices.tolist(), strict=True):
        found[label].add(vertex)
    return {frozenset(members) for members in found.values()}


def cluster_offline(vertices, pairs, **options):
    network = Network.from_links(vertices, links_of(pairs))
    blank = np.full(len(network.neighbours), NO_LABEL, np.int64)
    return network, find_clusters(network, blank, np.arange(vertices), FIRST_LABEL, **options)


graphs = st.integers(2, 14).flatmap(
    lambda n: st.tuples(
        st.just(n),
        st.sets(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda p: p[0] < p[1]), min_size=1),
    )
)


def test_cliques_that_share_a_vertex_are_found_with_their_overlaps() -> None:
    _, clusters = cluster_offline(14, clique_pairs())
    assert sets_of(clusters) == {frozenset(members) for members in CLIQUES}


def test_without_splitting_no_vertex_is_in_two_clusters() -> None:
    _, clusters = cluster_offline(14, clique_pairs(), split=False)
    assert len(clusters.member_vertices) == 14


@settings(deadline=None)
@given(graphs)
def test_new_clusters_are_those_of_the_slow_reading(graph) -> None:
    vertices, pairs = graph
    _, clusters = cluster_offline(vertices, pairs)
    slow = graph_of(vertices, pairs)
    assert sets_of(clusters) == cluster(slow) - find_bridges(slow)


@pytest.mark.parametrize("mixing", [0, 0.1, 0.3])
@pytest.mark.parametrize("seed", range(3))
def test_planted_communities_are_clustered_as_in_the_slow_reading(seed, mixing) -> None:
    vertices, pairs = plant_communities(seed, mixing)
    _, clusters = cluster_offline(vertices, pairs)
    slow = graph_of(vertices, pairs)
    assert sets_of(clusters) == cluster(slow) - find_bridges(slow)
    assert len(clusters.member_vertices) > len(set(clusters.member_vertices.tolist())), "some are in several clusters"


def test_a_bridge_between_two_triangles_is_no_cluster() -> None:
    triangles = {(0, 1), (0, 2), (1, 2), (3, 4), (3, 5), (4, 5)}
    _, clusters = cluster_offline(7, triangles | {(2, 3), (5, 6)})
    pair = frozenset((5, 6))  # a vertex in no triangle is in a cluster all the same
    assert sets_of(clusters) == {frozenset((0, 1, 2)), frozenset((3, 4, 5)), pair}


@settings(deadline=None)
@given(graphs, st.lists(st.integers(0, 3), min_size=200, max_size=200))
def test_each_label_is_a_majority_label_once_the_sweeps_settle(graph, start) -> None:
    vertices, pairs = graph
    network = Network.from_links(vertices, links_of(pairs))
    labels = np.array(start[:vertices], np.int64)
    visits, unsettled = propagate(network.starts, network.neighbours, labels, 50)
    for vertex in range(vertices):
        near = labels[network.neighbours[network.starts[vertex] : network.starts[vertex + 1]]].tolist()
        votes = Counter(near)
        if near and not unsettled:
            assert votes[labels[vertex]] == max(votes.values())
    assert visits or labels.tolist() == start[:vertices]


@settings(max_examples=60, deadline=None)
@given(graphs)
def test_a_batch_leaves_far_clusters_alone(graph) -> None:
    vertices, pairs = graph
    _, before = cluster_offline(vertices, pairs)
    far = {(a + vertices, b + vertices) for a, b in pairs}  # a copy that shares no vertex
    network = Network.from_links(2 * vertices, links_of(pairs | far))
    names = np.arange(2 * vertices)
    old = Network.from_links(vertices, links_of(pairs))
    known = SlotLabels(old.owners, old.neighbours, before.labels)
    labels = find_labels(known, network.owners, network.neighbours)
    after = find_clusters(network, labels, names, FIRST_LABEL + 10_000)
    if not before.unsettled:
        kept = {members for members in sets_of(after) if min(members) < vertices}
        assert kept == sets_of(before)
        assert after.visits == before.visits, "only the new copy is visited"


@settings(deadline=None)
@given(graphs)
def test_every_linked_vertex_is_below_a_top(graph) -> None:
    vertices, pairs = graph
    levels = grow_levels(np.arange(vertices), links_of(pairs), (), 10)
    linked = {vertex for pair in pairs for vertex in pair}
    for level in levels[:1]:
        assert set(level.clusters.member_vertices.tolist()) == linked
    for below, above in itertools.pairwise(levels):
        assert set(above.names.tolist()) == set(below.clusters.member_labels.tolist())
