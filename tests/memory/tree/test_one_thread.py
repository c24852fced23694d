"""BLAS has one thread while anything is clustered, and afterwards as many as before."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import numpy as np
from tests.memory.tree.test_clustering import make_groups
from threadpoolctl import threadpool_info

from tomewise.memory.tree.clustering import Reduction, find_clusters, reduce_by_pca


def count_threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_a_tree_that_is_done_does_not_give_threads_to_another() -> None:
    second_begins, first_ended = Event(), Event()
    seen: list[set[int]] = []

    def reduce_first(rows: np.ndarray, neighbours: int, dimensions: int) -> np.ndarray:
        assert second_begins.wait(60)
        return reduce_by_pca(rows, neighbours, dimensions)

    def reduce_second(rows: np.ndarray, neighbours: int, dimensions: int) -> np.ndarray:
        second_begins.set()
        assert first_ended.wait(60)
        seen.append(count_threads())
        return reduce_by_pca(rows, neighbours, dimensions)

    vectors = make_groups([5])
    before = count_threads()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(find_clusters, vectors, [1] * 5, Reduction("first", reduce_first), 100)
        second = pool.submit(find_clusters, vectors, [1] * 5, Reduction("second", reduce_second), 100)
        first.result()
        first_ended.set()
        second.result()
    assert seen == [{1}]
    assert count_threads() == before
