"""What the answering role of the probing loop gets to see."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tomewise.embedding.hash import HashEmbedder
from tomewise.loops.context import HISTORY, Contexts
from tomewise.loops.showing import Shelf
from tomewise.store.sqlite import SqliteStore
from tomewise.testing import document_of, put
from tomewise.types import Evidence
from tomewise.working.pool import Pool, Unit

FENCE = 12  # tokens around each piece


def words(texts):
    return [len(text.split()) for text in texts]


@pytest.fixture
def store(tmp_path):
    made = SqliteStore.open(tmp_path / "a.tome")
    for number in range(8):
        put(made, HashEmbedder(32), document_of(f"d{number}", f"Number {number} " + "and so on " * 6))
    yield made
    made.close()


@pytest.fixture
def pieces(store):
    found = store.passages().values()
    return [Evidence(node=p.id, layer="passages", text=p.text, score=1.0, sources=(p.id,)) for p in found]


def contexts(store, pieces_of_room: float, **shares: int) -> Contexts:
    budget = round((20 + FENCE) * pieces_of_room)
    return Contexts(Shelf(store), words, budget, {**(shares or {"v": 1}), HISTORY: 0})


def pool_of(*units: Unit) -> Pool:
    pool = Pool(HashEmbedder(32))
    for unit in units:
        pool.credit(unit.evidence)
    pool.take(units)
    return pool


def numbers(context) -> list[int]:
    return [int(piece.text.split()[1]) for piece in context.evidence]


def test_new_evidence_comes_before_that_of_the_pool_and_is_shown_in_document_order(store, pieces):
    pool = pool_of(Unit("q", "v", tuple(pieces[:3]), ""))
    fresh = [Unit("p", "v", (pieces[6], pieces[4]), "")]
    tight = contexts(store, 2).context(fresh, "", pool)
    assert (numbers(tight), tight.cut) == ([4, 6], 3)
    roomy = contexts(store, 3).context(fresh, "", pool)
    assert (numbers(roomy), roomy.cut) == ([0, 4, 6], 2), "room that is left goes to the best of the pool"


def test_new_units_take_turns(store, pieces):
    fresh = [Unit("p", "v", (pieces[7], pieces[6]), ""), Unit("r", "v", (pieces[1], pieces[0]), "")]
    assert numbers(contexts(store, 2).context(fresh, "", pool_of())) == [1, 7]


def test_the_whole_pool_is_read_by_how_often_and_how_high_it_was_found(store, pieces):
    pool = pool_of(Unit("q", "v", (pieces[5], pieces[2]), ""), Unit("p", "v", (pieces[3],), ""))
    pool.credit([pieces[2]])
    assert numbers(contexts(store, 1).whole(pool.units, pool)) == [2]
    assert numbers(contexts(store, 2).whole(pool.units, pool)) == [2, 5], "of two found once the one found first"


def test_cues_take_at_most_half_of_their_layers_share(store, pieces):
    cue = "so " * 19 + "on"
    units = [Unit(f"p{number}", "v", (pieces[number],), f"{number} {cue}") for number in range(4)]
    context = contexts(store, 4).context(units, "", pool_of())
    assert len(context.notes) == 1, "two would take more than half: a cue is one token longer than a piece"
    assert len(context.evidence) == 2


@given(st.lists(st.integers(1, 400), max_size=12), st.integers(0, 1500))
def test_shortened_cues_keep_to_the_budget_and_short_ones_stay_whole(lengths, budget):
    cues = [" ".join([f"c{place}", *["on"] * (length - 1)]) for place, length in enumerate(lengths)]
    seen = Contexts(None, words, budget, {"v": 1, HISTORY: 1}).cues(cues)  # type: ignore[arg-type]
    assert sum(size + FENCE for size in words(seen)) <= max(budget, 0)
    assert [cue.split()[0] for cue in seen] == [f"c{place}" for place in range(len(seen))]
    if sum(size + FENCE for size in lengths) <= budget:
        assert seen == cues


async def test_a_long_note_of_the_past_is_cut_short_and_not_left_out(store, pieces):
    context = Contexts(Shelf(store), words, 130, {"v": 12, HISTORY: 1}).context([], "so " * 90, pool_of())
    assert context.notes == (), "not even a word has room beside its fence"
    context = Contexts(Shelf(store), words, 520, {"v": 12, HISTORY: 1}).context([], "so " * 90, pool_of())
    assert context.notes[0].endswith("so …")
    assert len(context.notes[0].split()) <= 40 - FENCE


@pytest.mark.parametrize("text", ["第一章 " + "文" * 900, "文" * 900, "Holmes\n" + "文" * 900, "   " + "文" * 900])
def test_text_without_spaces_is_not_cut_to_its_first_word(text):
    def characters(texts):
        return [len(text.replace(" ", "")) for text in texts]

    (kept,) = Contexts(None, characters, 500 + FENCE, {"v": 1}).cues([text])  # type: ignore[arg-type]
    assert 400 < characters([kept])[0] <= 500


def test_text_of_no_tokens_where_there_is_no_room_is_left_out():
    assert Contexts(None, words, 5, {"v": 1}).cues(["\u200b \u200b", "x"]) == []  # type: ignore[arg-type]
    assert Contexts(None, lambda texts: [0 for _ in texts], 5, {"v": 1}).cues(["\u200b"]) == []  # type: ignore[arg-type]
