"""What fits into the last prompt, and how it is shown there."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.loops.doubles import Shelves, make_desk, put_passages

from tomewise.loops.layout import Layout, Note, Share, join
from tomewise.loops.once import Once
from tomewise.recall.ranking import as_evidence
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import check_loop
from tomewise.testing.scripted import ScriptedModel
from tomewise.types import Document, Evidence, Passage, Question

FENCE = 12
LENGTHS = (3, 4, 5, 3, 9, 3, 3, 6)  # words


def words(texts):
    return [len(text.split()) for text in texts]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    made = SqlStore.open(tmp_path_factory.mktemp("layout") / "a.tome")
    passages, text = [], ""
    for number, length in enumerate(LENGTHS):
        start = len(text)
        text += " ".join([f"part{number}", *(f"w{number}x{n}" for n in range(length - 1))])
        passages.append(
            Passage(id=f"p{number}", document="d", position=number, start=start, end=len(text), text=text[start:])
        )
        text += " "
    put_passages(made, Document(id="d", text=text.rstrip()), passages)
    yield made
    made.close()


def pick(store, *numbers: int) -> list[Evidence]:
    passages = {passage.position: passage for passage in store.passages().values()}
    return [as_evidence(passages[number], 1.0) for number in numbers]


def list_numbers(evidence) -> list[int]:
    return [int(piece.node[1:]) for piece in evidence]


def test_a_passage_beside_one_that_is_taken_needs_no_header(store):
    layout = Layout(store, words)
    assert list_numbers(layout.pack(pick(store, 0, 3, 1), 3 + 3 + 4 + 2 * FENCE)) == [0, 3, 1]
    assert list_numbers(layout.pack(pick(store, 0, 3, 5), 3 + 3 + 3 + 2 * FENCE)) == [0, 3]
    # p1 joins p0 and p2: the header of one of them is saved.
    assert list_numbers(layout.pack(pick(store, 0, 2, 1), 3 + 5 + 2 * FENCE)) == [0, 2, 1]


def test_what_is_too_long_is_passed_over(store):
    assert list_numbers(Layout(store, words).pack(pick(store, 4, 0), 3 + FENCE)) == [0]


@settings(deadline=None)
@given(st.lists(st.integers(0, len(LENGTHS) - 1), unique=True), st.integers(0, 120))
def test_what_is_taken_fits_as_it_is_shown(store, numbers, budget):
    layout = Layout(store, words)
    taken = sorted(layout.pack(pick(store, *numbers), budget), key=lambda piece: piece.node)
    joined = join(taken, layout.find_passages(taken))
    assert sum(size + FENCE for size in words([piece.text for piece in joined])) <= budget
    assert [source for piece in joined for source in piece.sources] == [piece.node for piece in taken]


def test_notes_are_left_out_where_their_grounds_are_shown_and_capped_where_not(store):
    layout = Layout(store, words)
    notes = [Note("said twice", ["p0"]), Note("rests on both", ["p0", "p4"]), Note("rests on notes")]
    context = layout.lay_out(pick(store, 0, 3), 180, notes)
    assert list_numbers(context.evidence) == [0, 3]
    assert context.notes == ("rests on both", "rests on notes")
    long = [Note(" ".join(f"n{number}x{n}" for n in range(40)) + ".") for number in range(5)]
    context = layout.lay_out(pick(store, 0, 3), 180, long)
    assert sum(size + FENCE for size in words(context.notes)) <= 180 // 3
    assert layout.lay_out(pick(store, 0, 3), 40, notes).cut == 0


def test_a_layer_beside_the_passages_has_its_share_and_what_is_left(store):
    layout = Layout(store, words)
    summaries = [
        Evidence(node=f"s{n}", layer="tree", text=f"summary number {n} of all the rest", score=1.0, sources=("p0",))
        for n in range(3)
    ]
    room = 7 + FENCE
    context = layout.lay_out(pick(store, 0, 3), room + 2 * (3 + FENCE), (), [Share(summaries, room)])
    assert [piece.node for piece in context.evidence] == ["s0", "p0", "p3"]
    assert context.cut == 2
    context = layout.lay_out(pick(store, 0), 2 * room + 3 + FENCE, (), [Share(summaries, room)])
    assert [piece.node for piece in context.evidence] == ["s0", "p0", "s1"]


async def test_passages_that_follow_one_another_are_one_piece_and_a_quotation_may_run_over_the_end(store):
    reply = {
        "answer": "so",
        "quotes": [{"label": "E1", "quote": "w0x1 part1 w1x0"}, {"label": "E1", "quote": "w1x1 ... w2x2"}],
    }
    model = ScriptedModel({"answer": [reply]})
    desk = make_desk(store, model, words, plain=Shelves({}, pick(store, 6, 2)))
    loop = Once(Shelves({}, pick(store, 1)), desk, limit=9, budget=3 + 4 + 5 + 3 + 2 * FENCE + 1)
    answer = await check_loop(loop, Question(text="What?"))
    shown = model.calls[0].given.evidence
    assert [piece.text.split()[0] for piece in shown] == ["part0", "part6"]
    assert shown[0].place == "parts 1 to 3 of 8"
    assert {piece.node for piece in answer.evidence} == {"p0", "p1", "p2", "p6"}, "best first"
    quoted = [(cited.passage, cited.quote) for cited in answer.citations]
    assert quoted == [("p0", "w0x1"), ("p1", "part1 w1x0"), ("p1", "w1x1"), ("p2", "w2x2")]
    assert answer.dropped_quotes == 0


async def test_a_question_that_asks_for_a_guess_may_not_be_declined(store):
    for force in (False, True):
        model = ScriptedModel({"answer": [{"answer": "so", "supported": "full"}]})
        desk = make_desk(store, model, words, plain=Shelves({}))
        await check_loop(Once(Shelves({}, pick(store, 1)), desk, limit=9, budget=90), Question(text="Q?", force=force))
        assert model.calls[0].given.may_decline is not force


def test_what_a_note_was_left_out_for_is_shown(store):
    """With the room of the note, a greedy choice from the start would take another passage in its place."""
    layout = Layout(store, words)
    ranked = pick(store, 7, 4, 0)  # of 6, 9 and 3 words
    for budget in range(20, 120):
        context = layout.lay_out(ranked, budget, [Note("said twice", ["p0"])])
        assert "said twice" in context.notes or not context.notes
        assert context.notes or "p0" in {piece.node for piece in context.evidence} or budget // 3 < 2 + FENCE
