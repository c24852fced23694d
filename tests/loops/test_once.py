"""Retrieve once, then answer."""

import pytest
from tests.loops.doubles import make_desk

from tomewise.embedding.hash import HashEmbedder
from tomewise.errors import ModelError
from tomewise.language.roles import ANSWER, AnswerIn, AnswerOut, Quote, Shown
from tomewise.loops.desk import find_choice
from tomewise.loops.evidence import fit_to_budget, fit_to_window, make_token_counter
from tomewise.loops.once import Once
from tomewise.recall.flat import Dense, Everything
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import check_loop, document_of, put_document
from tomewise.testing.scripted import ScriptedModel
from tomewise.types import Answer, Evidence, Question

EMBEDDER = HashEmbedder(64)
COUNT = make_token_counter(EMBEDDER)
OPTIONS = ("the doctor", "The clerk.", "nobody")


@pytest.fixture
def store(here):
    made = SqlStore.open(here / "a.tome")
    for number in range(6):
        put_document(made, EMBEDDER, document_of(f"d{number}", f"Letter {number}: the clerk forged the letter in May."))
    yield made
    made.close()


def test_what_is_emphasised_is_no_refusal():
    assert not AnswerOut(answer="*Dracula*").failed
    assert not AnswerOut(answer="**At nine.**").failed
    assert AnswerOut(answer="* at nine *").failed
    assert AnswerOut(answer="**").failed


async def test_a_question_may_be_declined_with_what_is_missing(store):
    reply = {"answer": "*", "missing": "who paid the clerk", "supported": "none"}
    model, found = await answer(store, reply)
    assert model.calls[0].given.may_decline
    assert (found.text, found.resolved, found.forced) == ("", False, False)
    assert (found.missing, found.supported) == ("who paid the clerk", "none")
    assert len(found.evidence) == 6, "the nearest passages can be shown"


async def test_what_no_evidence_supports_is_an_answer_only_where_a_guess_was_asked_for(store):
    guess = {"answer": "the widow", "supported": "none"}
    _, found = await answer(store, guess)
    assert (found.text, found.resolved) == ("", False)
    model, found = await answer(store, guess, force=True)
    assert not model.calls[0].given.may_decline
    assert (found.text, found.resolved, found.forced, found.supported) == ("the widow", True, False, "none")


async def test_a_choice_that_no_evidence_supports_is_one_only_where_a_guess_was_asked_for(store):
    guess = {"answer": "x", "choice": "B", "supported": "none"}
    _, found = await answer(store, guess, options=OPTIONS)
    assert (found.text, found.choice, found.resolved) == ("", None, False)
    _, found = await answer(store, guess, options=OPTIONS, force=True)
    assert (found.text, found.choice, found.resolved) == ("The clerk.", "B", True)


async def test_an_answer_says_how_far_it_is_supported(store):
    _, found = await answer(store, {"answer": "the clerk", "supported": "partly", "missing": "who paid"})
    assert (found.resolved, found.supported, found.missing) == (True, "partly", "who paid")


def once(store, *replies, window=128_000, budget=None, limit=20, retriever=None):
    model = ScriptedModel({"answer": list(replies)}, window=window)
    loop = Once(retriever or Everything(store), make_desk(store, model), limit=limit, budget=budget)
    return model, loop


async def answer(store, *replies, question="Who?", options=(), force=False, **settings):
    model, loop = once(store, *replies, **settings)
    asked = Question(text=question, options=options, instructions="Be brief.", force=force)
    return model, await check_loop(loop, asked)


async def test_an_answer_with_verified_quotations(store):
    quotes = [Quote(label="E2", quote="the clerk forged"), Quote(label="E1", quote="the doctor forged")]
    model, found = await answer(store, AnswerOut(answer="the clerk", quotes=quotes))
    assert (found.text, found.choice, found.resolved, found.forced) == ("the clerk", None, True, False)
    assert [(c.document, c.quote) for c in found.citations] == [("d1", "the clerk forged")]
    assert found.dropped_quotes == 1
    given = model.calls[0].given
    assert [shown.label for shown in given.evidence] == [f"E{n}" for n in range(1, 7)]
    assert given.instructions == "Be brief."


async def test_options_reach_the_answering_role_alone(store):
    asked = []

    class Spy(Dense):
        async def retrieve(self, query, limit, *, within=None):
            asked.append(query)
            return await super().retrieve(query, limit, within=within)

    model, found = await answer(
        store, {"answer": "x", "choice": "B"}, options=OPTIONS, retriever=Spy(store, EMBEDDER), limit=2
    )
    assert asked == ["Who?"]
    assert model.calls[0].given.options == list(OPTIONS)
    assert (found.choice, found.text) == ("B", "The clerk.")


