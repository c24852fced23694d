"""The cached embedder: the same vectors; a text is embedded once, and with what comes at the same time."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.patience import SOON, wait_until

from tomewise.embedding import cached_embedder
from tomewise.embedding.cached_embedder import CachedEmbedder
from tomewise.embedding.hash import HashEmbedder
from tomewise.errors import BadReply
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


class Gated(Counting):
    """An embedder whose calls wait until the gate opens."""

    def __init__(self, *, embeds_apart: bool) -> None:
        super().__init__()
        self.embeds_apart = embeds_apart
        self.begun, self.gate = Event(), Event()
        self.fault: BaseException | None = None
        self.refused: str | None = None  # a text with which a call fails
        self.missing = 0  # vectors that a call leaves out

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        rows = super().embed(texts)
        self.begun.set()
        assert self.gate.wait(SOON)
        if self.fault:
            raise self.fault
        if self.refused in texts:
            raise BadReply(f"no vector for {self.refused}")
        return rows[: len(rows) - self.missing]


def embed_behind_another(inside: Gated, made: CachedEmbedder, calls: list[list[str]]) -> list[np.ndarray]:
    """The rows of calls that come while the call for "first" runs."""
    with ThreadPoolExecutor(len(calls) + 1) as threads:
        first = threads.submit(made.embed, ["first"])
        assert inside.begun.wait(SOON)
        futures = [threads.submit(made.embed, texts) for texts in calls]
        wait_until(lambda: len(made._waiting) == 1 + len({text for texts in calls for text in texts}))
        inside.gate.set()
        assert np.array_equal(first.result(), HashEmbedder(32).embed(["first"]))
        return [future.result() for future in futures]


def test_texts_that_come_while_a_call_runs_go_together_in_the_next() -> None:
    inside = Gated(embeds_apart=True)
    calls = [["a"], ["b"], ["a"], ["c", "d", "b"]]
    rows = embed_behind_another(inside, CachedEmbedder(inside), calls)
    assert [sorted(texts) for texts in inside.asked] == [["first"], ["a", "b", "c", "d"]]
    for texts, found in zip(calls, rows, strict=True):
        assert np.array_equal(found, HashEmbedder(32).embed(texts))


def test_where_vectors_may_differ_together_each_text_goes_alone() -> None:
    inside = Gated(embeds_apart=False)
    embed_behind_another(inside, CachedEmbedder(inside), [["a"], ["b"], ["c"]])
    assert sorted(inside.asked) == [("a",), ("b",), ("c",), ("first",)]


def test_a_failure_reaches_all_of_its_call_and_is_not_kept() -> None:
    inside = Gated(embeds_apart=True)
    inside.fault = BadReply("no vectors")
    inside.gate.set()
    made = CachedEmbedder(inside)
    for texts in (["a"], ["a", "b"]):
        with pytest.raises(BadReply):
            made.embed(texts)
    inside.fault = None
    assert np.array_equal(made.embed(["a"]), HashEmbedder(32).embed(["a"]))


def test_many_texts_go_past_those_who_wait() -> None:
    inside = Gated(embeds_apart=True)
    inside.gate.set()
    texts = [f"passage {number}" for number in range(100)]
    assert np.array_equal(CachedEmbedder(inside).embed(texts), HashEmbedder(32).embed(texts))
    assert inside.asked == [tuple(texts)]


@given(calls=st.lists(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=4), max_size=12))
def test_rows_are_those_of_the_embedder_inside(calls: list[list[str]]) -> None:
    inside = Gated(embeds_apart=True)
    inside.gate.set()
    made = CachedEmbedder(inside)
    with ThreadPoolExecutor(4) as threads:
        for texts, rows in zip(calls, threads.map(made.embed, calls), strict=True):
            assert np.array_equal(rows, HashEmbedder(32).embed(texts))


@pytest.mark.parametrize("embeds_apart", [True, False])
def test_too_few_vectors_fail_a_call_and_the_next_one_works(embeds_apart: bool) -> None:
    inside = Gated(embeds_apart=embeds_apart)
    inside.gate.set()
    inside.missing = 1
    made = CachedEmbedder(inside)
    with pytest.raises(BadReply, match="0 vectors for 1"):
        made.embed(["a"])
    inside.missing = 0
    with ThreadPoolExecutor(1) as threads:
        found = threads.submit(made.embed, ["a"]).result(SOON)
    assert np.array_equal(found, HashEmbedder(32).embed(["a"]))


def test_a_text_that_fails_fails_for_its_own_caller() -> None:
    inside = Gated(embeds_apart=True)
    inside.refused = "bad"
    made = CachedEmbedder(inside)
    with ThreadPoolExecutor(4) as threads:
        first = threads.submit(made.embed, ["first"])
        assert inside.begun.wait(SOON)
        good, bad, both = (threads.submit(made.embed, texts) for texts in (["good"], ["bad"], ["fine", "bad"]))
        wait_until(lambda: len(made._waiting) == 4)  # with the first
        inside.gate.set()
        assert np.array_equal(good.result(SOON), HashEmbedder(32).embed(["good"]))
        for failed in (bad, both):
            with pytest.raises(BadReply, match="for bad"):
                failed.result(SOON)
        first.result(SOON)
    assert not made._waiting


def test_an_interrupt_reaches_one_caller_alone() -> None:
    class Interrupted(Gated):
        def embed(self, texts: Sequence[str]) -> np.ndarray:
            rows = super().embed(texts)
            if len(self.asked) == 2:
                raise KeyboardInterrupt
            return rows

    inside = Interrupted(embeds_apart=True)
    made = CachedEmbedder(inside)
    with ThreadPoolExecutor(4) as threads:
        threads.submit(made.embed, ["first"])
        assert inside.begun.wait(SOON)
        futures = [threads.submit(made.embed, [text]) for text in ("a", "b", "a")]
        wait_until(lambda: len(made._waiting) == 3)  # with the first
        inside.gate.set()
        failures = [future.exception(SOON) for future in futures]
    assert sorted(repr(failure) for failure in failures) == ["KeyboardInterrupt()", "None", "None"]
    assert np.array_equal(made.embed(["a"]), HashEmbedder(32).embed(["a"]))
    assert not made._waiting


def test_a_call_joins_so_many_texts_with_that_of_its_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached_embedder, "_MOST_JOINED", 3)
    inside = Gated(embeds_apart=True)
    calls = [[text] for text in "abcdefg"]
    rows = embed_behind_another(inside, CachedEmbedder(inside), calls)
    assert [len(texts) for texts in inside.asked] == [1, 3, 3, 1]
    for texts, found in zip(calls, rows, strict=True):
        assert np.array_equal(found, HashEmbedder(32).embed(texts))
