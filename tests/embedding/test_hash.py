import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tomewise.embedding.hash import HashEmbedder
from tomewise.errors import UsageError
from tomewise.types import Embedder


@given(st.lists(st.text(max_size=40), max_size=6))
def test_unit_rows_do_not_depend_on_the_other_texts(texts):
    embedder = HashEmbedder(64)
    found = embedder.embed(texts)
    assert found.shape == (len(texts), 64)
    assert found.dtype == np.float32
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)
    for row, text in zip(found, texts, strict=True):
        assert np.array_equal(row, embedder.embed([text])[0])


def test_texts_that_share_words_are_near():
    embedder = HashEmbedder()
    assert isinstance(embedder, Embedder)
    question, near, form, far = embedder.embed(
        ["Who married King Lothair?", "Teutberga married Lothair the king.", "Lothair's marriages", "Bread needs yeast"]
    )
    assert question @ near > question @ form > question @ far
    assert abs(question @ far) < 0.25


def test_vectors_are_the_same_in_another_process():
    code = (
        "from tomewise.embedding.hash import HashEmbedder\n"
        "print(HashEmbedder(16).embed(['the old house'])[0].tobytes().hex())"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed}
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert runs == {HashEmbedder(16).embed(["the old house"])[0].tobytes().hex()}


def test_the_tokenizer_counts_words_and_marks():
    assert len(HashEmbedder().tokenizer.encode("Who, then, was it?").ids) == 7


def test_zero_dimensions_are_refused():
    with pytest.raises(UsageError, match="0 dimensions"):
        HashEmbedder(0)
