"""Loops that search step by step: IRCoT's thoughts, smaller questions one after another, ReadAgent's look-ups."""

from __future__ import annotations

from functools import partial

import pytest
from tests.loops.doubles import EMBEDDER, FreeShelves, Shelves, converse, list_inputs, list_roles, make_desk
from tests.stories import put_texts

from tomewise.errors import BadReply, ModelUnavailable, UsageError
from tomewise.loops.interleave import Interleave
from tomewise.loops.look_up import LookUp
from tomewise.loops.once import Once
from tomewise.loops.stepwise import Stepwise
from tomewise.recall.ranking import as_evidence
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import check_loop
from tomewise.testing.scripted import ScriptedModel
from tomewise.types import Evidence, Question, Scope

BOUGHT, BORN = "Ida Poe bought the Heron.", "Ida Poe was born in Bruges."
QUESTION = Question(text="Where was the buyer of the Heron born?", options=("Skerry", "Bruges"))
ANSWERED = {"answer": "Bruges", "choice": "B", "quotes": [{"label": "E2", "quote": "born in Bruges"}]}
WITHIN = Question(text="Who?", within=Scope(documents=frozenset({"story"})))


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    made = SqlStore.open(tmp_path_factory.mktemp("loops") / "a.tome")
    put_texts(made, EMBEDDER, "story", BOUGHT, BORN, *(f"Number {n}." for n in range(20)))
    put_texts(made, EMBEDDER, "pages", *(f"On day {number} the clerk wrote page {number // 2}." for number in range(8)))
    yield made
    made.close()


@pytest.fixture
def pieces(store):
    return [as_evidence(passage, 1.0) for passage in store.passages(documents=["story"]).values()]


def quote(label, text):
    return [{"label": label, "quote": text}]


def find_texts(evidence):
    return [piece.text for piece in evidence]


def list_names(events):
    return [event.name for event in events]


# ---------------------------------------------------------------- thoughts


@pytest.fixture
def think(store, pieces):
    """Plays a loop with these thoughts. Returns the model, what was searched for, the events and the answer."""

    async def play(thoughts, found=None, /, question=QUESTION, answer=ANSWERED, **settings):
        model = ScriptedModel({"think": thoughts, "answer": [answer]})
        recall = Shelves(found or {}, pieces if found is None else ())
        loop = Interleave(recall, make_desk(store, model), **{"limit": 2, **settings})
        return model, recall, *(await converse(loop, question))

    return play


def number_thoughts(given):
    return {"thought": f"Thought {len(given.thoughts)}."}


async def test_each_thought_is_the_next_search_until_one_concludes(think, pieces):
    thoughts = [{"thought": BOUGHT}, {"thought": "She was born in Bruges.", "concludes": True}]
    model, recall, events, answer = await think(thoughts, {QUESTION.text: pieces[:1], BOUGHT: pieces[:2]})
    assert list_roles(model) == ["think", "think", "answer"]
    assert (recall.asked, recall.limits) == ([QUESTION.text, BOUGHT], [2, 2]), "no more than is collected"
    first, second, last = (call.given for call in model.calls)
    assert (first.thoughts, second.thoughts) == ([], [BOUGHT])
    assert find_texts(second.evidence) == [BOUGHT, BORN], "in the order of the searches"
    assert not any(option in call.given.model_dump_json() for call in model.calls[:1] for option in QUESTION.options)
    assert last.notes == [], "the reader answers from the evidence alone"
    assert (answer.choice, answer.quotes[0].text) == ("B", "born in Bruges")
    assert list_names(events) == ["searched", "thought", "searched", "thought", "stopped", "retrieved"]
    assert events[2].summary == f"query: {BOUGHT}, new: 1, collected: 2"
    assert "concludes" in events[-2].summary


