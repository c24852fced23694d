"""The cached embedder: the same vectors; a single text is embedded once, also from several threads."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from tomewise.embedding import cached_embedder
from tomewise.embedding.cached_embedder import CachedEmbedder
from tomewise.embedding.hash import HashEmbedder
from tomewise.testing import check_embedder


class Counting(HashEmbedder):
    def __init__(self) -> None:
        super().__init__(32)
        self.asked: list[tuple[str, ...]] = []

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        self.asked.append(tuple(texts))
        return super().embed(texts)


def test_it_has_the_properties_of_the_embedder_inside() -> None:
    made = CachedEmbedder(HashEmbedder(32))
    check_embedder(made)
    assert (made.name, made.dimensions, made.max_tokens) == ("hash:32", 32, 256)


def test_a_lone_text_is_embedded_once_and_several_as_they_come() -> None:
    inside = Counting()
    made = CachedEmbedder(inside)
    first = made.embed(["the tide"])
    assert np.array_equal(made.embed(["the tide"]), first)
    assert np.array_equal(made.embed(["the tide", "turned"])[:1], first)
    assert inside.asked == [("the tide",), ("the tide", "turned")]
    assert np.array_equal(first, HashEmbedder(32).embed(["the tide"]))


def test_threads_with_the_same_text_wait_for_one() -> None:
    inside = Counting()
    made = CachedEmbedder(inside)
    with ThreadPoolExecutor(8) as threads:
        rows = list(threads.map(made.embed, [["a"], ["b"]] * 20))
    assert len(inside.asked) == 2
    assert all(np.array_equal(row, rows[number % 2]) for number, row in enumerate(rows))


def test_it_drops_the_text_that_was_used_least_recently(monkeypatch) -> None:
    monkeypatch.setattr(cached_embedder, "_CACHE_SIZE", 2)
    inside = Counting()
    made = CachedEmbedder(inside)
    for text in ("a", "b", "a", "c", "a", "b"):
        made.embed([text])
    assert [texts[0] for texts in inside.asked] == ["a", "b", "c", "b"]
