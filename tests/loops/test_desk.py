"""One search, then the answer: what of the evidence fits, how it is shown, and what comes of a reply."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.loops.doubles import EMBEDDER, Shelves, converse, make_desk
from tests.stories import put_texts

from tomewise.errors import PromptTooLong
from tomewise.language.prompts import Prompts
from tomewise.language.roles import ANSWER, AnswerOut
from tomewise.loops.desk import find_choice, make_answer_input
from tomewise.loops.evidence import describe_origin, drop_near_repeats, fit_to_budget, join_texts, make_token_counter
from tomewise.loops.once import Once
from tomewise.recall.ranking import as_evidence
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import check_loop, document_of, put_document
from tomewise.testing.scripted import ScriptedModel
from tomewise.types import Evidence, Passage, Question

COUNT = make_token_counter(EMBEDDER)
OPTIONS = ("the doctor", "The clerk.", "nobody")
ASKED = Question(text="Who?")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Six letters, and a story of six parts."""
    made = SqlStore.open(tmp_path_factory.mktemp("desk") / "a.tome")
    for number in range(6):
        put_document(made, EMBEDDER, document_of(f"d{number}", f"Letter {number}: the clerk forged the letter in May."))
    put_texts(made, EMBEDDER, "/books/story.md", *(f"Part {number} of the story." for number in range(6)))
    yield made
    made.close()


@pytest.fixture
def letters(store):
    passages = store.passages(documents=[f"d{number}" for number in range(6)]).values()
    return [as_evidence(passage, 1.0) for passage in passages]


@pytest.fixture
def parts(store):
    return [as_evidence(passage, 1.0) for passage in store.passages(documents=["/books/story.md"]).values()]


def make_once(store, evidence, *replies, window=128_000, budget=None):
    model = ScriptedModel({"answer": list(replies)}, window=window)
    return model, Once(Shelves({}, evidence), make_desk(store, model), limit=20, budget=budget)


async def answer(store, evidence, reply, budget=None, **question):
    """What the answering role is given, and the answer."""
    model, loop = make_once(store, evidence, reply, budget=budget)
    found = await check_loop(loop, Question(text="Who?", **question))
    return model.calls[0].given, found


# ---------------------------------------------------------------- what a reply says


async def test_an_answer_has_verified_quotations(store, letters):
    quotes = [{"label": "E2", "quote": "the clerk forged"}, {"label": "E1", "quote": "the doctor forged"}]
    given, found = await answer(store, letters, {"answer": "the clerk", "quotes": quotes}, instructions="Be brief.")
    assert (found.text, found.choice, found.resolved, found.forced) == ("the clerk", None, True, False)
    assert [(c.document, c.text) for c in found.quotes] == [("d1", "the clerk forged")]
    assert found.dropped_quotes == 1
    assert [shown.label for shown in given.evidence] == [f"E{n}" for n in range(1, 7)]
    assert given.instructions == "Be brief."


async def test_a_quotation_of_a_summary_is_cited_from_a_passage_or_counted_apart(store, parts):
    summary = make_derived("tree", *parts[2:4], text="Part 2 of the story. Then Ada met Tom at the lamp.")
    quotes = [{"label": "E1", "quote": quote} for quote in ("Part 2 of the story", "Ada met Tom", "Ida met Poe")]
    _, found = await answer(store, [summary], {"answer": "Ada", "quotes": quotes})
    assert [(c.position, c.text) for c in found.quotes] == [(2, "Part 2 of the story")]
    assert (found.derived_quotes, found.dropped_quotes) == (1, 1)


@pytest.mark.parametrize(
    ("supported", "support"), [("full", "quoted"), ("", "quoted"), ("partly", "inferred"), ("none", "none")]
)
async def test_no_statement_has_more_support_than_the_model_claims(store, letters, supported, support):
    reply = {"answer": "The clerk forged the letter in May.", "supported": supported}
    _, found = await answer(store, letters[:1], reply, force=True)
    assert (found.support, [quote.document for quote in found.quotes]) == (support, ["d0"])


