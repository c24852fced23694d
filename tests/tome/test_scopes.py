"""Questions and searches that are narrowed to documents and conditions."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
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
WITHIN = Scope(documents=frozenset({"shelf/log.txt"}))


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


@settings(max_examples=40)
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
        {"within": WITHIN},
    ):
        answer = tome.ask("Who lit the light?", **narrowing)
        assert [piece.text for piece in answer.evidence] == [DOCUMENTS[0].text]
        assert [piece.text for piece in tome.search("light", **narrowing)] == [DOCUMENTS[0].text]
    assert len(tome.search("light")) == 2
    assert len(tome.search("light", within=None, documents=(), where=())) == 2


async def test_many_questions_and_a_stream_stay_within(here, model):
    async with Tome.open(here / "b.tome", embedder="hash", model=model) as opened:
        await opened.aadd(*DOCUMENTS)
        (answer,) = await opened.aask_many(["Who lit the light?"], where="kind=diary")
        outputs = [output async for output in opened.astream("Who lit the light?", documents=["diary.txt"])]
        for each in (answer, outputs[-1]):
            assert [piece.text for piece in each.evidence] == [DOCUMENTS[1].text]


def test_the_trace_keeps_the_scope(tome):
    tome.ask("Who lit the light?", documents=["Log"], where=["year>=1900"])
    trace = tome.traces()[0]
    assert trace.question.within == replace(WITHIN, where=(Condition("year", ">=", 1900),))
    assert trace.describe().write()["within"]["documents"] == ["shelf/log.txt"]
    assert describe_scope(trace.question.within) == "log.txt, year>=1900"


@pytest.mark.parametrize(
    ("question", "narrowing", "kind", "message"),
    [
        ("Who?", {"documents": ["diery.text"]}, UnknownName, "did you mean 'diary.txt'"),
        ("Who?", {"within": Scope(documents=frozenset({"shelf/log"}))}, UnknownName, "did you mean 'shelf/log.txt'"),
        ("Who?", {"where": ["year>1950"]}, UsageError, r"no passage is within the scope \(year>1950\)"),
        ("Who?", {"where": ["yeer=1911"]}, UsageError, "no document has the field 'yeer'; did you mean 'year'"),
        ("Who?", {"within": Scope(), "documents": ["Log"]}, UsageError, "either a Scope or documents"),
        (Question(text="Who?", within=WITHIN), {"documents": ["Log"]}, UsageError, "has its own scope"),
        ("Who?", {"where": ["kind=\ud800"]}, UsageError, "not UTF-8"),
    ],
)
def test_what_does_not_exist_is_refused_before_any_call(tome, model, question, narrowing, kind, message):
    with pytest.raises(kind, match=message):
        tome.ask(question, **narrowing)
    with pytest.raises(UsageError, match="no document has the field"):
        tome.search("light", where=["yeer=1911"])
    assert tome.traces() == []
    assert model.calls == []
