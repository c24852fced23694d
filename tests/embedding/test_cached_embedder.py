"""The cached embedder: the same vectors; a text is embedded once, and with what comes at the same time."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.patience import SOON, wait_until

from tomewise.embedding import cached_embedder
from tomewise.embedding.cached_embedder import CachedEmbedder
from tomewise.errors import BadReply
from tomewise.testing import HashEmbedder, NotingEmbedder

TOGETHER = pytest.mark.parametrize("embeds_apart", [True, False])


class Gated(NotingEmbedder):
    """An embedder whose calls wait until the gate opens, and that can fail in several ways."""

    def __init__(self, *, embeds_apart=True, is_open=True):
        super().__init__(32)
        self.embeds_apart = embeds_apart
        self.begun, self.gate = Event(), Event()
        if is_open:
            self.gate.set()
        self.fault = lambda texts: None  # the exception of a call, or None
        self.missing = 0  # vectors that a call leaves out

    def embed(self, texts):
        rows = super().embed(texts)
        self.begun.set()
        assert self.gate.wait(SOON)
        if fault := self.fault(texts):
            raise fault
        return rows[: len(rows) - self.missing]


def expect(texts):
    return HashEmbedder(32).embed(texts).tolist()


def embed_behind_another(inside, made, calls):
    """The rows, or the failures, of calls that come while the call for "first" runs."""
    joined = len({text for texts in calls for text in texts})
    with ThreadPoolExecutor(len(calls) + 1) as threads:
        first = threads.submit(made.embed, ["first"])
        assert inside.begun.wait(SOON)
        futures = [threads.submit(made.embed, texts) for texts in calls]
        wait_until(lambda: len(made._waiting) == 1 + joined)
        inside.gate.set()
        assert first.result(SOON).tolist() == expect(["first"])
        failures = [future.exception(SOON) for future in futures]
    assert not made._waiting
    return [failed or future.result().tolist() for failed, future in zip(failures, futures, strict=True)]


def test_a_lone_text_is_embedded_once_and_several_as_they_come():
    inside = NotingEmbedder(32)
    made = CachedEmbedder(inside)
    first = made.embed(["the tide"])
    assert np.array_equal(made.embed(["the tide"]), first)
    assert np.array_equal(made.embed(["the tide", "turned"])[:1], first)
    assert inside.batches == [("the tide",), ("the tide", "turned")]
    assert first.tolist() == expect(["the tide"])


def test_it_drops_the_text_that_was_used_least_recently(monkeypatch):
    monkeypatch.setattr(cached_embedder, "CACHE_SIZE", 2)
    inside = NotingEmbedder(32)
    made = CachedEmbedder(inside)
    for text in ("a", "b", "a", "c", "a", "b"):
        made.embed([text])
    assert inside.texts == ["a", "b", "c", "b"]


def test_texts_that_come_while_a_call_runs_go_together_in_the_next():
    inside = Gated(is_open=False)
    calls = [["a"], ["b"], ["a"], ["c", "d", "b"]]
    assert embed_behind_another(inside, CachedEmbedder(inside), calls) == [expect(texts) for texts in calls]
    assert [sorted(texts) for texts in inside.batches] == [["first"], ["a", "b", "c", "d"]]


def test_a_call_joins_so_many_texts_with_that_of_its_caller(monkeypatch):
    monkeypatch.setattr(cached_embedder, "MOST_JOINED", 3)
    inside = Gated(is_open=False)
    calls = [[text] for text in "abcdefg"]
    assert embed_behind_another(inside, CachedEmbedder(inside), calls) == [expect(texts) for texts in calls]
    assert [len(texts) for texts in inside.batches] == [1, 3, 3, 1]


def test_where_vectors_may_differ_together_each_text_goes_alone():
    inside = Gated(embeds_apart=False, is_open=False)
    embed_behind_another(inside, CachedEmbedder(inside), [["a"], ["b"], ["c"]])
    assert sorted(inside.batches) == [("a",), ("b",), ("c",), ("first",)]


def test_many_texts_go_past_those_who_wait():
    inside = Gated()
    texts = [f"passage {number}" for number in range(100)]
    assert CachedEmbedder(inside).embed(texts).tolist() == expect(texts)
    assert inside.batches == [tuple(texts)]


@settings(max_examples=30)
@given(calls=st.lists(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=4), max_size=12))
def test_rows_are_those_of_the_embedder_inside(calls):
    made = CachedEmbedder(Gated())
    with ThreadPoolExecutor(4) as threads:
        assert [rows.tolist() for rows in threads.map(made.embed, calls)] == [expect(texts) for texts in calls]


# ---------------------------------------------------------------- failures


def test_a_failure_reaches_all_of_its_call_and_is_not_kept():
    inside = Gated()
    inside.fault = lambda texts: BadReply("no vectors")
    made = CachedEmbedder(inside)
    for texts in (["a"], ["a", "b"]):
        with pytest.raises(BadReply):
            made.embed(texts)
    inside.fault = lambda texts: None
    assert made.embed(["a"]).tolist() == expect(["a"])


@TOGETHER
def test_too_few_vectors_fail_a_call_and_the_next_one_works(embeds_apart):
    inside = Gated(embeds_apart=embeds_apart)
    inside.missing = 1
    made = CachedEmbedder(inside)
    with pytest.raises(BadReply, match="0 vectors for 1"):
        made.embed(["a"])
    inside.missing = 0
    with ThreadPoolExecutor(1) as threads:
        assert threads.submit(made.embed, ["a"]).result(SOON).tolist() == expect(["a"])


def test_a_text_that_fails_fails_for_its_own_caller():
    inside = Gated(is_open=False)
    inside.fault = lambda texts: BadReply("no vector for bad") if "bad" in texts else None
    good, *failed = embed_behind_another(inside, CachedEmbedder(inside), [["good"], ["bad"], ["fine", "bad"]])
    assert good == expect(["good"])
    assert [str(failure) for failure in failed] == ["no vector for bad"] * 2


def test_an_interrupt_reaches_one_caller_alone():
    inside = Gated(is_open=False)
    inside.fault = lambda texts: KeyboardInterrupt() if len(inside.batches) == 2 else None
    made = CachedEmbedder(inside)
    ended = embed_behind_another(inside, made, [["a"], ["b"], ["a"]])
    assert sum(isinstance(each, KeyboardInterrupt) for each in ended) == 1
    assert sum(each in (expect(["a"]), expect(["b"])) for each in ended) == 2
    assert made.embed(["a"]).tolist() == expect(["a"])