async def test_each_statement_of_an_answer_has_its_own_support_and_quotes(store, letters):
    text = (
        "- The clerk forged the letter in May [E2]\n- The clerk forged the letter in June\n- It was forged by a clerk"
    )
    quotes = [{"label": "E4", "quote": "the clerk forged"}]
    _, found = await answer(store, letters, {"answer": text, "quotes": quotes, "supported": "full"})
    assert found.text == text.replace(" [E2]", "")
    shown = [(found.text[each.start : each.end], each.support) for each in found.statements]
    assert shown == [
        ("The clerk forged the letter in May", "quoted"),
        ("The clerk forged the letter in June", "contradicted"),
        ("It was forged by a clerk", "inferred"),
    ]
    assert [quote.document for quote in found.statements[0].quotes] == ["d1"]
    assert found.support == "contradicted"


async def test_what_did_not_fit_is_counted_where_the_answer_is_made(store, letters):
    _, found = await answer(store, letters, {"answer": "Ada"}, budget=80)
    assert 1 < len(found.evidence) < 6
    assert found.coverage.dropped == 6 - len(found.evidence)


GUESS, CHOSEN = {"answer": "the widow", "supported": "none"}, {"answer": "x", "choice": "B", "supported": "none"}


@pytest.mark.parametrize(
    ("reply", "question", "text", "choice", "supported", "missing"),
    [
        # While it may decline: with what is missing, or with a guess, which nobody asked for.
        ({"answer": "*", "missing": "who paid", "supported": "none"}, {}, "", None, "none", "who paid"),
        (GUESS, {}, "", None, "none", ""),
        (CHOSEN, {"options": OPTIONS}, "", None, "none", ""),
        ({"answer": ' "*". '}, {}, "", None, "none", ""),
        ({"answer": "* unclear", "choice": "(b)"}, {"options": OPTIONS}, "", None, "none", ""),
        # Words outside of the options do not answer.
        ({"answer": "the widow"}, {"options": OPTIONS}, "", None, "none", ""),
        ({"answer": "", "choice": "Z"}, {"options": OPTIONS}, "", None, "none", ""),
        ({"answer": "", "choice": "B"}, {"options": OPTIONS}, "", None, "none", ""),
        ({"answer": "", "choice": "B", "supported": "partly"}, {"options": OPTIONS}, "", None, "none", ""),
        # What is asked for is given, and says how far it is supported.
        (GUESS, {"force": True}, "the widow", None, "none", ""),
        (CHOSEN, {"options": OPTIONS, "force": True}, "The clerk.", "B", "none", ""),
        ({"answer": "* unclear", "choice": "B"}, {"options": OPTIONS, "force": True}, "The clerk.", "B", "none", ""),
        ({"answer": "", "choice": "a", "supported": "full"}, {"options": OPTIONS}, "the doctor", "A", "full", ""),
        ({"answer": "Ada", "supported": "partly", "missing": "who paid"}, {}, "Ada", None, "partly", "who paid"),
        ({"answer": "Ada", "supported": "full", "missing": "who paid"}, {}, "Ada", None, "full", ""),
    ],
)
async def test_a_reply_is_an_answer_or_declined(store, letters, reply, question, text, choice, supported, missing):
    given, found = await answer(store, letters, reply, **question)
    assert given.may_decline is not question.get("force", False)
    assert given.options == list(question.get("options", ()))
    assert (found.text, found.choice, found.resolved, found.forced) == (text, choice, bool(text), False)
    assert (found.claimed, found.missing) == (supported, missing)
    assert len(found.evidence) == 6, "the nearest passages can be shown"


@pytest.mark.parametrize(
    ("wording", "failed"), [("*Dracula*", False), ("**At nine.**", False), ("* at nine *", True), ("**", True)]
)
def test_what_is_emphasised_is_no_refusal(wording, failed):
    assert AnswerOut(answer=wording).is_declined(False) is failed


