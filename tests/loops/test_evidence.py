from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from tomewise.loops.evidence import share_budget


def words(texts: Sequence[str]) -> list[int]:
    return [len(text.split()) for text in texts]


def texts_of_size(*sizes: int) -> list[str]:
    return [" ".join(["w"] * size) for size in sizes]


def test_each_layer_fills_its_share_in_order():
    texts = {"v": texts_of_size(28, 28, 28), "s": texts_of_size(8, 8)}
    # Shares of 110 are 88 and 22; a text takes its tokens and 12 of fence: two of 40 fit, one of 20. 10 are left over.
    assert share_budget(110, {"v": 8, "s": 2}, texts, words) == {"v": [0, 1], "s": [0]}


def test_what_a_layer_leaves_spills_over_to_the_largest_share_first():
    texts = {"v": texts_of_size(28, 28, 28), "s": [], "e": texts_of_size(8, 8)}
    # Shares of 144 are 96, 24, 24: two of 40, none, one of 20. Of the 44 left the largest share takes its third.
    assert share_budget(144, {"v": 8, "s": 2, "e": 2}, texts, words) == {"v": [0, 1, 2], "s": [], "e": [0]}


def test_what_is_too_long_is_passed_over():
    assert share_budget(50, {"v": 1}, {"v": texts_of_size(100, 8, 8)}, words) == {"v": [1, 2]}


def test_no_budget_takes_nothing():
    assert share_budget(0, {"v": 1, "s": 1}, {"v": texts_of_size(1), "s": texts_of_size(1)}, words) == {
        "v": [],
        "s": [],
    }


@given(
    st.integers(0, 500),
    st.dictionaries(st.sampled_from("abcd"), st.tuples(st.integers(1, 9), st.lists(st.integers(0, 60))), min_size=1),
)
def test_never_more_than_the_budget_and_nothing_left_that_fits(budget, layers):
    shares = {name: share for name, (share, _) in layers.items()}
    texts = {name: texts_of_size(*sizes) for name, (_, sizes) in layers.items()}
    taken = share_budget(budget, shares, texts, words)
    used = sum(words(texts[name])[place] + 12 for name, places in taken.items() for place in places)
    assert used <= budget
    left = [
        size + 12
        for name, layer_texts in texts.items()
        for place, size in enumerate(words(layer_texts))
        if place not in taken[name]
    ]
    assert all(size > budget - used for size in left)
    assert all(places == sorted(set(places)) for places in taken.values())
