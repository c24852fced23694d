from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tomewise.text.names import find_mentions
from tomewise.text.numerals import find_numbers


def test_names_titles_dates_and_numbers_are_found_by_their_form():
    text = (
        "Suddenly Jean Valjean met Inspector Javert's dog at the University of Paris on 5 May 1832. "
        "However, he read “Les Temps Modernes” and paid 600 francs."
    )
    assert [(mention.text, mention.kind) for mention in find_mentions(text)] == [
        ("Jean Valjean", "name"),
        ("Inspector Javert", "name"),
        ("University of Paris", "name"),
        ("5 May 1832", "date"),
        ("Les Temps Modernes", "title"),
        ("600", "number"),
    ]


@given(st.text(max_size=300))
def test_mentions_are_ordered_disjoint_and_in_the_text(text):
    named = find_mentions(text)
    assert all(a.end <= b.start for a, b in pairwise(named))
    assert all(m.text == " ".join(text[m.start : m.end].split()) for m in named)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("two hundred and five thousand", [205_000]),
        ("nineteen twelve", [1912]),
        ("a dozen eggs", [12]),
        ("3.5 million", [3_500_000]),
        ("1\u202f500", [1500]),
        ("٣٤ and ３５", [34, 35]),
        ("one or two", []),
    ],
)
def test_numbers_are_read_in_digits_and_words(text: str, values: list[float]) -> None:
    assert [number.values[0] for number in find_numbers(text)] == values
