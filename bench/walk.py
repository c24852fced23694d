"""One walk on synthetic graphs: our push, python-igraph's PRPACK and SciPy power iteration.

`python bench/walk.py` draws two graphs of 129,000 nodes and 1.78 million edges (power law, and with communities), and
with `--large` two more of 2 million nodes and 20 million edges. PRPACK is called as in HippoRAG 2, with OpenMP on one
thread. Times are medians over questions, in milliseconds. Overlap is the share of the exact best 200 passages that the
push finds.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tomewise.recall.walk import CsrGraph, VisitedNodes, Walk

sys.path.insert(0, str(Path(__file__).parents[1]))  # for the exact walk

from tests.recall.exact_walk import power_iteration

RESTART, BEST = 0.5, 200


@dataclass(frozen=True)
class Shape:
    name: str
    nodes: int
    edges: int
    communities: int = 0


SMALL = (
    Shape("power law", 129_000, 1_780_000),
    Shape("communities", 129_000, 1_780_000, communities=500),
)
LARGE = (
    Shape("large power law", 2_000_000, 20_000_000),
    Shape("large communities", 2_000_000, 20_000_000, communities=8_000),
)


def draw_edges(shape: Shape, random: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any]]:
    """Chung-Lu, power-law exponent 2.5: Poisson half-edges, paired at random; 4 in 5 pair inside their community."""
    weights = np.minimum(random.random(shape.nodes) ** (-1 / 1.5), np.sqrt(2 * shape.edges))
    surplus = 1.3 if shape.communities else 1.1  # below, repeated pairs are dropped
    halves = random.poisson(weights * (2 * surplus * shape.edges / weights.sum()))
    stubs = random.permutation(np.repeat(np.arange(shape.nodes, dtype=np.int32), halves))
    if shape.communities:
        inside = stubs[: int(0.8 * stubs.size)]
        # A stable sort keeps the random order inside each community, and neighbours in the list become partners.
        inside[:] = inside[np.argsort((inside % shape.communities).astype(np.int16), kind="stable")]
    first, second = stubs[0 : stubs.size // 2 * 2 : 2], stubs[1::2]
    pairs = np.minimum(first, second).astype(np.int64) * shape.nodes + np.maximum(first, second)
    pairs = np.sort(pairs[first != second])
    pairs = random.permutation(pairs[np.append(True, pairs[1:] != pairs[:-1])])[: shape.edges]
    return (pairs // shape.nodes).astype(np.int32), (pairs % shape.nodes).astype(np.int32)


@dataclass(frozen=True)
class Seeds:
    nodes: NDArray[np.int64]
    weights: NDArray[np.float64]

    def make_dense(self, size: int) -> NDArray[np.float64]:
        reset = np.zeros(size)
        np.add.at(reset, self.nodes, self.weights / self.weights.sum())
        return reset


def draw_questions(
    passages: NDArray[np.bool_], count: int, random: np.random.Generator, *, with_passages: bool
) -> list[Seeds]:
    """5 to 10 entities of weight 0.1 to 1 each; `with_passages` adds 200 passages of weight up to 0.05."""
    entity, passage = np.flatnonzero(~passages), np.flatnonzero(passages)
    made = []
    for _ in range(count):
        nodes = random.choice(entity, random.integers(5, 11), replace=False)
        weights = random.uniform(0.1, 1, nodes.size)
        if with_passages:
            nodes = np.concatenate((nodes, random.choice(passage, 200, replace=False)))
            weights = np.concatenate((weights, 0.05 * random.random(200)))
        made.append(Seeds(nodes, weights))
    return made


def time_median(run: Callable[[Seeds], object], questions: list[Seeds], rounds: int) -> float:
    """Milliseconds: the best of `rounds` for each question, as others share the machine; then their median."""
    run(questions[0])
    times = np.empty((rounds, len(questions)))
    for i in range(rounds):
        for j, seeds in enumerate(questions):
            start = time.perf_counter()
            run(seeds)
            times[i, j] = time.perf_counter() - start
    return float(np.median(times.min(axis=0)) * 1e3)


def make_prpack(rows: NDArray[Any], cols: NDArray[Any], weights: NDArray[Any], size: int) -> Callable[[Seeds], object]:
    import igraph

    graph = igraph.Graph(n=size, edges=np.column_stack((rows, cols)))
    graph.es["weight"] = weights.astype(float).tolist()

    def run(seeds: Seeds) -> object:
        return graph.personalized_pagerank(
            vertices=range(size), damping=1 - RESTART, directed=False, weights="weight",
            reset=seeds.make_dense(size), implementation="prpack",
        )  # fmt: skip

    return run


def make_scipy_power(graph: CsrGraph) -> Callable[[Seeds], object]:
    from scipy.sparse import csr_array, diags_array

    matrix = csr_array((graph.weights, graph.indices, graph.indptr), shape=(graph.nodes, graph.nodes))
    onward = (matrix @ diags_array((1 / np.maximum(graph.degrees(), 1e-30)).astype(np.float32))).tocsr()
    onward.data *= np.float32(1 - RESTART)

    def run(seeds: Seeds) -> object:
        reset = seeds.make_dense(graph.nodes).astype(np.float32) * np.float32(RESTART)
        pi = reset / np.float32(RESTART)
        while True:
            following = onward @ pi
            following += reset
            if np.abs(following - pi).sum() < 1e-6:
                return following
            pi = following

    return run


def take_best(visited: VisitedNodes, limit: int) -> NDArray[np.int32]:
    """The `limit` nodes of greatest value, best first, ties by node number."""
    return visited.nodes[np.lexsort((visited.nodes, -visited.values))[:limit]]


def measure_overlaps(walk: Walk, questions: list[Seeds], passages: NDArray[np.bool_]) -> NDArray[np.float64]:
    found = []
    for seeds in questions:
        exact = np.where(passages, power_iteration(walk.graph, seeds.make_dense(walk.graph.nodes)), -1)
        true = np.argsort(-exact, kind="stable")[:BEST]
        got = take_best(walk.push(seeds.nodes, seeds.weights, among=passages), BEST)
        found.append(np.intersect1d(true, got).size / BEST)
    return np.array(found)


def measure(shape: Shape, peers: bool, precision: float) -> None:
    random = np.random.default_rng(7)
    rows, cols = draw_edges(shape, random)
    weights = random.integers(1, 4, rows.size)
    start = time.perf_counter()
    graph = CsrGraph.from_edges(shape.nodes, rows, cols, weights)
    built = time.perf_counter() - start
    print(f"\n{shape.name}: {shape.nodes:,} nodes, {rows.size:,} edges, largest degree {np.diff(graph.indptr).max():,}")
    print(f"  CSR from edges {built:.2f} s")
    passages = random.random(shape.nodes) < 0.25
    walk = Walk(graph, precision=precision)
    runs = {"SciPy": make_scipy_power(graph)}
    if peers:
        runs["PRPACK"] = make_prpack(rows, cols, weights, shape.nodes)
    exact, rounds = (20, 2) if shape.nodes < 1_000_000 else (5, 1)
    for with_passages in (False, True):
        asked = draw_questions(passages, 20, random, with_passages=with_passages)
        mine = time_median(
            lambda seeds: take_best(walk.push(seeds.nodes, seeds.weights, among=passages), BEST), asked, 7
        )
        found = measure_overlaps(walk, asked[:exact], passages)
        line = f"  {'entities + 200 passages' if with_passages else 'entities':24} push {mine:.2f} ms"
        line += f", overlap {found.mean():.4f} (least {found.min():.3f})"
        for name, run in runs.items():
            theirs = time_median(run, asked[:rounds], rounds)
            line += f"; {name} {theirs:.1f} ms, {theirs / mine:.0f}x"
        print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", action="store_true", help="also run 2 million nodes and 20 million edges")
    parser.add_argument("--no-igraph", action="store_true", help="leave out PRPACK")
    parser.add_argument("--precision", type=float, default=5e-7)
    options = parser.parse_args()
    for shape in SMALL + (LARGE if options.large else ()):
        measure(shape, not options.no_igraph, options.precision)


if __name__ == "__main__":
    main()