@pytest.mark.parametrize(
    ("choice", "wording", "letter"),
    [
        ("B", "", "B"),
        ("(b)", "", "B"),
        ("B) the clerk", "", "B"),
        ("the clerk", "", "B"),
        (None, "The Clerk", "B"),
        (None, "C: nobody", "C"),
        ("D", "the doctor", "A"),
        (None, "Be that as it may", None),
        ("", "", None),
    ],
)
def test_the_chosen_option(choice, wording, letter):
    reply = AnswerOut(answer=wording, choice=choice)
    assert find_choice(reply, Question(text="Who?", options=OPTIONS)) == letter
    assert find_choice(reply, ASKED) is None, "no options, no choice"


async def test_our_desk_searches_as_well(store, letters):
    plain = Shelves({}, letters)
    desk = make_desk(store, ScriptedModel({"answer": [{"answer": "x"}]}), plain=plain)
    await check_loop(Once(Shelves({}, letters), desk, limit=6, budget=100), ASKED)
    assert plain.asked == ["Who?"]


# ---------------------------------------------------------------- what fits


def make_piece(node, text, layer="passages", title=""):
    return Evidence(id=node, layer=layer, text=text, score=1.0, sources=(node,), title=title)


@pytest.mark.parametrize("window", [100, 768, 850, 900, 950, 1050, 5000])
async def test_the_call_fits_the_window(store, letters, window):
    model, loop = make_once(store, letters, {"answer": "x"}, window=window)
    events, _ = await converse(loop, ASKED)
    call, room = model.calls[0].given, window - ANSWER.short_tokens
    kept = len(call.evidence)
    assert model.count_input_tokens(ANSWER, call) <= room or not kept
    assert events[0].detail["cut"] == 6 - kept
    if 0 < kept < 6:
        more = call.model_copy(update={"evidence": [*call.evidence, call.evidence[0]]})
        assert model.count_input_tokens(ANSWER, more) > room


@pytest.mark.parametrize("numbers", [(), (0, 3000), (1500, 1900)])
async def test_after_a_refusal_the_answer_rests_on_what_was_shown_then(store, parts, letters, numbers):
    summary = make_derived("tree", *letters[:2], text="The clerk forged letters in May.")
    refusals = [PromptTooLong("too long", *numbers)] * (1 + (not numbers))
    quotes = [{"label": "E2", "quote": "the clerk forged the letter in May"}]
    model, loop = make_once(store, [summary, *letters], *refusals, {"answer": "the clerk", "quotes": quotes})
    with pytest.warns(UserWarning, match=r"asked again with \d of \d pieces"):
        _, found = await converse(loop, ASKED)
    shown = [piece.text for piece in model.calls[-1].given.evidence]
    assert [piece.text for piece in found.evidence] == shown
    assert 1 <= len(shown) == 7 - found.coverage.dropped < 7


def test_fitting_counts_titles_and_passes_over_what_is_too_long():
    pieces = [make_piece("a", "one " * 10), make_piece("b", "one " * 500)]
    pieces += [make_piece("c", "one " * 10, title="long " * 100), make_piece("d", "one")]
    assert [piece.id for piece in fit_to_budget(pieces, 100, COUNT)] == ["a", "d"]
    assert fit_to_budget([], 100, COUNT) == []


@settings(max_examples=40)
@given(calls=st.lists(st.lists(st.text(max_size=8), max_size=6), max_size=8), kept=st.integers(0, 6))
def test_remembered_counts_are_those_of_the_tokenizer(calls, kept):
    count = make_token_counter(EMBEDDER, kept=kept)
    for texts in calls:
        plain = EMBEDDER.tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        assert count(texts) == [len(tokens.ids) for tokens in plain]


# ---------------------------------------------------------------- how it is shown


