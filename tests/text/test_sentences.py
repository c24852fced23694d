from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tomewise.text.quotable import find_sentences
from tomewise.text.sentences import split_sentences, split_texts

WRAPPED = "She packed three things for the\njourney: a lamp and a rope."
LINES = ["# Rent", "Rent\n====", "1. Dogs are welcome.", "- Hens", "| a | b |", "| --- | --- |", "From: Ann",
         "It rains. It", "", "[Map]"]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        (
            "Mr. J. Smith met Dr. Watson at 3.15 p.m. sharp. He left.",
            ["Mr. J. Smith met Dr. Watson at 3.15 p.m. sharp.", "He left."],
        ),
        ("“Stop!” She ran. “Why?”", ["“Stop!”", "She ran.", "“Why?”"]),
        ("他来了。她走了！为什么？", ["他来了。", "她走了！", "为什么？"]),
        ("Am 3. Mai 1911 kam er an. Mai war es. Er ging.", ["Am 3. Mai 1911 kam er an.", "Mai war es.", "Er ging."]),
        ("A line\nthat wraps\n\nA heading", ["A line\nthat wraps", "A heading"]),
        (WRAPPED, [WRAPPED]),
        ("It was late.\nNote: it rained", ["It was late.", "Note: it rained"]),
    ],
    ids=[
        "abbreviations",
        "quotation marks",
        "chinese",
        "german",
        "wrapped lines",
        "a wrapped colon",
        "a colon after a stop",
    ],
)
def test_where_a_sentence_ends(text, sentences):
    assert [sentence.text for sentence in split_sentences(text)] == sentences


def test_a_sentence_is_cut_only_where_it_is_longer_than_allowed_and_at_white_space():
    long = "and on " * 200 + "it went."
    assert len(split_sentences(long)) > 1
    assert [sentence.text for sentence in split_sentences(long, longest=len(long))] == [long]
    pieces = split_sentences("word " * 1000)
    assert len(pieces) > 5
    assert all(len(piece.text) <= 700 and not piece.text.startswith("ord") for piece in pieces)


def test_turns_of_a_transcript_carry_their_speaker():
    sentences = split_sentences("Ann Lee: I agree. It is late.\nBob: No.")
    assert [(s.speaker, s.text) for s in sentences] == [
        ("Ann Lee", "Ann Lee: I agree."),
        ("Ann Lee", "It is late."),
        ("Bob", "Bob: No."),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "From: Ann <ann@a.example>\nTo: Ben\nSubject: the organ\n\nDear Ben, it is late.",
        "Owner: payments team\nDate: 2025-03-04\nPresent: Lena, Tobias and Ravi.",
        "name: Ann; salary: 7\n\nname: Ben; salary: 9",
        "Note: it rains.",
    ],
)
def test_heads_and_rows_name_no_speakers(text):
    assert {sentence.speaker for sentence in split_sentences(text)} == {""}


@given(st.text(max_size=300))
def test_offsets_are_exact_and_nothing_but_white_space_is_lost(text):
    sentences = split_sentences(text)
    assert all(text[s.start : s.end] == s.text and s.text.strip() == s.text != "" for s in sentences)
    ends = [0, *(s.end for s in sentences)]
    starts = [*(s.start for s in sentences), len(text)]
    assert all(text[end:start].strip() == "" for end, start in zip(ends, starts, strict=True))


def test_several_texts_share_the_room():
    sentences = split_texts(["a. " * 1000, "Z. " * 1000], limit=600)
    assert {s.source for s in sentences} == {0, 1}
    assert max(s.end for s in sentences) <= 300


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("# Rent\nIt is 64 pounds. It falls due in May.", ["It is 64 pounds.", "It falls due in May."]),
        ("Rent\n====\n\nIt is 64 pounds.", ["It is 64 pounds."]),
        ("THE SLEDGE JOURNEY\n\nWe left the hut.", ["We left the hut."]),
        ("1. Dogs are kept\n   on a lead.\n2. Hens.", ["1. Dogs are kept\n   on a lead.", "2. Hens."]),
        ("The house where they slept was\n42. It had a garden.", [..., "It had a garden."]),
        ("It was given that evening by\nI. Newton of Cambridge.", [...]),
        ("She packed three things for the\njourney: a lamp, a rope and a stove.", [...]),
        ("Anna lives in Berlin\n\nBen lives in Rome\n\n# Hens", ["Anna lives in Berlin", "Ben lives in Rome"]),
        ("- Certificates are renewed\n- Alarms come back", ["Certificates are renewed", "Alarms come back"]),
        ("| amber | an update |\n| --- | --- |\n| red | no line |", ["| amber | an update |", "| red | no line |"]),
        ("Owner: payments\nDate: 2025-03-04\n\nIt failed.", ["Owner: payments", "Date: 2025-03-04", "It failed."]),
    ],
)
def test_headings_and_marks_are_no_part_of_a_sentence(text, sentences):
    """`...` stands for all that is not in the other sentences."""
    rest = text.removesuffix("".join(f" {sentence}" for sentence in sentences[1:]))
    assert [text[start:end] for start, end in find_sentences(text)] == [rest if s is ... else s for s in sentences]


@given(st.lists(st.one_of(st.sampled_from(LINES), st.text(max_size=30)), max_size=8).map("\n".join))
def test_sentences_are_pieces_of_the_text_in_their_order(text):
    spans = list(find_sentences(text))
    assert all(text[start:end] == text[start:end].strip() != "" for start, end in spans)
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))
