"""Smaller questions one after another, from memory or by a search."""

from __future__ import annotations

import pytest
from tests.loops.doubles import EMBEDDER, Shelves, converse, list_roles, make_desk
from tests.stories import put_texts

from tomewise.calls import NO_CALLS, CallCount
from tomewise.errors import BadReply
from tomewise.loops.stepwise import Stepwise
from tomewise.recall.ranking import as_evidence
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import check_loop
from tomewise.testing.scripted import ScriptedModel
from tomewise.types import Question, Scope

QUESTION = Question(text="In which country was the buyer of the Heron born?", options=("Belgium", "France"))
BUYER, TOWN, COUNTRY = "Who bought the Heron?", "Where was Ida Poe born?", "In which country is Bruges?"
ANSWERED = {"answer": "Belgium", "choice": "A"}


@pytest.fixture
def store(tmp_path):
    made = SqlStore.open(tmp_path / "a.tome")
    put_texts(made, EMBEDDER, "story", "Ida Poe bought the Heron.", "Ida Poe was born in Bruges.", "It rained.")
    yield made
    made.close()


@pytest.fixture
def pieces(store):
    return [as_evidence(passage, 1.0) for passage in store.passages().values()]


def build(store, model, recall, **settings):
    return Stepwise(recall, make_desk(store, model), **{"limit": 2, "budget": 6000, **settings})


def quote(label: str, text: str) -> list[dict[str, str]]:
    return [{"label": label, "quote": text}]


async def test_steps_by_search_and_from_memory_then_the_answer(store, pieces):
    steps = [
        {"reasoning": "The buyer first.", "subquestion": BUYER},
        {"subquestion": TOWN, "search": True},
        {"subquestion": COUNTRY, "search": False, "answer": "Belgium"},
        {"finished": True},
    ]
    bought = {"answer": "Ida Poe", "quotes": quote("E2", "Ida Poe bought the Heron")}
    born = {"answer": "Bruges", "quotes": quote("E1", "born in Bruges")}
    model = ScriptedModel({"step": steps, "answer": [bought, born, ANSWERED]})
    recall = Shelves({BUYER: [pieces[2], pieces[0]], TOWN: [pieces[1]]})
    events, answer = await converse(build(store, model, recall), QUESTION)
    assert list_roles(model) == ["step", "answer", "step", "answer", "step", "step", "answer"]
    assert recall.asked == [BUYER, TOWN, QUESTION.text], "the question itself is searched too"
    part, last = model.calls[1].given, model.calls[-1].given
    assert (part.question, part.options, part.may_decline) == (BUYER, [], True)
    memory = f"{COUNTRY} Belgium (from general knowledge, not from the texts)"
    findings = [f"{BUYER} Ida Poe", f"{TOWN} Bruges", memory]
    assert model.calls[-2].given.findings == last.notes == findings
    assert last.options == list(QUESTION.options)
    assert [piece.node for piece in answer.evidence] == [pieces[n].node for n in (0, 2, 1)], "cited, then in turns"
    assert answer.choice == "A"
    assert [event.name for event in events][:3] == ["decided", "recalled", "found"]
    assert events[0].summary.startswith("decision: search, subquestion: Who bought")
    assert [event.summary for event in events if event.name == "decided"][2].startswith("decision: from memory")
    assert events[-2].summary == "reason: the findings suffice"


async def test_a_small_answer_gets_a_third_of_the_context(store, pieces):
    model = ScriptedModel({"step": [{"subquestion": BUYER}, {"finished": True}], "answer": lambda _: ANSWERED})
    await converse(build(store, model, Shelves({}, pieces), limit=9, budget=120), QUESTION)
    small, last = (call.given for call in model.calls if call.role == "answer")
    shown = [sum(len(piece.text.split()) + 12 for piece in given.evidence) for given in (small, last)]
    assert 0 < shown[0] <= 40 < shown[1] <= 120


async def test_it_ends_after_so_many_steps(store, pieces):
    model = ScriptedModel(
        {"step": lambda given: {"subquestion": f"Number {len(given.asked)}?"}, "answer": lambda _: {"answer": "*"}}
    )
    loop = build(store, model, Shelves({}, pieces), steps=2)
    events, answer = await converse(loop, QUESTION)
    assert list_roles(model) == ["step", "answer"] * 2 + ["answer"]
    assert model.calls[2].given.findings == ["Number 0? not found"]
    assert model.calls[-1].given.notes == []
    assert events[-2].summary == "reason: no step is left (allowed: 2)"
    assert not answer.resolved
    assert loop.calls.most is None
    recall = Shelves({})
    recall.calls = NO_CALLS
    assert build(store, model, recall, steps=2).calls == CallCount("2 a step + 1, at most 5 in 2 steps", 5)


async def test_an_answer_from_memory_alone_still_shows_the_texts(store, pieces):
    steps = [{"subquestion": COUNTRY, "search": False, "answer": "Belgium"}, {"finished": True}]
    model = ScriptedModel({"step": steps, "answer": [ANSWERED]})
    recall = Shelves({}, pieces)
    _, answer = await converse(build(store, model, recall), QUESTION)
    assert recall.asked == [QUESTION.text]
    assert len(answer.evidence) == len(pieces), "all that have room"


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (BadReply("no JSON"), "the reply was not usable"),
        ({"finished": "perhaps"}, "the reply was not usable"),
        ({"subquestion": " "}, "no smaller question was asked"),
        ({"subquestion": "who bought the HERON"}, "the smaller question was asked before"),
    ],
)
async def test_a_step_that_leads_nowhere_ends_the_steps(store, pieces, reply, reason):
    model = ScriptedModel({"step": [{"subquestion": BUYER}, reply], "answer": [{"answer": "Ida Poe"}, ANSWERED]})
    events, answer = await converse(build(store, model, Shelves({}, pieces)), QUESTION)
    assert next(event for event in events if event.name == "stopped").detail["reason"] == reason
    assert [event.name for event in events].count("skipped") == (reason == "the reply was not usable")
    assert answer.resolved


async def test_memory_without_an_answer_is_searched(store, pieces):
    model = ScriptedModel(
        {"step": [{"subquestion": BUYER, "search": False}, {"finished": True}], "answer": [{"answer": "Ida"}, ANSWERED]}
    )
    recall = Shelves({}, pieces)
    await converse(build(store, model, recall), QUESTION)
    assert recall.asked == [BUYER, QUESTION.text]


async def test_an_unusable_answer_of_a_step_counts_as_not_found(store, pieces):
    model = ScriptedModel(
        {"step": [{"subquestion": BUYER}, {"finished": True}], "answer": [BadReply("no JSON"), ANSWERED]}
    )
    events, answer = await converse(build(store, model, Shelves({}, pieces)), QUESTION)
    assert model.calls[2].given.findings == [f"{BUYER} not found"]
    assert [event.name for event in events][1:4] == ["recalled", "skipped", "found"]
    assert answer.resolved


async def test_the_contract_of_loops_holds_within_a_scope(store, pieces):
    scope = Scope(documents=frozenset({"story"}))
    model = ScriptedModel({"step": [{"subquestion": BUYER}, {"finished": True}], "answer": lambda _: {"answer": "Ida"}})
    recall = Shelves({}, pieces)
    answer = await check_loop(build(store, model, recall), Question(text="Who?", within=scope))
    assert answer.text == "Ida"
    assert recall.scopes == [scope, scope]