@pytest.mark.parametrize(
    ("thoughts", "settings", "asked", "reason"),
    [
        ([{"thought": "So the answer is: Bruges."}], {}, 1, "the thought concludes"),  # the words of the paper
        (number_thoughts, {"thoughts": 3}, 3, "no thought is left (allowed: 3)"),
        ([{"thought": BOUGHT}, {"thought": "ida poe bought the Heron"}], {}, 2, "the thought repeats an earlier one"),
        ([{"thought": BOUGHT}, BadReply("no JSON")], {}, 2, "the reply was not usable"),
        ([{"thought": BOUGHT}, {"thought": "  "}], {}, 2, "the reply was not usable"),
    ],
)
async def test_thoughts_end_and_the_question_is_answered(think, thoughts, settings, asked, reason):
    model, recall, events, answer = await think(thoughts, **settings)
    assert list_roles(model) == ["think"] * asked + ["answer"]
    (stopped,) = [event for event in events if event.name == "stopped"]
    assert stopped.summary == f"reason: {reason}"
    assert list_names(events).count("skipped") == (reason == "the reply was not usable")
    assert len(recall.asked) == list_names(events).count("searched")
    assert answer.resolved


async def test_the_collection_has_a_limit_and_the_loop_ends_when_it_is_full(think, pieces):
    found = {QUESTION.text: pieces[:2], "Thought 0.": pieces[2:4], "Thought 1.": pieces[4:6]}
    model, _, events, answer = await think(number_thoughts, found, collected=3)
    assert list_roles(model) == ["think", "answer"]
    assert events[-2].summary == "reason: the collection is full (allowed: 3)"
    assert [piece.id for piece in answer.evidence] == [piece.id for piece in pieces[:3]], "all that was collected"


async def test_what_every_call_would_meet_is_raised_and_a_loop_that_collects_nothing_refused(think):
    with pytest.raises(ModelUnavailable):
        await think([ModelUnavailable("no server")])
    with pytest.raises(UsageError, match="collected 0"):
        await think([], collected=0)


# ---------------------------------------------------------------- smaller questions

BUYER, TOWN, COUNTRY = "Who bought the Heron?", "Where was Ida Poe born?", "In which country is Bruges?"


@pytest.fixture
def step(store, pieces):
    """Plays a loop with these steps and answers, as `think` does."""

    async def play(steps, answers, found=None, /, ground=(), question=QUESTION, **settings):
        model = ScriptedModel({"step": steps, "answer": answers})
        recall = Shelves(found or {}, () if found else ground or pieces[:3])
        loop = Stepwise(recall, make_desk(store, model), **{"limit": 2, "budget": 6000, **settings})
        return model, recall, *(await converse(loop, question))

    return play


async def test_steps_by_search_and_from_memory_then_the_answer(step, pieces):
    steps = [
        {"reasoning": "The buyer first.", "subquestion": BUYER},
        {"subquestion": TOWN, "search": True},
        {"subquestion": COUNTRY, "search": False, "answer": "Belgium"},
        {"finished": True},
    ]
    bought = {"answer": "Ida Poe", "quotes": quote("E2", "Ida Poe bought the Heron")}
    born = {"answer": "Bruges", "quotes": quote("E1", "born in Bruges")}
    found = {BUYER: [pieces[2], pieces[0]], TOWN: [pieces[1]]}
    model, recall, events, answer = await step(steps, [bought, born, ANSWERED], found)
    assert list_roles(model) == ["step", "answer", "step", "answer", "step", "step", "answer"]
    assert recall.asked == [BUYER, TOWN, QUESTION.text], "the question itself is searched too"
    part, last = model.calls[1].given, model.calls[-1].given
    assert (part.question, part.options, part.may_decline) == (BUYER, [], True)
    memory = f"{COUNTRY} Belgium (from general knowledge, not from the texts)"
    findings = [f"{BUYER} Ida Poe", f"{TOWN} Bruges", memory]
    assert model.calls[-2].given.findings == last.notes == findings
    assert last.options == list(QUESTION.options)
    assert [piece.id for piece in answer.evidence] == [pieces[n].id for n in (1, 2, 0)], "cited last, then in turns"
    assert answer.choice == "B"
    assert list_names(events)[:3] == ["decided", "searched", "found"]
    decided = [event.summary for event in events if event.name == "decided"]
    assert decided[0].startswith("decision: search, subquestion: Who bought")
    assert decided[2].startswith("decision: from memory")
    assert events[-3].summary == "reason: the findings suffice"