KINDS = {"tree": "summary", "episodes": "episode"}
LINE = "The keeper of the lamp at Sker rowed out on the fourth of May to meet the brig from Orrin."


def make_derived(layer, *below, text="They met."):
    sources = tuple(piece.id for piece in below)
    return Evidence(id="n" + layer, layer=layer, text=text, score=1.0, sources=sources, kind=KINDS.get(layer, ""))


@pytest.mark.parametrize(
    ("places", "document", "place"),
    [
        ([("/a/b.md", 3), ("/a/b.md", 2)], "b.md", "parts 3 to 4 of 59"),
        ([("/a/b.md", 2), ("/a/b.md", 8)], "b.md", "parts 3 to 9 of 59, with gaps"),
        ([("/a/b.md", 2), ("c", 0)], "", "2 documents"),
        ([], "", ""),
    ],
)
def test_a_place_is_said_in_parts_of_a_document(places, document, place):
    assert describe_origin(places, {"/a/b.md": 59, "c": 1}) == (document, place)


def test_a_prompt_says_what_and_where_a_piece_is(store, parts):
    shown = make_desk(store).show([parts[1], make_derived("tree", *parts[2:4]), make_derived("stars")])
    prompt = Prompts().render(ANSWER, make_answer_input(ASKED, shown))
    assert '<evidence label="E1" kind="passage" document="story.md" place="part 2 of 6">' in prompt
    assert '<evidence label="E2" kind="summary" document="story.md" place="parts 3 to 4 of 6">' in prompt
    assert '<evidence label="E3" kind="stars">' in prompt
    assert "/books" not in prompt


def test_a_desk_puts_evidence_in_document_order(store, letters):
    assert make_desk(store).put_in_order(letters[::-1]) == letters


def test_passages_are_joined_as_they_stand_and_what_two_share_comes_once():
    text = "Ada rowed out. Tom slept.\n\nThen it rained."

    def cut(start, end):
        return Passage(id=f"p{start}", document="d", position=0, start=start, end=end, text=text[start:end])

    assert join_texts([cut(0, 14), cut(15, 25), cut(27, 42)]) == (text, [0, 15, 27])
    assert join_texts([cut(0, 25), cut(15, 42)]) == (text, [0, 15])
    assert join_texts([cut(0, 20), cut(20, 42)]) == (text, [0, 20])


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [
        (("passages", LINE), ("passages", LINE.upper() + "!"), "a"),
        (("passages", f"At dawn: {LINE} Then it rained."), ("gists", LINE), "a"),
        (("passages", LINE), ("passages", LINE.replace("fourth", "fifth")), "ab"),
        (("passages", LINE), ("passages", LINE.replace("rowed", "never rowed")), "ab"),
        (("passages", LINE), ("passages", " ".join(reversed(LINE.split()))), "ab"),
        (("passages", "Ann met Bob."), ("passages", "Ann met Bob."), "ab"),  # short texts cost little
        (("gists", LINE), ("passages", LINE), "ab"),  # a passage makes room for another passage only
        (("passages", LINE), ("gists", LINE), "a"),
    ],
)
def test_copies_are_shown_once_and_what_adds_a_word_stays(first, second, kept):
    pieces = [make_piece(node, text, layer) for node, (layer, text) in zip("ab", (first, second), strict=True)]
    assert "".join(piece.id for piece in drop_near_repeats(pieces)) == kept


@pytest.mark.parametrize("plain", [None, Shelves({}, [])])
async def test_our_desk_shows_copies_once(store, parts, plain):
    copies = [make_derived(layer, parts[1], text=LINE) for layer in ("tree", "episodes")]
    model = ScriptedModel({"answer": [{"answer": "Ada"}]})
    await check_loop(Once(Shelves({}, copies), make_desk(store, model, plain=plain), limit=20, budget=500), ASKED)
    assert len(model.calls[0].given.evidence) == (1 if plain else 2)
