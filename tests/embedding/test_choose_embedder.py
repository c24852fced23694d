"""Embedders by name, the hash embedder, and the rows of length one that every embedder gives."""

import os
import subprocess
import sys

import numpy as np
import pytest

from tomewise.embedding.choose_embedder import choose_embedder
from tomewise.embedding.hash import HashEmbedder
from tomewise.embedding.unit_rows import embed_as_unit_rows, normalise_rows
from tomewise.errors import BadReply, UnknownName
from tomewise.testing import NotingEmbedder


def run(code, **environment):
    """What Python code prints in a process of its own."""
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, capture_output=True, text=True, check=True, env={**os.environ, **environment})
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("spec", "kind", "dimensions"),
    [
        ("bundled", "BundledMiniLM", 384),
        ("all-MiniLM-L6-v2", "BundledMiniLM", 384),
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
    ("wrong", "offer"),
    [("bundeld", "'bundled'"), ("openia:x", "'openai:MODEL'"), ("fastembed", "'fastembed:MODEL'"), ("?", "hash, ")],
)
def test_an_unknown_name_offers_the_nearest(wrong, offer):
    with pytest.raises(UnknownName) as caught:
        choose_embedder(wrong)
    assert repr(wrong) in str(caught.value)
    assert offer in str(caught.value)


def test_choosing_loads_nothing_heavy():
    heavy = ("onnxruntime", "onnx", "tokenizers", "openai", "fastembed", "torch")
    names = ("bundled", "hash", "fastembed:m", "sentence-transformers:m", "openai:m")
    code = f"for n in {names}: e(n)\nprint([m for m in {heavy} if m in sys.modules])"
    assert run(f"import sys; from tomewise.embedding.choose_embedder import choose_embedder as e\n{code}") == "[]"


# ---------------------------------------------------------------- the hash embedder


def test_texts_that_share_words_are_near():
    embedder = HashEmbedder()
    question, near, form, far = embedder.embed(
        ["Who married King Lothair?", "Teutberga married Lothair the king.", "Lothair's marriages", "Bread needs yeast"]
    )
    assert question @ near > question @ form > question @ far
    assert abs(question @ far) < 0.25
    assert len(embedder.tokenizer.encode("Who, then, was it?").ids) == 7


@pytest.mark.parametrize("seed", ["1", "2"])
def test_vectors_are_the_same_in_another_process(seed):
    code = "print(HashEmbedder(16).embed(['the old house'])[0].tobytes().hex())"
    printed = run(f"from tomewise.embedding.hash import HashEmbedder; {code}", PYTHONHASHSEED=seed)
    assert printed == HashEmbedder(16).embed(["the old house"])[0].tobytes().hex()


# ---------------------------------------------------------------- rows of length one


def test_each_distinct_text_is_embedded_once_cut_and_comes_back_in_order():
    noting = NotingEmbedder()
    long = "x" * 1_000_000
    found = embed_as_unit_rows(["aa", long, "aa"], noting.dimensions, 10, noting.embed)
    assert [len(text) for text in noting.texts] == [2, 200]
    assert found == pytest.approx(HashEmbedder().embed(["aa", "x" * 200, "aa"]))
    counts = embed_as_unit_rows(["aa", "b"], 2, 10, lambda texts: np.array([[len(text), 1.0] for text in texts]))
    assert counts == pytest.approx(np.array([[2, 1], [1, 1]]) / np.sqrt([[5], [2]]))


@pytest.mark.parametrize("row", [[0.0, 0.0], [np.nan, 1.0], [np.inf, 1.0]])
def test_a_vector_without_direction_is_refused(row):
    with pytest.raises(BadReply, match="zero or not finite"):
        normalise_rows(np.array([row], np.float32))


def test_a_wrong_shape_is_refused():
    with pytest.raises(BadReply, match=r"\(1, 3\)"):
        embed_as_unit_rows(["a"], 2, 10, lambda texts: np.ones((1, 3), np.float32))
