"""What the answering role of the probing loop gets to see."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.loops.doubles import make_desk

from tomewise.loops.context import HISTORY, Contexts
from tomewise.loops.layout import Note

FENCE = 12  # tokens around each piece


def words(texts):
    return [len(text.split()) for text in texts]


@given(st.lists(st.integers(1, 400), max_size=12), st.integers(0, 1500))
def test_shortened_cues_keep_to_the_budget_and_short_ones_stay_whole(lengths, budget):
    cues = [" ".join([f"c{place}", *["on"] * (length - 1)]) for place, length in enumerate(lengths)]
    seen = Contexts(make_desk(None, count=words), budget, {"v": 1, HISTORY: 1}).fit_cues(cues)  # type: ignore[arg-type]
    assert sum(size + FENCE for size in words(seen)) <= max(budget, 0)
    assert [cue.split()[0] for cue in seen] == [f"c{place}" for place in range(len(seen))]
    if sum(size + FENCE for size in lengths) <= budget:
        assert seen == cues


def test_a_long_note_is_cut_short_and_not_left_out():
    room = Contexts(make_desk(None, count=words), 240, {"v": 12, HISTORY: 1})
    (note,) = room.make_context([], [Note("so " * 90)]).notes
    assert note.endswith("so …")
    assert len(note.split()) <= 240 // 3 - FENCE


@pytest.mark.parametrize("end", [". ", '." ', "! ", "。"])
def test_what_is_cut_short_has_no_conclusion_without_what_it_follows_from(end):
    text = f"First came the boat{end}{'Then it rained and rained' + end}" * 9 + "So the keeper lied."
    (kept,) = Contexts(make_desk(None, count=words), 20 + FENCE, {"v": 1}).fit_cues([text])  # type: ignore[arg-type]
    assert kept.startswith("First came the boat")
    assert kept.endswith(f"{end.strip()} …")
    assert "So the keeper lied." not in kept
    assert len(kept.split()) <= 20


@pytest.mark.parametrize(
    ("room", "kept"),
    [
        (19, "Lisle wound the clock. Dr. Moy put it back before he went. Nobody saw that. So Mrs. Moy knew."),
        (18, "Lisle wound the clock. Dr. Moy put it back before he went. Nobody saw that. …"),
        (13, "Lisle wound the clock. Dr. Moy put it back before he went. …"),
        (12, "Lisle wound the clock. …"),
        (3, "Lisle wound …"),
    ],
)
def test_what_is_cut_short_keeps_whole_sentences(room, kept):
    text = "Lisle wound the clock. Dr. Moy put it back before he went. Nobody saw that. So Mrs. Moy knew."
    assert Contexts(make_desk(None, count=words), room + FENCE, {"v": 1}).fit_cues([text]) == [kept]  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["第一章 " + "文" * 900, "文" * 900, "Holmes\n" + "文" * 900, "   " + "文" * 900])
def test_text_without_spaces_is_not_cut_to_its_first_word(text):
    def characters(texts):
        return [len(text.replace(" ", "")) for text in texts]

    (kept,) = Contexts(make_desk(None, count=characters), 500 + FENCE, {"v": 1}).fit_cues([text])  # type: ignore[arg-type]
    assert 400 < characters([kept])[0] <= 500


def test_text_of_no_tokens_where_there_is_no_room_is_left_out():
    assert Contexts(make_desk(None, count=words), 5, {"v": 1}).fit_cues(["\u200b \u200b", "x"]) == []  # type: ignore[arg-type]
    assert Contexts(make_desk(None, count=lambda texts: [0] * len(texts)), 5, {"v": 1}).fit_cues(["\u200b"]) == []  # type: ignore[arg-type]
