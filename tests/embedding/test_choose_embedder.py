"""Embedders by name, the hash embedder, and the rows of length one that every embedder gives."""

import numpy as np
import pytest

from tomewise.embedding.choose_embedder import choose_embedder
from tomewise.embedding.hash import HashEmbedder
from tomewise.embedding.unit_rows import UnitRows
from tomewise.errors import BadReply, UnknownName
from tomewise.testing import NotingEmbedder


@pytest.mark.parametrize(
    ("spec", "kind", "dimensions"),
    [
        ("bundled", "BundledMiniLM", 384),
        ("all-MiniLM-L6-v2-int8", "Int8MiniLM", 384),
        ("hash:128", "HashEmbedder", 128),
        ("fastembed:BAAI/bge-small-en-v1.5", "FastEmbed", None),
        ("sentence-transformers:sentence-transformers/all-mpnet-base-v2", "SentenceTransformersEmbedder", None),
        ("openai:text-embedding-3-small", "OpenAIEmbedder", 1536),
        ("openai:text-embedding-3-small@256", "OpenAIEmbedder", 256),
        ("openai:nomic-embed-text:latest", "OpenAIEmbedder", None),
    ],
)
def test_a_name_gives_an_embedder_whose_name_gives_it_again(spec, kind, dimensions):
    embedder = choose_embedder(spec)
    assert type(embedder).__name__ == kind
    again = choose_embedder(embedder.name)
    assert (type(again), again.name) == (type(embedder), embedder.name)
    if dimensions:
        assert embedder.dimensions == dimensions


@pytest.mark.parametrize(
    ("wrong", "offer"), [("bundeld", "'bundled'"), ("fastembed", "'fastembed:MODEL'"), ("?", "hash, ")]
)
def test_an_unknown_name_offers_the_nearest(wrong, offer):
    with pytest.raises(UnknownName) as caught:
        choose_embedder(wrong)
    assert repr(wrong) in str(caught.value)
    assert offer in str(caught.value)


# ---------------------------------------------------------------- the hash embedder


def test_texts_that_share_words_are_near():
    embedder = HashEmbedder()
    question, near, form, far = embedder.embed(
        ["Who married King Lothair?", "Teutberga married Lothair the king.", "Lothair's marriages", "Bread needs yeast"]
    )
    assert question @ near > question @ form > question @ far
    assert abs(question @ far) < 0.25
    assert len(embedder.tokenizer.encode("Who, then, was it?").ids) == 7


def test_vectors_are_the_same_on_every_machine():
    sums = HashEmbedder(16).embed(["the old house"])[0] * np.sqrt(15)
    assert sums == pytest.approx([1, 0, 2, 0, 0, 0, 0, -2, 0, -1, 1, 2, 0, 0, 0, 0])


# ---------------------------------------------------------------- rows of length one


class Rows(UnitRows):
    def __init__(self, embed, dimensions=2):
        self._embed_distinct, self.dimensions, self.max_tokens = embed, dimensions, 10


def test_each_distinct_text_is_embedded_once_cut_and_comes_back_in_order():
    noting = NotingEmbedder()
    long = "x" * 1_000_000
    found = Rows(noting.embed, noting.dimensions).embed(["aa", long, "aa", "a \ud800"])
    assert noting.texts == ["aa", "x" * 200, "a ?"], "half a character cannot be embedded"
    assert found == pytest.approx(HashEmbedder().embed(["aa", "x" * 200, "aa", "a ?"]))
    counts = Rows(lambda texts: np.array([[len(text), 1.0] for text in texts])).embed(["aa", "b"])
    assert counts == pytest.approx(np.array([[2, 1], [1, 1]]) / np.sqrt([[5], [2]]))


@pytest.mark.parametrize("row", [[0.0, 0.0], [np.nan, 1.0], [np.inf, 1.0], [1.0, 1.0, 1.0]])
def test_a_vector_without_direction_or_of_another_shape_is_refused(row):
    with pytest.raises(BadReply, match="zero or not finite" if len(row) == 2 else r"\(1, 3\)"):
        Rows(lambda texts: np.array([row], np.float32)).embed(["a"])
