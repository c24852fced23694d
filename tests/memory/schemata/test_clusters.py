"""Overlapping clusters, against a slow reading of the replicas and by the rules that they keep."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.memory.schemata.graphs import GRAPHS, link_pairs, link_replicas, plant_communities

from tomewise.memory.schemata.clusters import LEAST, MOST, find_clusters
from tomewise.memory.schemata.hierarchy import grow_hierarchy
from tomewise.memory.schemata.kernels import find_labels
from tomewise.memory.schemata.network import Network
from tomewise.memory.schemata.schemata_names import SchemataRules

CLIQUES = [range(5), range(4, 10), range(9, 14)]  # neighbours share one vertex
CLIQUE_PAIRS = {pair for members in CLIQUES for pair in itertools.combinations(members, 2)}


def cluster(vertices, pairs, **options):
    found = find_clusters(Network.from_links(vertices, link_pairs(pairs)), **options)
    return [set(row[row >= 0].tolist()) for row in found]


def label_replicas(replicas):
    """The labels of a network of replicas, by the kernel."""
    order = sorted(replicas)
    numbers = {replica: number for number, replica in enumerate(order)}
    rows = [sorted(numbers[near] for near in replicas[replica]) for replica in order]
    starts = np.cumsum([0, *map(len, rows)])
    neighbours = np.array([near for row in rows for near in row], np.int64)
    labels = find_labels(starts, neighbours, np.full(len(neighbours), 1.001), 0.15, MOST, 3)
    return rows, labels.tolist()


def measure_labels(rows, labels):
    """What labels are worth: links within, less a share of the pairs within."""
    within = sum(labels[near] == labels[number] for number, row in enumerate(rows) for near in row) / 2
    return within - 0.15 * sum(size * (size - 1) / 2 for size in Counter(labels).values())


def test_cliques_that_share_a_vertex_are_found_with_their_overlaps_unless_vertices_are_not_split() -> None:
    assert cluster(14, CLIQUE_PAIRS) == [set(members) for members in CLIQUES]
    clusters = cluster(14, CLIQUE_PAIRS, split=False)
    assert sum(map(len, clusters)) == len(set().union(*clusters))


@settings(max_examples=60)
@given(GRAPHS, st.integers(1, 30))
def test_clusters_have_bounds_and_order_none_is_inside_another_and_what_is_far_changes_none(graph, offset) -> None:
    vertices, pairs = graph
    clusters = cluster(vertices, pairs)
    assert all(LEAST <= len(members) <= MOST for members in clusters)
    assert not any(a <= b for a, b in itertools.permutations(clusters, 2))
    assert [sorted(members) for members in clusters] == sorted(sorted(members) for members in clusters)
    far = {(a + vertices + offset, b + vertices + offset) for a, b in pairs}  # a copy that shares no vertex
    after = cluster(2 * vertices + offset, pairs | far)
    assert [members for members in after if min(members) < vertices] == clusters


@settings(max_examples=60)
@given(GRAPHS)
def test_labels_of_replicas_are_bounded_worth_more_than_pairs_and_the_cores_of_clusters(graph) -> None:
    replicas = link_replicas(*graph)
    rows, labels = label_replicas(replicas)
    assert max(Counter(labels).values()) <= MOST
    pairs, paired = list(range(len(rows))), set()
    for number, row in enumerate(rows):
        if row and paired.isdisjoint({number, row[0]}):
            pairs[number] = row[0]
            paired |= {number, row[0]}
    assert measure_labels(rows, labels) >= measure_labels(rows, pairs) - 1e-9
    groups: dict[int, set[int]] = {}
    for (vertex, _), label in zip(sorted(replicas), labels, strict=True):
        groups.setdefault(label, set()).add(vertex)
    large = [members for members in groups.values() if len(members) >= LEAST]
    cores = [members for members in large if not any(members < larger for larger in large)]
    found = cluster(*graph)
    assert all(any(core <= members for members in found) for core in cores), "what has no home may have joined"
    assert len(found) >= len({frozenset(core) for core in cores})


@pytest.mark.parametrize("mixing", [0, 0.1])
@pytest.mark.parametrize("seed", range(3))
def test_planted_communities_are_found(seed, mixing) -> None:
    vertices, pairs, truth = plant_communities(seed, mixing)
    clusters = cluster(vertices, pairs)
    best = [max(len(set(members) & found) / len(set(members) | found) for found in clusters) for members in truth]
    assert np.mean(best) > 0.8
    if not mixing:
        replicas = link_replicas(vertices, pairs)
        rows, labels = label_replicas(replicas)
        home = {vertex: number for number, members in enumerate(truth) for vertex in members}
        assert measure_labels(rows, labels) >= 0.95 * measure_labels(rows, [home[v] for v, _ in sorted(replicas)])


def test_one_that_is_left_over_goes_to_its_nearest_with_room() -> None:
    pairs = {pair for pair in CLIQUE_PAIRS if max(pair) < 10}  # 10 to 13 have no links
    nearest = np.full((14, 3), -1)
    nearest[10], nearest[11] = [11, 12, 5], [13, 0, 5]
    clusters = cluster(14, pairs, nearest=nearest)
    assert clusters == [{*range(5), 11}, {*range(4, 10), 10}], "11 has no home when 10 looks for one"
    full = set(itertools.combinations(range(MOST), 2))
    alone = np.full((MOST + 1, 1), -1)
    alone[MOST] = 0
    assert cluster(MOST + 1, full, nearest=alone) == [set(range(MOST))], "there is no room"


@settings(max_examples=45)
@given(GRAPHS, st.sampled_from(["overlapping", "disjoint", "shuffled"]))
def test_levels_shrink_and_every_clustered_passage_is_below_the_top(graph, kind) -> None:
    vertices, pairs = graph
    nearest = np.full((vertices, 2), -1)
    hierarchy, levels = grow_hierarchy(link_pairs(pairs), nearest, SchemataRules(clusters=kind))
    sizes = [len(level.names) for level in levels]
    assert sizes == sorted(set(sizes), reverse=True)
    top = hierarchy.children[np.isin(np.arange(len(hierarchy.children)) + vertices, levels[-1].names)]
    below, front = set(), set(top[top >= 0].tolist())
    while front:
        below |= front
        front = set(hierarchy.list_children([name - vertices for name in front if name >= vertices])) - below
    lowest = hierarchy.children[(hierarchy.children < vertices) & (hierarchy.children >= 0)]
    assert set(lowest.tolist()) <= below
    assert all(hierarchy.children[cluster].max() < vertices + cluster for cluster in range(len(hierarchy.children)))
    plain, _ = grow_hierarchy(link_pairs(pairs), nearest, SchemataRules())
    if kind == "shuffled":
        assert ((plain.children >= 0) == (hierarchy.children >= 0)).all(), "as large as those that are not shuffled"
