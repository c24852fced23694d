"""Chunks are runs of passages."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tomewise.reading.chunks import make_chunks
from tomewise.types import Passage


def passage(document, position, text="text"):
    return Passage(id=f"{document}-{position}", document=document, position=position, start=0, end=len(text), text=text)


def test_runs_end_where_they_are_full_and_neighbouring_documents_share_one():
    passages = [passage("a", n) for n in range(4)] + [passage("b", n) for n in range(2)]
    chunks = make_chunks(passages, [4, 4, 4, 4, 1, 1], 9)
    assert [([each.id for each in chunk.passages], chunk.tokens) for chunk in chunks] == [
        (["a-0", "a-1"], 8),
        (["a-2", "a-3", "b-0"], 9),
        (["b-1"], 1),
    ]


def test_a_passage_longer_than_a_chunk_is_a_chunk_alone():
    passages = [passage("a", n) for n in range(3)]
    assert [len(chunk.passages) for chunk in make_chunks(passages, [1, 20, 1], 9)] == [1, 1, 1]


def test_no_passages_make_no_chunk():
    assert make_chunks([], [], 9) == []


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 12)), max_size=20), st.integers(1, 15))
def test_every_passage_is_read_once_and_in_order(rows, size):
    rows.sort(key=lambda row: row[0])
    passages = [passage(document, n) for n, (document, _) in enumerate(rows)]
    chunks = make_chunks(passages, [tokens for _, tokens in rows], size)
    sizes = {each.id: tokens for each, (_, tokens) in zip(passages, rows, strict=True)}
    assert [each for chunk in chunks for each in chunk.passages] == passages
    assert all(chunk.tokens <= size or len(chunk.passages) == 1 for chunk in chunks)
    joined = pairwise(chunks)
    assert all(left.tokens + row > size for (left, right) in joined for row in [sizes[right.passages[0].id]])
