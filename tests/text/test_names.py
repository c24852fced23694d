from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tomewise.text.names import find_mentions


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
