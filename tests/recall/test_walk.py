"""The push, compared with power iteration, python-igraph and a dense solve of the definition."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.recall.exact_walk import list_edges, power_iteration
from tests.recall.shelves import join_nodes, make_pieces

from tomewise.errors import UsageError
from tomewise.recall.diffusion import merge_rankings
from tomewise.recall.walk import CsrGraph, VisitedNodes, Walk

Edge = tuple[int, int, float]
FINE = 1e-7


def solve(nodes: int, edges: list[Edge], seeds: NDArray[np.float64], restart: float) -> NDArray[np.float64]:
    """The walk as the solution of its linear equation: isolated nodes return all their mass to the seeds."""
    adjacency = np.zeros((nodes, nodes))
    for a, b, weight in edges:
        if a != b:
            adjacency[a, b] += weight
            adjacency[b, a] += weight
    r = seeds / seeds.sum()
    totals = adjacency.sum(axis=1)
    step = np.array([adjacency[u] / totals[u] if totals[u] else r for u in range(nodes)])
    return np.linalg.solve(np.eye(nodes) - (1 - restart) * step.T, restart * r)


def build_graph(nodes: int, edges: list[Edge]) -> CsrGraph:
    rows, cols, weights = zip(*edges, strict=True) if edges else ((), (), ())
    return CsrGraph.from_edges(nodes, rows, cols, weights)


def spread(visited: VisitedNodes, nodes: int) -> NDArray[np.float64]:
    assert np.unique(visited.nodes).size == visited.nodes.size
    values = np.zeros(nodes)
    values[visited.nodes] = visited.values
    return values


def power_law(nodes: int, edges: int, seed: int) -> CsrGraph:
    random = np.random.default_rng(seed)
    cumulative = np.cumsum(random.random(nodes) ** (-1 / 1.5))
    ends = np.searchsorted(cumulative, random.random((2, edges)) * cumulative[-1])
    return CsrGraph.from_edges(nodes, ends[0], ends[1], random.integers(1, 4, edges))


@st.composite
def cases(draw: st.DrawFn) -> tuple[int, list[Edge], NDArray[np.float64], float]:
    nodes = draw(st.integers(1, 12))
    node = st.integers(0, nodes - 1)
    edges = draw(st.lists(st.tuples(node, node, st.sampled_from([0.25, 0.8, 1.0, 2.0, 17.0])), max_size=25))
    weights = draw(st.lists(st.sampled_from([0.0, 0.0, 0.1, 1.0, 3.0]), min_size=nodes, max_size=nodes))
    weights[draw(node)] += 1.0
    return nodes, edges, np.array(weights), draw(st.sampled_from([0.15, 0.5, 0.9]))


@settings(max_examples=100)
@given(cases())
def test_push_and_power_iteration_solve_the_definition(case) -> None:
    nodes, edges, seeds, restart = case
    exact, graph = solve(nodes, edges, seeds, restart), build_graph(nodes, edges)
    iterated = power_iteration(graph, seeds, restart=restart)
    np.testing.assert_allclose(iterated, exact, atol=1e-7)  # weights are stored as float32
    assert iterated.sum() == pytest.approx(1)
    visited = Walk(graph, restart=restart, precision=FINE).push(np.arange(nodes), seeds)
    np.testing.assert_allclose(spread(visited, nodes), exact, atol=1e-5)
    assert visited.values.sum() == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("precision", [1e-3, 1e-5, 1e-6])
def test_error_is_bounded_by_the_degree(precision: float) -> None:
    graph = power_law(3000, 20_000, 1)
    seeds = np.zeros(3000)
    seeds[[5, 70, 900]] = [0.5, 1, 0.2]
    exact = power_iteration(graph, seeds)
    visited = Walk(graph, precision=precision).push([5, 70, 900], [0.5, 1, 0.2])
    bound = precision * graph.degrees() / graph.weights.mean() + 1e-7
    assert (np.abs(spread(visited, 3000) - exact) <= bound).all()


def test_a_walk_stays_in_its_component_and_near_its_seeds() -> None:
    # A long path 0 - 1 - ... - 9999, and a pair beside it.
    rows = np.append(np.arange(9999), 10_000)
    graph = CsrGraph.from_edges(10_002, rows, rows + 1, np.ones(10_000))
    visited = Walk(graph, precision=1e-6).push([5000], [3.0])
    assert visited.nodes.size < 60
    assert set(visited.nodes.tolist()) <= set(range(4970, 5031))
    exact = power_iteration(graph, np.eye(1, 10_002, 5000)[0])
    np.testing.assert_allclose(spread(visited, 10_002), exact, atol=5e-6)


def test_walks_leave_nothing_behind() -> None:
    graph = power_law(2000, 10_000, 3)
    walk = Walk(graph)
    first = walk.push([1, 2, 3], [1, 2, 3])
    walk.push(np.arange(2000), np.ones(2000))
    walk.push([1999], [1.0], among=np.zeros(2000, np.bool_))
    again, fresh = walk.push([1, 2, 3], [1, 2, 3]), Walk(graph).push([1, 2, 3], [1, 2, 3])
    for repeated in (again, fresh):
        np.testing.assert_array_equal(first.nodes, repeated.nodes)
        np.testing.assert_array_equal(first.values, repeated.values)


def test_walks_run_side_by_side() -> None:
    graph = power_law(5000, 50_000, 4)
    walk = Walk(graph)
    questions = [np.random.default_rng(i).choice(5000, 5, replace=False) for i in range(40)]
    alone = [Walk(graph).push(nodes, np.ones(5)) for nodes in questions[:5]]
    with ThreadPoolExecutor(8) as threads:
        together = list(threads.map(lambda nodes: walk.push(nodes, np.ones(5)), questions * 3))
    for i, expected in enumerate(alone):
        for visited in together[i :: len(questions)]:
            np.testing.assert_array_equal(visited.nodes, expected.nodes)
            np.testing.assert_array_equal(visited.values, expected.values)


PAIR = [(0, 1, 1.0)]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Walk(build_graph(3, PAIR)).push([0, 1], [0.0, 0.0]), "every seed weight is 0"),
        (lambda: Walk(build_graph(3, PAIR)).push([0], [-1.0]), ">= 0"),
        (lambda: Walk(build_graph(3, PAIR)).push([0], [float("nan")]), "finite"),
        (lambda: Walk(build_graph(3, PAIR)).push([3], [1.0]), "graph has 3"),
        (lambda: Walk(build_graph(3, PAIR)).push([0, 1], [1.0]), "one weight for each node"),
        (lambda: Walk(build_graph(2, PAIR)).push([0], [1.0], among=np.ones(3, np.bool_)), "flag"),
        (lambda: Walk(build_graph(2, PAIR), restart=0.0), "restart"),
        (lambda: Walk(build_graph(2, PAIR), precision=0.0), "precision"),
        (lambda: build_graph(3, [(0, 3, 1.0)]), "there are 3"),
        (lambda: build_graph(3, [(0, 1, 0.0)]), "0.0"),
        (lambda: CsrGraph.from_edges(3, [0], [1, 2], [1.0]), "shapes"),
    ],
)
def test_impossible_seeds_settings_and_edges_are_refused(make, says) -> None:
    with pytest.raises(UsageError, match=says):
        make()


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7), st.integers(1, 9)), max_size=40))
def test_edges_make_a_symmetric_graph_and_come_back(drawn: list[tuple[int, int, int]]) -> None:
    graph = build_graph(8, [(a, b, float(w)) for a, b, w in drawn])
    sums: dict[tuple[int, int], int] = {}
    for a, b, weight in drawn:
        if a != b:
            sums[min(a, b), max(a, b)] = sums.get((min(a, b), max(a, b)), 0) + weight
    edges = list_edges(graph)
    assert {(a, b): weight for a, b, weight in edges} == sums
    assert graph.degrees().tolist() == [sum(w for pair, w in sums.items() if u in pair) for u in range(8)]
    again = build_graph(8, edges)
    for name in ("indptr", "indices", "weights"):
        mine, theirs = getattr(graph, name), getattr(again, name)
        np.testing.assert_array_equal(mine, theirs)
        assert mine.dtype == theirs.dtype
    assert graph.nodes == 8


@pytest.mark.parametrize(
    ("rankings", "shown", "expected"),
    [
        (["a9 b8 c7 d6 e5 f4"], 5, "abcdef"),  # one question: its best
        (["a9 b8 c7 d6", "a8 y2 z1"], 5, "aybzcd"),  # a is taken, so the second gives y and z
        (["a9 b8", "a9 b8 c1"], 5, "abc"),  # fewer than are shown
        (["a9 b8", "x3", "y1"], 2, "axyb"),  # more sub-questions than places
        (["a5 b5 d1", "c5 d9"], 3, "acdb"),  # a piece counts with its best score
        (["a9 c5", "x3 b5"], 3, "axbc"),  # ties by id
        ([], 3, ""),
    ],
)
def test_merging_takes_two_of_each_and_then_the_best_of_the_rest(rankings, shown, expected):
    lists = [[make_pieces(item[0], int(item[1:]))[0] for item in text.split()] for text in rankings]
    assert join_nodes(merge_rankings(lists, shown)) == expected
