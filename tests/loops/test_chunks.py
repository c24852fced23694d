"""Chunks are runs of passages."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tomewise.loops.chunking import make_chunks
from tomewise.types import Passage


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 12)), max_size=20), st.integers(1, 15))
def test_every_passage_is_read_once_in_order_in_runs_that_end_where_they_are_full(rows, size):
    rows.sort(key=lambda row: row[0])
    passages = [
        Passage(id=f"{document}-{n}", document=document, position=n, start=0, end=4, text="text")
        for n, (document, _) in enumerate(rows)
    ]
    sized = [(each, tokens) for each, (_, tokens) in zip(passages, rows, strict=True)]
    chunks = make_chunks(sized, size)
    sizes = {each.id: tokens for each, tokens in sized}
    assert [each for chunk in chunks for each in chunk.passages] == passages
    assert [chunk.tokens for chunk in chunks] == [sum(sizes[each.id] for each in chunk.passages) for chunk in chunks]
    assert all(chunk.tokens <= size or len(chunk.passages) == 1 for chunk in chunks)
    assert all(left.tokens + sizes[right.passages[0].id] > size for left, right in pairwise(chunks))
