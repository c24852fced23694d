"""ReadAgent: the gists of all pages, a look-up in parallel or one page after another, then the answer."""

from __future__ import annotations

import pytest
from tests.loops.doubles import EMBEDDER, Shelves, converse, list_roles, make_desk
from tests.stories import put_texts

from tomewise.calls import NO_CALLS, CallCount
from tomewise.errors import BadReply
from tomewise.loops.look_up import LookUp
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import check_loop
from tomewise.testing.scripted import ScriptedModel
from tomewise.types import Evidence, Question, Scope

QUESTION = Question(text="Who forged the letter?", options=("the clerk", "the doctor"))
ANSWERED = {"answer": "the clerk", "choice": "A", "quotes": [{"label": "E3", "quote": "On day 3"}]}


@pytest.fixture
def store(tmp_path):
    made = SqlStore.open(tmp_path / "a.tome")
    put_texts(made, EMBEDDER, "story", *(f"On day {number} the clerk wrote page {number // 2}." for number in range(8)))
    yield made
    made.close()


@pytest.fixture
def gists(store):
    """The gists of four pages of two passages, nearest first: not in the order of the text."""
    ids = [passage.id for passage in store.passages().values()]
    found = [
        Evidence(
            node=f"pg{n}",
            layer="pages",
            text=f"Gist {n}.",
            score=1.0 - place / 9,
            kind="gist",
            sources=(*ids[2 * n : 2 * n + 2],),
        )
        for place, n in enumerate((2, 0, 3, 1))
    ]
    recall = Shelves({}, found)
    recall.calls = NO_CALLS
    return recall


def build(store, model, gists, budget=6000, **settings):
    return LookUp(gists, make_desk(store, model), budget=budget, **settings)


def texts(evidence):
    return [piece.text for piece in evidence]


async def test_pages_are_looked_up_in_parallel_and_stand_in_place_of_their_gists(store, gists):
    model = ScriptedModel({"look_up": [{"reasoning": "It is there.", "labels": ["E4", "E2"]}], "answer": [ANSWERED]})
    loop = build(store, model, gists)
    events, answer = await converse(loop, QUESTION)
    assert list_roles(model) == ["look_up", "answer"]
    asked = model.calls[0].given
    assert texts(asked.evidence) == ["Gist 0.", "Gist 1.", "Gist 2.", "Gist 3."], "in the order of the text"
    assert {shown.kind for shown in asked.evidence} == {"gist"}
    assert (asked.limit, asked.read) == (5, [])
    days = [f"On day {n} the clerk wrote page {n // 2}." for n in range(8)]
    assert texts(answer.evidence) == ["Gist 0.", *days[2:4], "Gist 2.", *days[6:]]
    assert [citation.quote for citation in answer.citations] == ["On day 3"]
    assert [event.name for event in events] == ["looked up", "stopped", "retrieved"]
    assert events[0].summary == "pages: 2, of: 4, reasoning: It is there."
    assert events[0].detail["pages"] == ["pg3", "pg1"]
    assert loop.calls == CallCount("1 + 1", 2)


async def test_pages_are_looked_up_one_after_another(store, gists):
    replies = [{"labels": ["E1", "E2"]}, {"labels": ["E3"]}, {"labels": []}]
    model = ScriptedModel({"look_up": replies, "answer": [ANSWERED]})
    loop = build(store, model, gists, order="sequential")
    events, answer = await converse(loop, QUESTION)
    assert list_roles(model) == ["look_up"] * 3 + ["answer"]
    second, third = model.calls[1].given, model.calls[2].given
    assert second.limit == 1
    assert [shown.kind for shown in second.evidence] == ["page", "gist", "gist", "gist"]
    assert second.evidence[0].text.startswith("On day 0 the clerk wrote page 0.\nOn day 1")
    assert (second.read, third.read) == (["E1"], ["E1", "E3"])
    assert [piece.layer for piece in answer.evidence] == ["passages"] * 2 + ["pages"] + ["passages"] * 2 + ["pages"]
    assert events[-2].summary == "reason: no further page is needed"
    assert loop.calls == CallCount("1 a look-up, at most 5 + 1", 6)


async def test_the_look_up_has_a_limit(store, gists):
    model = ScriptedModel({"look_up": [{"labels": ["E1", "E2", "E3"]}], "answer": [ANSWERED]})
    events, _ = await converse(build(store, model, gists, pages=2), QUESTION)
    assert events[0].detail["pages"] == ["pg0", "pg1"]
    model = ScriptedModel({"look_up": lambda given: {"labels": ["E1", "E2", "E3", "E4"]}, "answer": [ANSWERED]})
    events, _ = await converse(build(store, model, gists, pages=2, order="sequential"), QUESTION)
    assert list_roles(model) == ["look_up"] * 2 + ["answer"]
    assert [event.detail["pages"] for event in events[:2]] == [["pg0"], ["pg1"]], "no page is read twice"


async def test_without_look_up_gists_alone_are_shown(store, gists):
    model = ScriptedModel({"answer": [ANSWERED]})
    _, answer = await converse(build(store, model, gists, pages=0), QUESTION)
    assert texts(answer.evidence) == [f"Gist {n}." for n in range(4)]


async def test_pages_that_were_looked_up_come_before_gists_where_room_is_short(store, gists):
    model = ScriptedModel({"look_up": [{"labels": ["E2"]}], "answer": [ANSWERED]})
    _, answer = await converse(build(store, model, gists, budget=70), QUESTION)
    assert texts(answer.evidence) == [f"On day {n} the clerk wrote page 1." for n in (2, 3)] + ["Gist 2."]


@pytest.mark.parametrize("reply", [BadReply("no JSON"), {"labels": {"E": 1}}])
@pytest.mark.parametrize("order", ["parallel", "sequential"])
async def test_an_unusable_reply_is_recorded_and_gists_answer(store, gists, reply, order):
    model = ScriptedModel({"look_up": [reply], "answer": [ANSWERED]})
    events, answer = await converse(build(store, model, gists, order=order), QUESTION)
    assert [event.name for event in events] == ["skipped", "stopped", "retrieved"]
    assert (answer.resolved, len(answer.evidence)) == (True, 4)


async def test_labels_that_were_not_shown_are_dropped(store, gists):
    model = ScriptedModel({"look_up": [{"labels": ["E9", "page 2", "[e2]", "E2"]}], "answer": [ANSWERED]})
    events, _ = await converse(build(store, model, gists), QUESTION)
    assert events[0].detail["pages"] == ["pg1"]


async def test_gists_that_do_not_fit_the_window_are_left_out_the_furthest_first(store, gists):
    model = ScriptedModel({"look_up": [{"labels": []}], "answer": [ANSWERED]}, window=350)
    await converse(build(store, model, gists, budget=100), Question(text="Who?"))
    shown = texts(model.calls[0].given.evidence)
    assert shown == ["Gist 0.", "Gist 2.", "Gist 3."], "Gist 1 is the furthest"


async def test_nothing_in_the_scope_is_no_look_up(store):
    scope = Scope(documents=frozenset({"other"}))
    recall = Shelves({})
    model = ScriptedModel({"answer": [{"answer": "*"}]})
    answer = await check_loop(build(store, model, recall), Question(text="Who?", within=scope))
    assert (list_roles(model), recall.scopes, answer.resolved) == (["answer"], [scope], False)
