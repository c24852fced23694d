"""Best partners, links and clusters that overlap, against a slow reading, and by the rules that they keep."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tomewise.memory.schemata.hierarchy import LEAST, MOST, find_clusters, grow_hierarchy
from tomewise.memory.schemata.kernels import find_labels
from tomewise.memory.schemata.network import Links, Lists, Network, Passages, complete_lists
from tomewise.memory.schemata.schemata_names import SchemataRules

GRAPHS = st.integers(3, 40).flatmap(
    lambda n: st.tuples(
        st.just(n),
        st.sets(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda p: p[0] < p[1]), min_size=1),
    )
)


def link_pairs(pairs) -> Links:
    table = np.array(sorted(pairs), np.int64).reshape(-1, 2)
    return Links.from_pairs(table[:, 0], table[:, 1], np.ones(len(table)))


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


NONE = np.empty(0, np.int64)


def list_all(passages: Passages, rules: SchemataRules, **more: int) -> Lists:
    lists = Lists.from_entries(len(passages.rows), rules.k, NONE, NONE, np.empty(0))
    complete_lists(passages, lists, np.ones(len(passages.rows), np.bool_), rules, **more)
    return lists


def select(passages: Passages, which) -> Passages:
    return Passages(passages.vectors, passages.rows[which], passages.documents[which], passages.positions[which])


def assert_equal(lists: Lists, whole: Lists) -> None:
    assert (lists.partners == whole.partners).all()
    assert (lists.scores == whole.scores).all(), "to the last bit"


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.integers(1, 40), st.integers(1, 5), st.integers(1, 6))
def test_lists_are_those_of_the_slow_reading_whatever_the_blocks(seed, count, documents, k) -> None:
    passages, rules = make_passages(seed, count, documents), SchemataRules(alpha=0.6, sigma=1.5, k=k)
    lists = list_all(passages, rules)
    for vertex, entries in list_partners(passages, alpha=0.6, sigma=1.5, k=k).items():
        assert lists.scores[vertex][: len(entries)] == pytest.approx([score for _, score in entries], abs=2e-5)
        assert (lists.partners[vertex][len(entries) :] == -1).all()
    assert_equal(list_all(passages, rules, block=7), lists)


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.integers(2, 40), st.integers(1, 3), st.integers(1, 5), st.data())
def test_lists_stay_exact_when_passages_come_and_go(seed, count, documents, k, data) -> None:
    passages, rules = make_passages(seed, count, documents), SchemataRules(k=k)
    states = np.array(data.draw(st.lists(st.sampled_from("goes stays comes".split()), min_size=count, max_size=count)))
    before, after = np.flatnonzero(states != "comes"), np.flatnonzero(states != "goes")
    if not len(before) or not len(after):
        return
    owners, partners, scores = list_all(select(passages, before), rules).list_entries()
    place = np.full(count, -1)
    place[after] = np.arange(len(after))
    owners, partners = place[before[owners]], place[before[partners]]
    is_left = (owners >= 0) & (partners >= 0)
    lists = Lists.from_entries(len(after), k, owners[is_left], partners[is_left], scores[is_left])
    complete_lists(select(passages, after), lists, states[after] == "comes", rules, block=7)
    assert_equal(lists, list_all(select(passages, after), rules))


def test_links_need_both_lists() -> None:
    lists = list_all(make_passages(5, 40, 4), SchemataRules(k=3))
    listed = {(a, b): score for a, b, score in zip(*(field.tolist() for field in lists.list_entries()), strict=True)}

    def read(links: Links) -> dict[tuple[int, int], float]:
        return dict(zip(zip(links.a.tolist(), links.b.tolist(), strict=True), links.weights.tolist(), strict=True))

    mutual = {(a, b): score for (a, b), score in listed.items() if (b, a) in listed and a < b}
    assert read(lists.link()) == mutual


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
@given(GRAPHS, st.sampled_from(["overlapping", "disjoint"]))
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
