"""The last prompt: one ranking of all searches, what of it fits, shares and notes, and texts that are cut short."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.loops.doubles import Shelves, count_words, make_desk, put_passages

from tomewise.loops.last_prompt import Layout, Note, Searched, Share, fuse, join, weigh_queries
from tomewise.loops.once import Once
from tomewise.recall.ranking import as_evidence
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import check_loop
from tomewise.testing.scripted import ScriptedModel
from tomewise.types import Document, Evidence, Passage, Question

FENCE = 12
LENGTHS = (3, 4, 5, 3, 9, 3, 3, 6)  # words of the passages of document d
PARTS = 8  # passages of the documents a and b


def put_document(store, name, texts):
    passages, start = [], 0
    for position, text in enumerate(texts):
        end = start + len(text)
        passages.append(
            Passage(id=f"{name}{position}", document=name, position=position, start=start, end=end, text=text)
        )
        start = end + 1
    put_passages(store, Document(id=name, text=" ".join(texts)), passages)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    made = SqlStore.open(tmp_path_factory.mktemp("layout") / "a.tome")
    put_document(
        made, "p", [" ".join([f"part{n}", *(f"w{n}x{m}" for m in range(size - 1))]) for n, size in enumerate(LENGTHS)]
    )
    for name in "ab":
        put_document(made, name, [f"{name}{number}." for number in range(PARTS)])
    yield made
    made.close()


@pytest.fixture
def layout(store):
    return Layout(store, count_words)


def pick(store, *numbers, document="p"):
    passages = {passage.id: passage for passage in store.passages().values()}
    return [as_evidence(passages[f"{document}{number}"], 1.0) for number in numbers]


def list_numbers(evidence):
    return [int(piece.id[1:]) for piece in evidence]


def measure(texts):
    return sum(size + FENCE for size in count_words(texts))


# ---------------------------------------------------------------- what fits


@pytest.mark.parametrize(
    ("ranked", "budget", "taken"),
    [
        ((0, 3, 1), 3 + 3 + 4 + 2 * FENCE, [0, 3, 1]),  # a passage beside one that is taken needs no header
        ((0, 2, 1), 3 + 5 + 2 * FENCE, [0, 2, 1]),  # p1 joins p0 and p2: the header of one of them is saved
        ((4, 0), 3 + FENCE, [0]),  # what is too long is passed over
    ],
)
def test_passages_are_packed_with_one_header_a_run(store, layout, ranked, budget, taken):
    assert list_numbers(layout.pack(pick(store, *ranked), budget)) == taken


@settings(max_examples=50)
@given(st.lists(st.integers(0, len(LENGTHS) - 1), unique=True), st.integers(0, 120))
def test_what_is_taken_fits_as_it_is_shown(store, numbers, budget):
    layout = Layout(store, count_words)
    taken = sorted(layout.pack(pick(store, *numbers), budget), key=lambda piece: piece.id)
    joined = join(taken, layout.find_passages(taken))
    assert measure([piece.text for piece in joined]) <= budget
    assert [source for piece in joined for source in piece.sources] == [piece.id for piece in taken]


def test_a_note_leaves_where_it_says_nothing_of_its_own_and_notes_are_capped(store, layout):
    notes = [
        Note("Part0 w0x0. W0x0 w0x1!", ["p0"]),
        Note("Part0 w0x0, so it was he.", ["p0"]),
        Note("part0 not w0x0 w0x1", ["p0"]),
        Note("So it was she. Part0 w0x0 w0x1.", ["p0"]),
        Note("So it was she.", ["p0", "p3"]),
        Note("part0 w0x0 w0x1"),
    ]
    context = layout.lay_out(pick(store, 0, 3), 300, [Note("part3 w3x0 w3x1.", ["p3"]), *notes])
    assert list_numbers(context.evidence) == [0, 3]
    said_by_a_passage, said_by_a_note = "part3 w3x0 w3x1.", "So it was she."
    assert context.notes == tuple(note.text for note in notes if note.text != said_by_a_note)
    assert said_by_a_passage not in context.notes
    long = [Note(" ".join(f"n{number}x{n}" for n in range(40)) + ".") for number in range(5)]
    context = layout.lay_out(pick(store, 0, 3), 180, long)
    assert measure(context.notes) <= 180 // 3
    assert layout.lay_out(pick(store, 0, 3), 40, notes).cut == 5, "notes without room are counted"


def test_a_layer_beside_the_passages_has_its_share_and_what_is_left(store, layout):
    summaries = [
        Evidence(id=f"s{n}", layer="tree", text=f"summary number {n} of all the rest", score=1.0, sources=("p0",))
        for n in range(3)
    ]
    room = 7 + FENCE
    for share in (room, room // 2 + 1):  # half of it may be borrowed
        context = layout.lay_out(pick(store, 0, 3), room + 2 * (3 + FENCE), (), [Share(summaries, share)])
        assert [piece.id for piece in context.evidence] == ["s0", "p0", "p3"]
        assert context.cut == 2
    context = layout.lay_out(pick(store, 0, 3), room + 3 + FENCE, (), [Share(summaries, room // 2 - 1)])
    assert [piece.id for piece in context.evidence] == ["p0", "p3"], "passages have what it may not borrow"
    context = layout.lay_out(pick(store, 0), 2 * room + 3 + FENCE, (), [Share(summaries, room)])
    assert [piece.id for piece in context.evidence] == ["s0", "p0", "s1"]


@settings(max_examples=60)
@given(st.lists(st.integers(1, 60), min_size=1, max_size=5), st.integers(10, 300), st.integers(0, 120))
def test_of_a_layer_its_best_pieces_are_shown_or_none(store, lengths, budget, share):
    summaries = [
        Evidence(
            id=f"s{n}",
            layer="tree",
            text=" ".join(f"s{n}x{word}" for word in range(length)),
            score=1.0,
            sources=("p0",),
        )
        for n, length in enumerate(lengths)
    ]
    shown = Layout(store, count_words).lay_out(pick(store, 4, 0), budget, [Note("So.")], [Share(summaries, share)])
    derived = [piece for piece in shown.evidence if piece.layer == "tree"]
    assert derived == summaries[: len(derived)]
    assert measure([piece.text for piece in shown.evidence]) + measure(shown.notes) <= budget


async def test_passages_that_follow_one_another_are_one_piece_and_a_quotation_may_run_over_the_end(store):
    reply = {
        "answer": "so",
        "quotes": [{"label": "E1", "quote": "w0x1 part1 w1x0"}, {"label": "E1", "quote": "w1x1 ... w2x2"}],
    }
    model = ScriptedModel({"answer": [reply]})
    desk = make_desk(store, model, count_words, plain=Shelves({}, pick(store, 6, 2)))
    loop = Once(Shelves({}, pick(store, 1)), desk, limit=9, budget=3 + 4 + 5 + 3 + 2 * FENCE + 1)
    answer = await check_loop(loop, Question(text="What?"))
    shown = model.calls[0].given.evidence
    assert [piece.text.split()[0] for piece in shown] == ["part0", "part6"]
    assert shown[0].place == "parts 1 to 3 of 8"
    assert {piece.id for piece in answer.evidence} == {"p0", "p1", "p2", "p6"}, "best first"
    quoted = [(cited.passage, cited.text) for cited in answer.quotes]
    assert quoted == [("p0", "w0x1"), ("p1", "part1 w1x0"), ("p1", "w1x1"), ("p2", "w2x2")]
    assert answer.dropped_quotes == 0


async def test_a_question_that_asks_for_a_guess_may_not_be_declined(store):
    for force in (False, True):
        model = ScriptedModel({"answer": [{"answer": "so", "supported": "full"}]})
        desk = make_desk(store, model, count_words, plain=Shelves({}))
        await check_loop(Once(Shelves({}, pick(store, 1)), desk, limit=9, budget=90), Question(text="Q?", force=force))
        assert model.calls[0].given.may_decline is not force


def test_what_a_note_was_left_out_for_is_shown(store, layout):
    """With the room of the note, a greedy choice from the start would take another passage in its place."""
    ranked = pick(store, 7, 4, 0)  # of 6, 9 and 3 words
    for budget in range(20, 120):
        context = layout.lay_out(ranked, budget, [Note("said twice", ["p0"])])
        assert "said twice" in context.notes or not context.notes
        assert context.notes or "p0" in {piece.id for piece in context.evidence} or budget // 3 < 2 + FENCE


# ---------------------------------------------------------------- one ranking of all searches


def search(store, *numbers, document="a", **settings):
    return Searched(pick(store, *numbers, document=document), **settings)


def rank(store, *searches):
    return [(piece.id, piece.score) for piece in fuse(store, searches, None)]


def test_scores_are_those_of_ranks_halved_for_neighbours_by_hand(store):
    both = rank(store, search(store, 0), search(store, 0, document="b"), search(store, 7, weight=0.5))
    assert both[:3] == [("a0", 0.5), ("b0", 0.5), ("a1", 0.25)], "an equal one by its id"
    assert rank(store, search(store, 7, document="b")) == [("b7", 0.5), ("b6", 0.25)], "in the same document"
    summary = Evidence(id="s", layer="tree", text="All.", score=1.0, sources=("a3",))
    assert rank(store, Searched([summary])) == [("s", 0.5)], "what is no passage has no neighbours"


def test_queries_of_a_loop_count_together_at_most_as_three_questions():
    assert [search.weight for search in weigh_queries([[], []])] == [1.0, 1.0]
    assert sum(search.weight for search in weigh_queries([[]] * 12)) == pytest.approx(3.0)


@settings(max_examples=50)
@given(st.lists(st.lists(st.integers(0, PARTS - 1), unique=True, max_size=5), max_size=4))
def test_scores_are_those_of_the_formula(store, rankings):
    own = [0.0] * (PARTS + 2)
    for ranking in rankings:
        for place, number in enumerate(ranking):
            own[number + 1] += 1 / (2 + place)
    scores = {f"a{n}": own[n + 1] + (own[n] + own[n + 2]) / 2 for n in range(PARTS)}
    ranked = rank(store, *(search(store, *ranking) for ranking in rankings))
    assert dict(ranked) == pytest.approx({node: score for node, score in scores.items() if score}, abs=1e-6)
    assert [score for _, score in ranked] == sorted((score for _, score in ranked), reverse=True)


# ---------------------------------------------------------------- texts that are cut short


def fit_cues(cues, room, count=count_words):
    return Layout(None, count).fit_texts(cues, room)


@settings(max_examples=50)
@given(st.lists(st.integers(1, 400), max_size=12), st.integers(0, 1500))
def test_shortened_cues_keep_to_the_budget_and_short_ones_stay_whole(lengths, budget):
    cues = [" ".join([f"c{place}", *["on"] * (length - 1)]) for place, length in enumerate(lengths)]
    seen = fit_cues(cues, budget)
    assert measure(seen) <= budget
    assert [cue.split()[0] for cue in seen] == [f"c{place}" for place in range(len(seen))]
    if measure(cues) <= budget:
        assert seen == cues


def test_a_note_that_a_passage_says_which_comes_in_at_last_leaves(store, layout):
    """The room that was kept for notes is left to the passage."""
    context = layout.lay_out(pick(store, 7), 6 + FENCE, [Note("part7 w7x0 w7x1", ["p7"])])
    assert (list_numbers(context.evidence), context.notes) == ([7], ())


STORY = "Lisle wound the clock. Dr. Moy put it back before he went. Nobody saw that. So Mrs. Moy knew."


@pytest.mark.parametrize(
    ("room", "kept"),
    [
        (19, STORY),
        (18, "Lisle wound the clock. Dr. Moy put it back before he went. … So Mrs. Moy knew."),
        (16, "Lisle wound the clock. … So Mrs. Moy knew."),
        (8, "… So Mrs. Moy knew."),
        (3, "So Mrs. …"),
    ],
)
def test_what_is_cut_short_keeps_its_last_sentence_which_concludes(room, kept):
    assert fit_cues([STORY], room + FENCE) == [kept]


@pytest.mark.parametrize("text", ["第一章 " + "文" * 900, "文" * 900, "Holmes\n" + "文" * 900, "   " + "文" * 900])
def test_text_without_spaces_is_not_cut_to_its_first_word(text):
    def count_signs(texts):
        return [len(text.replace(" ", "")) for text in texts]

    (kept,) = fit_cues([text], 500 + FENCE, count_signs)
    assert 400 < count_signs([kept])[0] <= 500