@pytest.mark.parametrize(
    ("first", "answers", "searched", "findings"),
    [
        ({"search": False, "answer": "Belgium"}, [ANSWERED], [QUESTION.text], "Belgium (from general knowledge, not "),
        ({"search": False}, [{"answer": "Ida"}, ANSWERED], [BUYER, QUESTION.text], "Ida"),
        ({}, [BadReply("no JSON"), ANSWERED], [BUYER, QUESTION.text], "not found"),
    ],
    ids=["from memory alone", "from memory without an answer", "an unusable answer"],
)
async def test_what_a_step_does_not_find_is_searched_for_with_the_question(step, first, answers, searched, findings):
    model, recall, events, answer = await step([{"subquestion": BUYER, **first}, {"finished": True}], answers)
    assert recall.asked == searched
    assert list_inputs(model, "step")[1].findings[0].startswith(f"{BUYER} {findings}")
    assert list_names(events).count("skipped") == (findings == "not found")
    assert answer.resolved
    assert len(answer.evidence) == 3, "all that have room"


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (BadReply("no JSON"), "the reply was not usable"),
        ({"finished": "perhaps"}, "the reply was not usable"),
        ({"subquestion": " "}, "no smaller question was asked"),
        ({"subquestion": "who bought the HERON"}, "the smaller question was asked before"),
    ],
)
async def test_a_step_that_leads_nowhere_ends_the_steps(step, reply, reason):
    _, _, events, answer = await step([{"subquestion": BUYER}, reply], [{"answer": "Ida Poe"}, ANSWERED])
    assert next(event for event in events if event.name == "stopped").detail["reason"] == reason
    assert list_names(events).count("skipped") == (reason == "the reply was not usable")
    assert answer.resolved


# ---------------------------------------------------------------- look-ups

FORGED = Question(text="Who forged the letter?", options=("the clerk", "the doctor"))
CLERK = {"answer": "the clerk", "choice": "A", "quotes": quote("E3", "On day 3")}
DAYS = [f"On day {n} the clerk wrote page {n // 2}." for n in range(8)]


@pytest.fixture
def look_up(store):
    """Plays a look-up with these replies over the gists of four pages of two passages, nearest first, as `think`."""
    ids = [passage.id for passage in store.passages(documents=["pages"]).values()]
    gists = [
        Evidence(
            id=f"pg{n}",
            layer="pages",
            text=f"Gist {n}.",
            score=score,
            sources=(*ids[2 * n : 2 * n + 2],),
            kind="gist",
        )
        for n, score in {2: 1.0, 0: 0.9, 3: 0.8, 1: 0.7}.items()
    ]

    async def play(replies, question=FORGED, window=128_000, **settings):
        model = ScriptedModel({"look_up": replies, "answer": [CLERK]}, window=window)
        loop = LookUp(FreeShelves({}, gists), make_desk(store, model), **settings)
        return model, *(await converse(loop, question))

    return play


async def test_pages_are_looked_up_in_parallel_and_stand_in_place_of_their_gists(look_up):
    model, events, answer = await look_up([{"reasoning": "It is there.", "labels": ["E4", "E2"]}])
    assert list_roles(model) == ["look_up", "answer"]
    asked = model.calls[0].given
    assert find_texts(asked.evidence) == [f"Gist {n}." for n in range(4)], "in the order of the text"
    assert {shown.kind for shown in asked.evidence} == {"gist"}
    assert (asked.limit, asked.read) == (5, [])
    assert find_texts(answer.evidence) == ["Gist 0.", *DAYS[2:4], "Gist 2.", *DAYS[6:]]
    assert [citation.text for citation in answer.quotes] == ["On day 3"]
    assert list_names(events) == ["looked up", "stopped", "retrieved"]
    assert events[0].summary == "pages: 2, of: 4, reasoning: It is there."
    assert events[0].detail["pages"] == ["pg3", "pg1"]


