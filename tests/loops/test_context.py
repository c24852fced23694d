"""What the answering role of the probing loop gets to see."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.loops.doubles import make_desk

from tomewise.embedding.hash import HashEmbedder
from tomewise.loops.context import HISTORY, Contexts
from tomewise.store.sqlite.sqlite_store import SqliteStore
from tomewise.testing import document_of, put_document
from tomewise.types import Evidence
from tomewise.working.pool import Unit

FENCE = 12  # tokens around each piece


def words(texts):
    return [len(text.split()) for text in texts]


@pytest.fixture
def store(tmp_path):
    made = SqliteStore.open(tmp_path / "a.tome")
    for number in range(8):
        put_document(made, HashEmbedder(32), document_of(f"d{number}", f"Number {number} " + "and so on " * 6))
    yield made
    made.close()


@pytest.fixture
def pieces(store):
    found = store.passages().values()
    return [Evidence(node=p.id, layer="passages", text=p.text, score=1.0, sources=(p.id,)) for p in found]


def contexts(store, pieces_of_room: float, **shares: int) -> Contexts:
    budget = round((20 + FENCE) * pieces_of_room)
    return Contexts(make_desk(store, count=words), budget, {**(shares or {"v": 1}), HISTORY: 0})


def numbers(context) -> list[int]:
    return [int(piece.text.split()[1]) for piece in context.evidence]


def test_rank_decides_what_gets_in_and_document_order_how_it_is_shown(store, pieces):
    ranked = {"v": [pieces[number] for number in (6, 4, 0, 1, 2)]}
    tight = contexts(store, 2).make_context(ranked, [], "")
    assert (numbers(tight), tight.cut) == ([4, 6], 3)
    roomy = contexts(store, 3).make_context(ranked, [], "")
    assert (numbers(roomy), roomy.cut) == ([0, 4, 6], 2)


def test_cues_take_at_most_a_quarter_of_the_context_and_each_text_counts_once(store, pieces):
    cue = "so " * 18 + "on"
    units = [Unit(f"p{number}", "v", (pieces[number],), f"{number} {cue}") for number in range(4)]
    context = contexts(store, 8).make_context({"v": pieces}, [units[0], units[0], *units], "")
    assert [note.split()[0] for note in context.notes] == ["0", "1"], "the first ones have room"
    assert len(context.evidence) == 6


@given(st.lists(st.integers(1, 400), max_size=12), st.integers(0, 1500))
def test_shortened_cues_keep_to_the_budget_and_short_ones_stay_whole(lengths, budget):
    cues = [" ".join([f"c{place}", *["on"] * (length - 1)]) for place, length in enumerate(lengths)]
    seen = Contexts(make_desk(None, count=words), budget, {"v": 1, HISTORY: 1}).fit_cues(cues)  # type: ignore[arg-type]
    assert sum(size + FENCE for size in words(seen)) <= max(budget, 0)
    assert [cue.split()[0] for cue in seen] == [f"c{place}" for place in range(len(seen))]
    if sum(size + FENCE for size in lengths) <= budget:
        assert seen == cues


def test_a_long_note_of_the_past_is_cut_short_and_not_left_out(store):
    assert (
        Contexts(make_desk(store, count=words), 36, {"v": 12, HISTORY: 1}).make_context({"v": []}, [], "so " * 90).notes
        == ()
    ), "not even a word has room beside its fence"
    context = Contexts(make_desk(store, count=words), 130, {"v": 12, HISTORY: 1}).make_context(
        {"v": []}, [], "so " * 90
    )
    assert context.notes[0].endswith("so …")
    assert len(context.notes[0].split()) <= 130 // 13 + (130 - 130 // 13) // 3 - FENCE


@pytest.mark.parametrize("end", [". ", '." ', "! ", "。"])
def test_what_is_cut_short_keeps_its_conclusion(end):
    text = f"First came the boat{end}{'Then it rained and rained' + end}" * 9 + "So the keeper lied."
    (kept,) = Contexts(make_desk(None, count=words), 20 + FENCE, {"v": 1}).fit_cues([text])  # type: ignore[arg-type]
    assert kept.startswith("First came the boat")
    assert kept.endswith("… So the keeper lied.")
    assert len(kept.split()) <= 20
    (kept,) = Contexts(make_desk(None, count=words), 6 + FENCE, {"v": 1}).fit_cues([text])  # type: ignore[arg-type]
    assert kept == "So the keeper lied.", "no sentence is cut to make room for another"


@pytest.mark.parametrize(
    ("room", "kept"),
    [
        (18, "Lisle wound the clock. Dr. Moy put it back before he went. … So Mrs. Moy knew."),
        (17, "Lisle wound the clock. Dr. Moy put it back before he went. … So Mrs. Moy knew."),
        (16, "Lisle wound the clock. … So Mrs. Moy knew."),
        (4, "So Mrs. Moy knew."),
        (3, "Lisle wound …"),
    ],
)
def test_what_is_cut_short_keeps_whole_sentences(room, kept):
    text = "Lisle wound the clock. Dr. Moy put it back before he went. Nobody saw that. So Mrs. Moy knew."
    assert Contexts(make_desk(None, count=words), room + FENCE, {"v": 1}).fit_cues([text]) == [kept]  # type: ignore[arg-type]


def test_a_conclusion_that_is_too_long_leaves_the_sentences_before_it_whole():
    text = "First came the boat. Then it rained. " + "So the keeper lied " + "and lied " * 20 + "."
    (kept,) = Contexts(make_desk(None, count=words), 9 + FENCE, {"v": 1}).fit_cues([text])  # type: ignore[arg-type]
    assert kept == "First came the boat. Then it rained. …"


@pytest.mark.parametrize("text", ["第一章 " + "文" * 900, "文" * 900, "Holmes\n" + "文" * 900, "   " + "文" * 900])
def test_text_without_spaces_is_not_cut_to_its_first_word(text):
    def characters(texts):
        return [len(text.replace(" ", "")) for text in texts]

    (kept,) = Contexts(make_desk(None, count=characters), 500 + FENCE, {"v": 1}).fit_cues([text])  # type: ignore[arg-type]
    assert 400 < characters([kept])[0] <= 500


def test_text_of_no_tokens_where_there_is_no_room_is_left_out():
    assert Contexts(make_desk(None, count=words), 5, {"v": 1}).fit_cues(["\u200b \u200b", "x"]) == []  # type: ignore[arg-type]
    assert Contexts(make_desk(None, count=lambda texts: [0] * len(texts)), 5, {"v": 1}).fit_cues(["\u200b"]) == []  # type: ignore[arg-type]
