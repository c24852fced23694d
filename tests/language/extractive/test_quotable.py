from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tomewise.language.extractive.quotable import find_sentences, list_candidates
from tomewise.language.roles import Quotable

LINES = st.sampled_from(
    [
        "# Rent",
        "Rent\n====",
        "1. Dogs are welcome.",
        "- Hens",
        "| a | b |",
        "| --- | --- |",
        "From: Ann",
        "It rains. It",
        "",
        "[Map]",
    ]
)


def cut(text: str) -> list[str]:
    return [text[start:end] for start, end in find_sentences(text)]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("# Rent\nIt is 64 pounds. It falls due in May.", ["It is 64 pounds.", "It falls due in May."]),
        ("Rent\n====\n\nIt is 64 pounds.", ["It is 64 pounds."]),
        ("THE SLEDGE JOURNEY\n\nWe left the hut.", ["We left the hut."]),
        (
            "1. Dogs are kept\n   on a lead.\n2. Hens are welcome.",
            ["1. Dogs are kept\n   on a lead.", "2. Hens are welcome."],
        ),
        (
            "The house where they slept was\n42. It had a garden.",
            ["The house where they slept was\n42.", "It had a garden."],
        ),
        (
            "It was given that evening by\nI. Newton of Cambridge.",
            ["It was given that evening by\nI. Newton of Cambridge."],
        ),
        ("A. Marsh keeps the light.", ["A. Marsh keeps the light."]),
        ("1. Dogs on\n   a lead\n2. Hens", ["1. Dogs on\n   a lead", "2. Hens"]),
        (
            "She packed three things for the\njourney: a lamp, a rope and a stove.",
            ["She packed three things for the\njourney: a lamp, a rope and a stove."],
        ),
        ("Anna lives in Berlin", ["Anna lives in Berlin"]),
        ("Anna lives in Berlin\n\nBen lives in Rome\n\n# Hens", ["Anna lives in Berlin", "Ben lives in Rome"]),
        ("  Anna lives in Berlin", ["Anna lives in Berlin"]),
        ("- Certificates are renewed\n- Alarms come back", ["Certificates are renewed", "Alarms come back"]),
        ("| amber | an update |\n| --- | --- |\n| red | no line |", ["| amber | an update |", "| red | no line |"]),
        ("Owner: payments\nDate: 2025-03-04\n\nIt failed.", ["Owner: payments", "Date: 2025-03-04", "It failed."]),
        ("name: Ann; salary: 7\n\nname: Ben; salary: 9", ["name: Ann; salary: 7", "name: Ben; salary: 9"]),
    ],
)
def test_headings_and_marks_are_no_part_of_a_sentence(text: str, sentences: list[str]):
    assert cut(text) == sentences


@given(st.lists(st.one_of(LINES, st.text(max_size=30)), max_size=8).map("\n".join))
def test_sentences_are_pieces_of_the_text_in_their_order(text: str):
    spans = list(find_sentences(text))
    assert all(text[start:end] == text[start:end].strip() != "" for start, end in spans)
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))


@pytest.mark.parametrize("line", ["Subject: the organ", "[Illustration: a goose in the pan.]", ".. note:: see there."])
def test_heads_of_mails_captions_and_markup_are_boilerplate(line: str):
    [head, text] = list_candidates([Quotable(label="E1", text=f"{line}\n\nThe organ needs new bellows.")])
    assert (head.is_boilerplate, text.is_boilerplate) == (True, False)


def test_a_row_of_a_table_is_no_boilerplate_but_a_row_of_badges_is():
    text = "| amber | an update |\n|red|no line|\n|Build Status| |Downloads|_"
    assert [each.is_boilerplate for each in list_candidates([Quotable(label="E1", text=text)])] == [False, False, True]


def test_headings_are_candidates_only_where_there_is_nothing_else():
    alone, beside = Quotable(label="E1", text="# Anna lives in Berlin"), Quotable(label="E2", text="Ben lives in Rome.")
    assert [each.text for each in list_candidates([alone])] == ["Anna lives in Berlin"]
    assert [each.text for each in list_candidates([alone, beside])] == ["Ben lives in Rome."]


def test_what_is_embedded_begins_with_the_title_and_the_outer_and_inner_headings():
    headings = [(0, ("Allotments",)), (9, ("Allotments", "Money", "Rent"))]
    text = "Welcome. It is 64 pounds."
    first, second = list_candidates([Quotable(label="E1", text=text, title="Hollow Lane", headings=headings)])
    assert (first.prefix, second.prefix) == ("Hollow Lane, Allotments", "Hollow Lane, Allotments, Rent")


def test_a_sentence_of_several_passages_stands_once():
    passages = [Quotable(label=f"E{number}", text="The tide turns. It is late.") for number in (1, 2)]
    assert [(each.label, each.rank) for each in list_candidates(passages)] == [("E1", 0), ("E1", 0)]