async def test_pages_are_looked_up_one_after_another(look_up):
    replies = [{"labels": ["E1", "E2"]}, {"labels": ["E3"]}, {"labels": []}]
    model, events, answer = await look_up(replies, order="sequential")
    assert list_roles(model) == ["look_up"] * 3 + ["answer"]
    second, third = model.calls[1].given, model.calls[2].given
    assert second.limit == 1
    assert [shown.kind for shown in second.evidence] == ["page", "gist", "gist", "gist"]
    assert second.evidence[0].text.startswith("On day 0 the clerk wrote page 0.\nOn day 1")
    assert (second.read, third.read) == (["E1"], ["E1", "E3"])
    assert [piece.layer for piece in answer.evidence] == ["passages"] * 2 + ["pages"] + ["passages"] * 2 + ["pages"]
    assert events[-2].summary == "reason: no further page is needed"


@pytest.mark.parametrize(
    ("labels", "settings", "pages"),
    [
        (["E1", "E2", "E3"], {"pages": 2}, [["pg0", "pg1"]]),
        (["E1", "E2", "E3", "E4"], {"pages": 2, "order": "sequential"}, [["pg0"], ["pg1"]]),  # no page is read twice
        (["E9", "page 2", "[e2]", "E2"], {}, [["pg1"]]),  # labels that were not shown
    ],
)
async def test_pages_are_looked_up_once_and_within_the_limit(look_up, labels, settings, pages):
    _, events, _ = await look_up(lambda _: {"labels": labels}, **settings)
    assert [event.detail["pages"] for event in events if event.name == "looked up"] == pages


@pytest.mark.parametrize("reply", [BadReply("no JSON"), {"labels": {"E": 1}}])
@pytest.mark.parametrize("order", ["parallel", "sequential"])
async def test_an_unusable_reply_is_recorded_and_gists_answer(look_up, reply, order):
    _, events, answer = await look_up([reply], order=order)
    assert list_names(events) == ["skipped", "stopped", "retrieved"]
    assert (answer.resolved, len(answer.evidence)) == (True, 4)


async def test_gists_that_do_not_fit_the_window_are_left_out_the_furthest_first(look_up):
    model, *_ = await look_up([{"labels": []}], Question(text="Who?"), window=350)
    shown = find_texts(model.calls[0].given.evidence)
    assert shown == ["Gist 0.", "Gist 2.", "Gist 3."], "Gist 1 is the furthest"


@pytest.mark.parametrize("window", [900, 925, 950, 975, 1000, 1100])
async def test_pages_that_were_read_come_before_gists_and_what_has_no_room_counts_as_cut(look_up, window):
    _, events, answer = await look_up([{"labels": ["E1", "E3"]}], Question(text="Who?"), window=window)
    shown, read = find_texts(answer.evidence), [*DAYS[:2], *DAYS[4:6]]
    assert set(shown) <= {*read} or set(read) <= {*shown}
    assert answer.coverage.dropped == len(read) + 2 - len(shown) == events[-1].detail["cut"]
    assert shown


# ---------------------------------------------------------------- the contract


@pytest.mark.parametrize(
    ("kind", "most"),
    [
        (partial(Stepwise, limit=2, budget=6000, steps=2), 5),
        (partial(Interleave, limit=2, thoughts=3), 4),
        (partial(Once, limit=2, budget=6000), 1),
        (LookUp, 2),
        (partial(LookUp, order="sequential"), 6),
    ],
)
def test_loops_state_how_many_calls_they_make_at_most(store, kind, most):
    assert kind(FreeShelves({}), make_desk(store)).calls.most == most


@pytest.mark.parametrize("ground", [True, False])
@pytest.mark.parametrize("kind", [partial(Stepwise, limit=2, budget=6000), partial(Interleave, limit=2), LookUp])
async def test_the_contract_of_loops_holds_within_a_scope_in_which_nothing_may_be_found(store, pieces, kind, ground):
    replies = {
        "step": [{"subquestion": BUYER}, {"finished": True}],
        "think": [{"thought": BOUGHT}, {"thought": "x", "concludes": True}],
        "look_up": [{"labels": []}],
        "answer": lambda _: {"answer": "Ida" if ground else "*"},
    }
    recall = Shelves({}, pieces if ground else ())
    answer = await check_loop(kind(recall, make_desk(store, ScriptedModel(replies))), WITHIN)
    assert answer.resolved is ground
    assert set(recall.scopes) == {WITHIN.within}
