import numpy as np
import pytest

from tomewise.embedding.unit_rows import embed_as_unit_rows, normalise_rows
from tomewise.errors import BadReply


def test_each_distinct_text_is_embedded_once_and_comes_back_in_order():
    asked = []

    def embed(texts):
        asked.extend(texts)
        return np.array([[len(text), 1.0] for text in texts], np.float32)

    found = embed_as_unit_rows(["aa", "b", "aa"], 2, 10, embed)
    assert asked == ["aa", "b"]
    assert found == pytest.approx(np.array([[2, 1], [1, 1], [2, 1]]) / np.sqrt([[5], [2], [5]]))


def test_long_texts_are_cut_before_they_are_embedded():
    lengths = []

    def embed(texts):
        lengths.extend(map(len, texts))
        return np.ones((1, 1), np.float32)

    embed_as_unit_rows(
        ["x" * 1_000_000], 1, 10, lambda texts: lengths.extend(map(len, texts)) or np.ones((1, 1), np.float32)
    )
    assert lengths == [200]


@pytest.mark.parametrize("row", [[0.0, 0.0], [np.nan, 1.0], [np.inf, 1.0]])
def test_a_vector_without_direction_is_refused(row):
    with pytest.raises(BadReply, match="zero or not finite"):
        normalise_rows(np.array([row], np.float32))


def test_a_wrong_shape_is_refused():
    with pytest.raises(BadReply, match=r"\(1, 3\)"):
        embed_as_unit_rows(["a"], 2, 10, lambda texts: np.ones((1, 3), np.float32))
