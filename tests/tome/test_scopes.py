"""Questions and searches that are narrowed to documents and conditions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tomewise import Condition, Document, Question, Scope, Tome
from tomewise.errors import UnknownName, UsageError
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
        (" year < -2.5 ", Condition("year", "<", -2.5)),
        ("open=true", Condition("open", "=", True)),
        ("author != Ada Marsh", Condition("author", "!=", "Ada Marsh")),
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


def test_the_trace_keeps_the_scope(tome):
    tome.ask("Who lit the light?", documents=["Log"], where=["year>=1900"])
    trace = tome.traces()[0]
    assert trace.question.within == replace(WITHIN, where=(Condition("year", ">=", 1900),))
    assert trace.to_dict()["question"]["within"]["documents"] == ["shelf/log.txt"]
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
    assert tome.traces() == []
    assert model.calls == []
