"""Questions and searches that are narrowed to documents and conditions."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from tomewise import Condition, Document, Question, Scope, Tome
from tomewise.errors import UnknownName, UsageError
from tomewise.outgoing import answer_models
from tomewise.testing.scripted import ScriptedModel
from tomewise.tome.scope_words import describe_scope
from tomewise.tome.scopes import parse_condition

DOCUMENTS = (
    Document(id="shelf/log.txt", text="The keeper put out the light.", title="Log", metadata={"year": 1911}),
    Document(id="shelf/diary.txt", text="The keeper lit the light.", metadata={"year": 1899, "kind": "diary"}),
)


@pytest.fixture
def model():
    return ScriptedModel({"answer": lambda given: {"answer": given.evidence[0].text, "supported": "full"}})


@pytest.fixture
def tome(here, model):
    with Tome.open(here / "a.tome", embedder="hash", model=model) as opened:
        opened.add(*DOCUMENTS)
        yield opened


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("year>=1911", Condition("year", ">=", 1911)),
        (" year < -2.5 ", Condition("year", "<", -2.5)),
        ("open=true", Condition("open", "=", True)),
        ("author != Ada Marsh", Condition("author", "!=", "Ada Marsh")),
        ("date<=1911-05-02", Condition("date", "<=", "1911-05-02")),
        ("year='1911'", Condition("year", "=", "1911")),
        ("year==1911", Condition("year", "=", 1911)),
        ("equation=a=b", Condition("equation", "=", "a=b")),
        ("note=", Condition("note", "=", "")),
    ],
)
def test_conditions_are_read(text, condition):
    read = parse_condition(text)
    assert read == condition
    assert type(read.value) is type(condition.value)


@pytest.mark.parametrize("text", ["", "year", ">=1911", "  =x"])
def test_a_condition_that_cannot_be_read_says_how(text):
    with pytest.raises(UsageError, match="give a field, an operator and a value"):
        parse_condition(text)


names = st.frozensets(st.text(max_size=5), max_size=3)
scopes = st.builds(
    Scope,
    documents=st.none() | names,
    where=st.lists(
        st.builds(
            Condition,
            st.text(min_size=1),
            st.sampled_from(["=", ">="]),
            st.text() | st.integers() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False),
        ),
        max_size=2,
    ).map(tuple),
    entities=st.none() | names,
    without_entities=names,
)


@given(scopes)
def test_a_scope_comes_back_from_plain_data_as_sessions_and_traces_read_it(scope):
    read = TypeAdapter(Scope | None).validate_python(json.loads(json.dumps(answer_models.Scope.of(scope).write())))
    assert read == scope
    assert [type(condition.value) for condition in read.where] == [type(condition.value) for condition in scope.where]


def test_a_question_sees_only_what_lies_within(tome):
    for narrowing in (
        {"documents": ["Log"]},
        {"documents": "log.txt"},
        {"where": ["year>=1900"]},
        {"where": Condition("year", "=", 1911)},
        {"within": Scope(documents=frozenset({"shelf/log.txt"}))},
    ):
        answer = tome.ask("Who lit the light?", **narrowing)
        assert [piece.text for piece in answer.evidence] == [DOCUMENTS[0].text]
        assert [piece.text for piece in tome.search("light", **narrowing)] == [DOCUMENTS[0].text]
    assert len(tome.search("light")) == 2
    assert len(tome.search("light", within=None, documents=(), where=())) == 2


def test_many_questions_and_the_events_of_one_stay_within(tome):
    (answer,) = tome.ask_many(["Who lit the light?"], where="kind=diary")
    assert [piece.text for piece in answer.evidence] == [DOCUMENTS[1].text]


async def test_a_stream_stays_within(here, model):
    async with Tome.open(here / "b.tome", embedder="hash", model=model) as opened:
        await opened.aadd(*DOCUMENTS)
        outputs = [output async for output in opened.astream("Who lit the light?", documents=["diary.txt"])]
        assert [piece.text for piece in outputs[-1].evidence] == [DOCUMENTS[1].text]


def test_the_trace_keeps_the_scope(tome):
    tome.ask("Who lit the light?", documents=["Log"], where=["year>=1900"])
    trace = tome.traces()[0]
    assert trace.question.within == Scope(
        documents=frozenset({"shelf/log.txt"}), where=(Condition("year", ">=", 1900),)
    )
    assert trace.describe().write()["within"]["documents"] == ["shelf/log.txt"]
    assert describe_scope(trace.question.within) == "log.txt, year>=1900"


def test_what_does_not_exist_is_refused_before_any_call(tome, model):
    with pytest.raises(UnknownName, match=r"did you mean 'diary.txt'"):
        tome.ask("Who?", documents=["diery.text"])
    with pytest.raises(UnknownName, match=r"did you mean 'shelf/log.txt'"):
        tome.ask("Who?", within=Scope(documents=frozenset({"shelf/log"})))
    with pytest.raises(UsageError, match=r"no passage is within the scope \(year>1950\)"):
        tome.ask("Who?", where=["year>1950"])
    with pytest.raises(UsageError, match=r"no document has the field 'yeer'; did you mean 'year'"):
        tome.search("light", where=["yeer=1911"])
    with pytest.raises(UsageError, match="either a Scope or documents"):
        tome.ask("Who?", within=Scope(), documents=["Log"])
    with pytest.raises(UsageError, match="has its own scope"):
        tome.ask(Question(text="Who?", within=Scope(documents=frozenset({"shelf/log.txt"}))), documents=["Log"])
    with pytest.raises(UsageError, match="not UTF-8"):
        tome.ask("Who?", where=["kind=\ud800"])
    assert tome.traces() == []


def test_a_wrong_argument_is_refused(tome):
    with pytest.raises(UsageError, match="'systm' is not an argument: did you mean 'system'"):
        tome.ask("Who?", systm="naive")
    with pytest.raises(UsageError, match="'colour' is not an argument: a setting goes into `settings`"):
        tome.ask_many(["Who?"], colour="blue")
    with pytest.raises(UsageError, match="'limit' is not an argument: a setting goes into `settings`"):
        tome.ask("Who?", limit=3)
