"""Passages that are shown as one text, and how many tokens texts have."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tomewise.embedding.hash import HashEmbedder
from tomewise.loops import evidence
from tomewise.loops.evidence import join_texts, make_token_counter
from tomewise.types import Passage

TEXT = "Ada rowed out. Tom slept.\n\nThen it rained."


def cut(start: int, end: int) -> Passage:
    return Passage(id=f"p{start}", document="d", position=0, start=start, end=end, text=TEXT[start:end])


def test_passages_are_joined_as_they_stand_and_what_two_share_comes_once():
    assert join_texts([cut(0, 14), cut(15, 25), cut(27, 42)]) == (TEXT, [0, 15, 27])
    assert join_texts([cut(0, 25), cut(15, 42)]) == (TEXT, [0, 15])
    assert join_texts([cut(0, 20), cut(20, 42)]) == (TEXT, [0, 20])


class Noting(HashEmbedder):
    """Notes what its tokenizer gets."""

    def __init__(self) -> None:
        super().__init__(8)
        self.asked: list[str] = []

    @property
    def tokenizer(self):
        outer, inner = self, HashEmbedder(8).tokenizer

        class Tokenizer:
            def encode_batch_fast(self, texts, **options):
                outer.asked += texts
                return inner.encode_batch_fast(texts, **options)

        return Tokenizer()


def test_the_tokens_of_a_text_are_counted_once():
    embedder = Noting()
    count = make_token_counter(embedder)
    assert count(["Ada rowed out.", "Tom slept", "Ada rowed out."]) == [4, 2, 4]
    assert count(["Tom slept", "", "It rained!"]) == [2, 0, 3]
    assert embedder.asked == ["Ada rowed out.", "Tom slept", "", "It rained!"]


@given(calls=st.lists(st.lists(st.text(max_size=8), max_size=6), max_size=8), kept=st.integers(0, 6))
def test_remembered_counts_are_those_of_the_tokenizer(calls, kept):
    embedder, before = HashEmbedder(8), evidence._COUNTS_KEPT
    try:
        evidence._COUNTS_KEPT = kept
        count = make_token_counter(embedder)
        for texts in calls:
            plain = embedder.tokenizer.encode_batch_fast(texts, add_special_tokens=False)
            assert count(texts) == [len(tokens.ids) for tokens in plain]
    finally:
        evidence._COUNTS_KEPT = before
