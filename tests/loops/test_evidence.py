"""Passages that are shown as one text."""

from __future__ import annotations

from tomewise.loops.evidence import join_texts
from tomewise.types import Passage

TEXT = "Ada rowed out. Tom slept.\n\nThen it rained."


def cut(start: int, end: int) -> Passage:
    return Passage(id=f"p{start}", document="d", position=0, start=start, end=end, text=TEXT[start:end])


def test_passages_are_joined_as_they_stand_and_what_two_share_comes_once():
    assert join_texts([cut(0, 14), cut(15, 25), cut(27, 42)]) == (TEXT, [0, 15, 27])
    assert join_texts([cut(0, 25), cut(15, 42)]) == (TEXT, [0, 15])
    assert join_texts([cut(0, 20), cut(20, 42)]) == (TEXT, [0, 20])
