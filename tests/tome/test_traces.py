"""How an answer is kept: whole where it fits, cut where it does not."""

from __future__ import annotations

import json
from dataclasses import replace
from threading import Lock
from types import MappingProxyType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tomewise import Document, Tome
from tomewise.errors import UnknownName
from tomewise.settings import SETTINGS
from tomewise.tome.traces import make_record, restore_events
from tomewise.types import Answer, Cost, Event, Question

LEAST = SETTINGS["trace_bytes"].least
COST = Cost(calls=1, roles={"answer": Cost(calls=1)})


def make_answer(pieces: int, length: int, cue: str = "") -> Answer:
    evidence = [{"id": f"p-{n}", "layer": "passages", "score": 0.5, "text": "é" * length} for n in range(pieces)]
    events = (
        Event(name="recalled", summary="new", detail={"evidence": evidence}),
        Event(name="encoded", summary="cue", detail={"cue": cue, "support": ["p-1"]}),
    )
    return Answer(text="Ada", events=events, cost=COST)


def read_details(record: dict[str, object]) -> list[dict[str, object]]:
    return [event["detail"] for event in restore_events(json.loads(json.dumps(record)))]


def test_what_fits_is_kept_whole_and_a_piece_that_was_found_again_once():
    once = make_answer(20, 1000)
    searches = [replace(once.events[0], step=step) for step in range(30)]
    record = make_record(Question(text="Who?"), replace(once, events=(*searches, once.events[1])), 150_000)
    assert record["cut"] == []
    assert len(record["pieces"]) == 20
    assert read_details(record) == [once.events[0].detail] * 30 + [once.events[1].detail]


def test_an_event_that_json_cannot_hold_does_not_cost_the_answer():
    events = (Event(name="odd", detail={"evidence": [{"no": "piece"}], "value": {1, 2}}),)
    assert keep(*events) == [{"evidence": [{"no": "piece"}], "value": [1, 2]}]
    lock = Lock()  # not even a copy can be made of it
    holds_itself: list[object] = []
    holds_itself.append(holds_itself)
    odd = {"lock": lock, (1, 2): 3}, {"value": holds_itself}, MappingProxyType({"value": 1})
    assert keep(*(Event(name="odd", detail=detail) for detail in odd)) == [
        {"lock": repr(lock), "(1, 2)": 3},
        {"value": ["…"]},
        {"value": 1},
    ]


def test_evidence_of_any_form_comes_back():
    for evidence in ([], {"pieces": ["a"]}, {"pieces": [[0, 1.0]]}, "text", [{"id": "n"}]):
        assert keep(Event(name="odd", detail={"evidence": evidence, "shared": 1})) == [
            {"evidence": evidence, "shared": 1}
        ]


def keep(*events: Event) -> list[dict[str, object]]:
    """The details of these events after they were stored and read."""
    return read_details(make_record(Question(text="Who?"), replace(make_answer(0, 0), events=events), 50_000))


@pytest.mark.parametrize(("most_bytes", "length", "cut"), [(20_000, 200, 300), (9_500, 80, 200), (4_000, 0, 200)])
def test_texts_of_evidence_are_cut_first_and_a_cut_that_changes_nothing_is_not_named(most_bytes, length, cut):
    record = make_record(Question(text="Who?"), make_answer(10, 2000, cue="c" * 300), most_bytes)
    of_evidence = f"texts of evidence after {length} characters" if length else "texts of evidence"
    assert record["cut"] == [of_evidence, *(["texts of events after 200 characters"] if cut < 300 else [])]
    found, encoded = read_details(record)
    assert {len(piece["text"]) for piece in found["evidence"]} == {length}
    assert len(encoded["cue"]) == cut
    assert make_record(Question(text="Who?"), make_answer(10, 2000, cue="short"), most_bytes)["cut"] == [of_evidence]


def test_summaries_and_the_answer_outlast_details():
    answer = make_answer(1000, 300, cue="c" * 90_000)
    support = [f"p-{number}" for number in range(2_000)]
    first, second = answer.events
    events = (first, replace(second, detail={**second.detail, "support": support}))
    record = make_record(Question(text="Who?"), replace(answer, events=events), 5_000)
    assert record["cut"][-1] == "details of events"
    assert [event["summary"] for event in record["events"]] == ["new", "cue"]
    assert record["text"] == "Ada"


@settings(max_examples=40)
@given(st.integers(0, 60), st.integers(0, 3000), st.integers(0, 9000), st.integers(LEAST, 60_000))
def test_no_record_is_larger_than_the_bound(pieces, length, cue, most_bytes):
    record = make_record(Question(text="Who?"), make_answer(pieces, length, "c" * cue), most_bytes)
    assert len(read_details(record)) == len(record["events"])
    assert len(json.dumps({name: value for name, value in record.items() if name != "question"})) <= most_bytes


def test_the_scope_of_many_documents_costs_no_event(here):
    with Tome.open(here / "a.tome", embedder="hash", settings={"trace_bytes": LEAST}) as tome:
        tome.add(*(Document(id=f"letters/1911/{'x' * 100}-{n}", text=f"It rained on day {n}.") for n in range(60)))
        answer = tome.within("letters/1911").ask("When did it rain?")
        trace = tome.traces[1]
    assert trace.answer.within == trace.question.within == answer.within
    assert trace.answer.statements
    assert "events" not in trace.cut


def test_an_answer_comes_back_as_it_was(here):
    with Tome.open(here / "a.tome", embedder="hash") as tome:
        tome.add(Document(id="log", text="The keeper, Ada Marsh, put out the light at nine. Nobody asked her why."))
        question = Question(text="Who put out the light?", options=("the doctor", "Ada Marsh"), instructions="Brief.")
        answer = tome.ask(question)
        (trace,) = tome.traces.latest()
        assert trace == tome.traces[1]
        assert (trace.number, trace.question, trace.cut) == (1, question, ())
        for name in ("text", "choice", "statements", "resolved", "claimed", "system", "model", "events"):
            assert getattr(trace.answer, name) == getattr(answer, name)
        assert trace.answer.cost.roles == answer.cost.roles
        assert 1 in tome.traces
        assert list(tome.traces) == [trace]
        del tome.traces[1]
        assert 1 not in tome.traces
        assert tome.traces.latest() == []
        for call in (tome.traces.__getitem__, tome.traces.__delitem__):
            with pytest.raises(UnknownName, match="holds no trace 1"):
                call(1)
