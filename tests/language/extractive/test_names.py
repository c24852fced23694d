from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tomewise.language.extractive.names import find_gender, find_mentions, find_sort


def find_names(text: str) -> list[tuple[str, str]]:
    return [(m.text, m.kind) for m in find_mentions(text)]


def test_names_titles_dates_and_numbers_by_their_form():
    text = (
        "Jean Valjean met Inspector Javert at the University of Paris on 5 May 1832. "
        "Then he read “Les Temps Modernes” and paid 600 francs."
    )
    assert find_names(text) == [
        ("Jean Valjean", "name"),
        ("Inspector Javert", "name"),
        ("University of Paris", "name"),
        ("5 May 1832", "date"),
        ("Les Temps Modernes", "title"),
        ("600", "number"),
    ]


def test_the_capital_of_a_sentence_names_nothing():
    assert find_names("Suddenly the door opened. However, nobody came. Rain fell on Sker.") == [("Sker", "name")]


def test_a_possessive_parts_two_names():
    assert [text for text, _ in find_names("They saw Scrooge's Christmas tree.")] == ["Scrooge", "Christmas"]


@pytest.mark.parametrize(
    ("name", "sort", "he_or_she"),
    [
        ("Mrs. Moy", "person", "she"),
        ("Arthur Dent", "person", "he"),
        ("Oxford University", "organization", ""),
        ("Baker Street", "place", ""),
        ("G. Stanley Hall", "person", ""),
        ("Sri Lanka", "place", ""),
        ("Zork", "", ""),
    ],
)
def test_kinds_of_names(name: str, sort: str, he_or_she: str):
    assert (find_sort(name), find_gender(name)) == (sort, he_or_she)


@given(st.text(max_size=300))
def test_mentions_are_ordered_disjoint_and_in_the_text(text: str):
    named = find_mentions(text)
    assert all(a.end <= b.start for a, b in pairwise(named))
    assert all(m.text == " ".join(text[m.start : m.end].split()) for m in named)
