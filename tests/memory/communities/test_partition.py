"""Communities: the recursion of Leiden, the moves that keep a partition while its graph changes, and its modularity."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

import igraph
import pytest
from graspologic_native import leiden
from hypothesis import given, settings
from hypothesis import strategies as st

from tomewise.memory.communities.partition import (
    DIVIDED_FROM,
    SEED,
    Community,
    Partition,
    WeightedGraph,
    measure_modularity,
    renew,
)

Edges = dict[tuple[int, int], int]


def make_graph(edges: Edges) -> WeightedGraph:
    return WeightedGraph((a, b, float(weight)) for (a, b), weight in edges.items())


def divide_graph(edges: Edges) -> Partition:
    partition = Partition()
    renew(partition, make_graph(edges), ())
    return partition


def make_groups(groups: int, size: int, seed: int = 0) -> Edges:
    """Groups with many edges inside, and some between them."""
    dice = random.Random(seed)
    edges: Edges = {}
    for _ in range(4 * groups * size):
        a = dice.randrange(groups * size)
        near = a // size * size + dice.randrange(size)
        b = near if dice.random() < 0.85 else dice.randrange(groups * size)
        if a != b:
            edges[min(a, b), max(a, b)] = dice.randint(1, 9)
    return edges


def check_sound(partition: Partition, graph: WeightedGraph) -> None:
    """Each vertex with an edge once a level, children inside of their parent and all of it, none empty or too large."""
    levels: dict[int, list[int]] = {}
    for number, community in partition.communities.items():
        assert number == community.number
        assert community.members
        levels.setdefault(community.level, []).extend(community.members)
        children = partition.list_children(number)
        if children:
            assert len(community.members) >= DIVIDED_FROM
            assert len(children) > 1
            assert set().union(*(child.members for child in children)) == community.members
            assert all(child.level == community.level + 1 for child in children)
        if community.parent is None:
            assert community.level == 0
        else:
            assert community.members < partition.communities[community.parent].members
    assert sorted(levels.get(0, [])) == sorted(graph.neighbours)
    assert all(len(members) == len(set(members)) for members in levels.values())


def measure_slowly(edges: Mapping[tuple[int, int], int], parts: Iterable[Iterable[int]]) -> Fraction:
    """The share of the weight inside of parts, less the share that chance would put there (Newman 2006)."""
    total = 2 * sum(edges.values())
    strengths: dict[int, int] = defaultdict(int)
    for ends, weight in edges.items():
        for end in ends:
            strengths[end] += weight
    value = Fraction(0)
    for part in map(set, parts):
        for a in part:
            for b in part:
                weight = edges.get((min(a, b), max(a, b)), 0) if a != b else 0
                value += Fraction(weight, total) - Fraction(strengths[a] * strengths[b], total * total)
    return value


def move_slowly(edges: Edges, parts: Sequence[Iterable[int]], touched: Iterable[int]) -> list[set[int]]:
    """Move touched vertices to the next part that is best, then the neighbours of those that moved, until none is."""
    parts = [set(part) for part in parts]
    queue = sorted(touched)
    while queue:
        vertex = queue.pop(0)
        own = next(place for place, part in enumerate(parts) if vertex in part)
        beside = {end for edge in edges if vertex in edge for end in edge if end != vertex}
        best, most = own, measure_slowly(edges, parts)
        for place, part in enumerate(parts):
            if place != own and part & beside:
                moved = [each - {vertex} if at == own else set(each) for at, each in enumerate(parts)]
                moved[place].add(vertex)
                if (value := measure_slowly(edges, moved)) > most:
                    best, most = place, value
        if best != own:
            parts[own].remove(vertex)
            parts[best].add(vertex)
            queue += [each for each in sorted(beside) if each not in queue and each not in parts[best]]
    return [part for part in parts if part]


def divide_slowly(edges: Edges, members: set[int]) -> set[frozenset[int]]:
    """Leiden on the inner edges, in one order, as the page says."""
    inner = sorted((a, b) for a, b in edges if a in members and b in members)
    _, homes = leiden([(str(a), str(b), float(edges[a, b])) for a, b in inner], seed=SEED)
    return {frozenset(int(v) for v in homes if homes[v] == home) for home in homes.values()}


@pytest.mark.parametrize("seed", range(4))
def test_a_first_partition_is_leiden_again_and_again_in_any_order(seed: int) -> None:
    edges = make_groups(12, 14, seed)
    graph, partition = make_graph(edges), divide_graph(edges)
    check_sound(partition, graph)
    top = {frozenset(each.members) for each in partition.list_children(None)}
    assert top == divide_slowly(edges, set(graph.neighbours))
    divided = 0
    for number, community in partition.communities.items():
        children = {frozenset(each.members) for each in partition.list_children(number)}
        if len(community.members) < DIVIDED_FROM:
            assert not children
        else:
            parts = divide_slowly(edges, community.members)
            assert children == (parts if len(parts) > 1 else set())
            divided += len(parts) > 1
    assert divided
    backwards = Partition()
    renew(backwards, WeightedGraph((b, a, float(edges[a, b])) for a, b in sorted(edges, reverse=True)), ())
    assert backwards == partition


@pytest.mark.parametrize("seed", range(3))
def test_modularity_is_that_of_igraph(seed: int) -> None:
    edges = make_groups(4, 6, seed)
    graph = igraph.Graph(n=24, edges=list(edges))
    known = make_graph(edges).neighbours
    parts = [[vertex for vertex in range(24) if vertex % 5 == part and vertex in known] for part in range(5)]
    expected = graph.modularity([vertex % 5 for vertex in range(24)], weights=list(edges.values()))
    assert measure_modularity(make_graph(edges), parts) == pytest.approx(expected)
    assert float(measure_slowly(edges, parts)) == pytest.approx(expected)


edges_of_few = st.dictionaries(
    st.tuples(st.integers(0, 8), st.integers(0, 8)).filter(lambda pair: pair[0] < pair[1]),
    st.integers(1, 6),
    min_size=1,
    max_size=18,
)


@given(edges_of_few, st.lists(st.integers(0, 3), min_size=9, max_size=9), st.sets(st.integers(0, 8)))
@settings(max_examples=120)
def test_touched_vertices_move_as_the_page_says(edges: Edges, homes: list[int], touched: set[int]) -> None:
    graph = make_graph(edges)
    vertices = set(graph.neighbours)
    parts = [part for home in range(4) if (part := {v for v in vertices if homes[v] == home})]
    communities = {n: Community(n, 0, None, set(part)) for n, part in enumerate(parts, start=1)}
    partition = Partition(communities, len(parts))
    renew(partition, graph, touched & vertices)
    check_sound(partition, graph)
    found = [each.members for each in sorted(partition.communities.values(), key=lambda each: each.number)]
    assert found == move_slowly(edges, parts, touched & vertices)