@pytest.mark.parametrize("chooses", [True, False])
async def test_the_desk_searches_as_well_unless_a_model_chose_what_comes_first(store, chooses):
    searched = []

    class Plain(Dense):
        async def retrieve(self, query, limit, *, within=None):
            searched.append(query)
            return await super().retrieve(query, limit, within=within)

    recall = Dense(store, EMBEDDER)
    recall.chooses = chooses
    model = ScriptedModel({"answer": lambda _: {"answer": "x"}})
    desk = make_desk(store, model, plain=Plain(store, EMBEDDER))
    await check_loop(Once(recall, desk, limit=6, budget=100), Question(text="Who?"))
    assert bool(searched) is not chooses


@pytest.mark.parametrize("reply", [{"answer": "*"}, {"answer": "the widow"}, {"answer": "", "choice": "Z"}])
async def test_what_is_no_option_is_no_answer(store, reply):
    _, found = await answer(store, reply, options=OPTIONS)
    assert (found.text, found.choice, found.resolved) == ("", None, False)


@pytest.mark.parametrize("wording", ["*", "", ' "*". '])
async def test_the_failure_signal_is_no_answer(store, wording):
    _, found = await answer(store, {"answer": wording})
    assert (found.text, found.resolved) == ("", False)


@pytest.mark.parametrize(
    ("choice", "wording", "letter"),
    [
        ("B", "", "B"),
        ("b.", "", "B"),
        ("(B)", "", "B"),
        ("Option B", "", "B"),
        ("B) the clerk", "", "B"),
        ("the clerk", "", "B"),
        (None, "The Clerk", "B"),
        (None, "C", "C"),
        (None, "C: nobody", "C"),
        ("D", "the doctor", "A"),
        (None, "a clerk", None),
        (None, "Be that as it may", None),
        ("", "", None),
    ],
)
def test_the_chosen_option(choice, wording, letter):
    assert find_choice(AnswerOut(answer=wording, choice=choice), Question(text="Who?", options=OPTIONS)) == letter


def test_no_options_no_choice():
    assert find_choice(AnswerOut(answer="A", choice="A"), Question(text="Who?")) is None


async def test_what_does_not_fit_the_budget_is_not_shown_and_said(store):
    model, loop = once(store, {"answer": "x"}, budget=60)
    seen = [what async for what in loop.run(Question(text="Who?"))]
    detail = seen[0].detail
    assert (len(detail["evidence"]), detail["found"], detail["cut"]) == (2, 6, 4)
    assert len(model.calls[0].given.evidence) == len(seen[1].evidence) == 2


@pytest.mark.parametrize("window", [100, 850, 900, 950, 1050, 5000])
async def test_the_call_fits_the_window(store, window):
    model, loop = once(store, {"answer": "x"}, window=window)
    seen = [what async for what in loop.run(Question(text="Who?"))]
    call = model.calls[0].given
    room = window - ANSWER.output_tokens
    assert model.count_input_tokens(ANSWER, call) <= room or not call.evidence
    kept = len(call.evidence)
    assert seen[0].detail["cut"] == 6 - kept
    if kept < 6:
        more = call.model_copy(update={"evidence": [*call.evidence, call.evidence[0]] if kept else []})
        assert model.count_input_tokens(ANSWER, more) > room or not kept


def piece(node, text, title=""):
    return Evidence(node=node, layer="passages", text=text, score=1.0, sources=(node,), title=title)


def test_fitting_counts_titles_and_passes_over_what_is_too_long():
    pieces = [piece("a", "one " * 10), piece("b", "one " * 500), piece("c", "one " * 10, title="long " * 100)]
    assert [p.node for p in fit_to_budget(pieces, 100, COUNT)] == ["a"]
    assert [p.node for p in fit_to_budget([*pieces, piece("d", "one")], 100, COUNT)] == ["a", "d"]
    assert fit_to_budget([], 100, COUNT) == []


def test_within_keeps_the_longest_beginning():
    def make_input(evidence):
        return AnswerIn(question="q", evidence=[Shown(label="E", text=p.text) for p in evidence])

    pieces = [piece(str(n), "x" * 400) for n in range(50)]
    for window in (768, 1000, 1500, 3000, 10**6):
        model = ScriptedModel({}, window=window)
        slow = max(
            (
                n
                for n in range(51)
                if model.count_input_tokens(ANSWER, make_input(pieces[:n])) + ANSWER.output_tokens <= window
            ),
            default=0,
        )
        assert len(fit_to_window(pieces, model, ANSWER, make_input)) == slow


def test_a_shelf_puts_evidence_in_document_order(store):
    keys = store.node_keys("passages")
    found = [piece(p.id, p.text) for p in store.passages(reversed(keys)).values()]
    assert [p.text[:8] for p in make_desk(store).put_in_order(found)] == [f"Letter {n}" for n in range(6)]


async def test_a_model_that_fails_raises(store):
    _, loop = once(store)
    with pytest.raises(ModelError):
        [what async for what in loop.run(Question(text="Who?")) if isinstance(what, Answer)]
