"""IRCoT: a sentence of thought, a search with it, until the answer."""

from __future__ import annotations

import pytest
from tests.loops.doubles import EMBEDDER, Shelves, converse, list_roles, make_desk
from tests.stories import put_texts

from tomewise.calls import CallCount
from tomewise.errors import BadReply, ModelUnavailable, UsageError
from tomewise.loops.interleave import Interleave
from tomewise.recall.ranking import as_evidence
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import check_loop
from tomewise.testing.scripted import ScriptedModel
from tomewise.types import Question, Scope

QUESTION = Question(text="Where was the buyer of the Heron born?", options=("Skerry", "Bruges"))
BOUGHT = "Ida Poe bought the Heron."
ANSWERED = {"answer": "Bruges", "choice": "B", "quotes": [{"label": "E2", "quote": "born in Bruges"}]}


@pytest.fixture
def store(tmp_path):
    made = SqlStore.open(tmp_path / "a.tome")
    put_texts(made, EMBEDDER, "story", BOUGHT, "Ida Poe was born in Bruges.", *(f"Number {n}." for n in range(20)))
    yield made
    made.close()


@pytest.fixture
def pieces(store):
    return [as_evidence(passage, 1.0) for passage in store.passages().values()]


def build(store, model, recall, **settings):
    return Interleave(recall, make_desk(store, model), **{"limit": 2, "budget": 6000, **settings})


async def test_each_thought_is_the_next_search_until_one_concludes(store, pieces):
    thoughts = [{"thought": BOUGHT}, {"thought": "She was born in Bruges.", "concludes": True}]
    model = ScriptedModel({"think": thoughts, "answer": [ANSWERED]})
    recall = Shelves({QUESTION.text: pieces[:1], BOUGHT: pieces[:2]})
    loop = build(store, model, recall)
    events, answer = await converse(loop, QUESTION)
    assert list_roles(model) == ["think", "think", "answer"]
    assert recall.asked == [QUESTION.text, BOUGHT]
    first, second, last = (call.given for call in model.calls)
    assert (first.thoughts, second.thoughts) == ([], [BOUGHT])
    assert [shown.text for shown in second.evidence] == ["Ida Poe was born in Bruges.", BOUGHT], "the latest first"
    assert not any(option in call.given.model_dump_json() for call in model.calls[:1] for option in QUESTION.options)
    assert last.notes == [], "the reader answers from the evidence alone"
    assert (answer.choice, answer.citations[0].quote) == ("B", "born in Bruges")
    assert [event.name for event in events] == ["recalled", "thought", "recalled", "thought", "stopped", "retrieved"]
    assert events[2].summary == f"query: {BOUGHT}, new: 1, collected: 2"
    assert "concludes" in events[-2].summary


async def test_the_words_of_the_paper_conclude_too(store, pieces):
    model = ScriptedModel({"think": [{"thought": "So the answer is: Bruges."}], "answer": [ANSWERED]})
    await converse(build(store, model, Shelves({}, pieces)), QUESTION)
    assert list_roles(model) == ["think", "answer"]


async def test_other_words_about_an_answer_do_not_conclude(store, pieces):
    thoughts = [{"thought": "The answer is unknown so far."}, {"thought": "Bruges.", "concludes": True}]
    model = ScriptedModel({"think": thoughts, "answer": [ANSWERED]})
    await converse(build(store, model, Shelves({}, pieces)), QUESTION)
    assert list_roles(model) == ["think", "think", "answer"]


async def test_it_ends_after_so_many_thoughts(store, pieces):
    model = ScriptedModel({"think": lambda given: {"thought": f"Thought {len(given.thoughts)}."}, "answer": [ANSWERED]})
    recall = Shelves({}, pieces)
    loop = build(store, model, recall, thoughts=3)
    events, _ = await converse(loop, QUESTION)
    assert list_roles(model) == ["think"] * 3 + ["answer"]
    assert len(recall.asked) == 4
    assert events[-2].summary == "reason: no thought is left (allowed: 3)"
    assert loop.calls == CallCount("1 a thought, at most 3 + 4 × (not stated) + 1", None)


async def test_without_thoughts_one_search_is_left(store, pieces):
    model = ScriptedModel({"answer": [ANSWERED]})
    await converse(build(store, model, Shelves({}, pieces), thoughts=0), QUESTION)
    assert list_roles(model) == ["answer"]


async def test_the_collection_has_a_limit_and_the_loop_ends_when_it_is_full(store, pieces):
    model = ScriptedModel({"think": lambda given: {"thought": f"Thought {len(given.thoughts)}."}, "answer": [ANSWERED]})
    found = {QUESTION.text: pieces[:2], "Thought 0.": pieces[2:4], "Thought 1.": pieces[4:6]}
    events, answer = await converse(build(store, model, Shelves(found), collected=3), QUESTION)
    assert list_roles(model) == ["think", "answer"]
    assert events[-2].summary == "reason: the collection is full (allowed: 3)"
    assert [piece.node for piece in answer.evidence] == [pieces[place].node for place in (2, 0, 1)]


async def test_a_thought_that_repeats_ends_the_loop(store, pieces):
    model = ScriptedModel(
        {"think": [{"thought": BOUGHT}, {"thought": "ida poe bought the Heron"}], "answer": [ANSWERED]}
    )
    recall = Shelves({}, pieces[:1])
    events, _ = await converse(build(store, model, recall), QUESTION)
    assert recall.asked == [QUESTION.text, BOUGHT]
    assert events[-2].summary == "reason: the thought repeats an earlier one"


@pytest.mark.parametrize("reply", [BadReply("no JSON"), {"thought": "  "}, {"concludes": True}])
async def test_an_unusable_thought_is_recorded_and_the_question_is_answered(store, pieces, reply):
    model = ScriptedModel({"think": [{"thought": BOUGHT}, reply], "answer": [ANSWERED]})
    events, answer = await converse(build(store, model, Shelves({}, pieces)), QUESTION)
    assert answer.resolved
    assert [event.name for event in events][-3:] == ["skipped", "stopped", "retrieved"]
    assert events[-2].summary == "reason: the reply was not usable"


async def test_what_every_call_would_meet_is_raised(store, pieces):
    model = ScriptedModel({"think": [ModelUnavailable("no server")]})
    with pytest.raises(ModelUnavailable):
        await converse(build(store, model, Shelves({}, pieces)), QUESTION)


async def test_every_search_stays_within_the_scope_and_nothing_may_be_found(store):
    scope = Scope(documents=frozenset({"story"}))
    model = ScriptedModel(
        {"think": [{"thought": BOUGHT}, {"thought": "x", "concludes": True}], "answer": [{"answer": "*"}]}
    )
    recall = Shelves({})
    answer = await check_loop(build(store, model, recall), Question(text="Who?", within=scope))
    assert recall.scopes == [scope, scope]
    assert not answer.resolved


def test_a_loop_that_collects_nothing_is_refused(store):
    with pytest.raises(UsageError, match="collected 0"):
        build(store, ScriptedModel({}), Shelves({}), collected=0)
