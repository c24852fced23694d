"""Questions and searches that are narrowed to documents and conditions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.texts import prose

from tomewise import Condition, Document, Question, Scope, Tome
from tomewise.embedding.hash import HashEmbedder
from tomewise.errors import UnknownName, UsageError
from tomewise.language.extractive import ExtractiveModel
from tomewise.testing.scripted import ScriptedModel
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
    named, year = (tome.within("Log"), tome.within("log.txt")), Condition("year", "=", 1911)
    for part in (*named, tome.within(where=["year>=1900"]), tome.within(where=year), tome.within(WITHIN)):
        assert [piece.text for piece in part.ask("Who lit the light?").evidence] == [DOCUMENTS[0].text]
        assert [piece.text for piece in part.search("light")] == [DOCUMENTS[0].text]
        assert [record.id for record in part.documents] == ["shelf/log.txt"]
        assert "shelf/log.txt" in part.documents
        assert "diary.txt" not in part.documents
        assert part.documents["log"].id == "shelf/log.txt"
        with pytest.raises(UnknownName, match="no document 'diary"):
            part.documents["diary.txt"]
        assert part.ask_many(["Who?"])[0].evidence == list(part.stream("Who?"))[-1].evidence
    for whole in (tome, tome.within(), tome.within(Scope()), tome.within("shelf"), tome.within(Path("shelf/"))):
        assert len(whole.search("light")) == 2


def test_a_folder_is_named_by_the_last_parts_of_its_path(tome):
    tome.add(Document(id="/left/deeds/2024/a", text="A."), Document(id="/left/deeds/b", text="B."))
    assert [record.id for record in tome.within("deeds/2024").documents] == ["/left/deeds/2024/a"]
    assert [record.id for record in tome.within("deeds/").documents] == ["/left/deeds/2024/a", "/left/deeds/b"]
    tome.add(Document(id="/right/deeds/a", text="A."))
    with pytest.raises(UnknownName, match="2 folders: give more of the path of one, /left/deeds/ or /right/deeds/"):
        tome.within("deeds")
    with pytest.raises(UnknownName, match="did you mean 'deeds/2024'"):
        tome.within("deeds/2025")


def test_the_trace_keeps_the_scope(tome):
    tome.within("Log", where=["year>=1900"]).ask("Who lit the light?")
    trace = tome.traces.latest()[0]
    assert trace.question.within == replace(WITHIN, where=(Condition("year", ">=", 1900),))
    assert trace.to_dict()["question"]["within"]["documents"] == ["shelf/log.txt"]
    assert str(trace.question.within) == "log.txt, year>=1900"
    assert "within='log.txt, year>=1900'" in repr(tome.within("Log", where="year>=1900"))


@pytest.mark.parametrize(
    ("named", "where", "kind", "message"),
    [
        (["diery.text"], (), UnknownName, "did you mean 'diary.txt'"),
        ([Scope(documents=frozenset({"shelf/log"}))], (), UnknownName, "did you mean 'shelf/log.txt'"),
        ([], ["year>1950"], UsageError, r"no passage is within the scope \(year>1950\)"),
        ([], ["yeer=1911"], UsageError, "no document has the field 'yeer'; did you mean 'year'"),
        ([Scope(), "Log"], (), UsageError, "either a Scope or documents"),
        ([], ["kind=\ud800"], UsageError, "not UTF-8"),
        ([3], (), UsageError, "a document must be a name, or a Scope alone, not 3"),
        ([], [3], UsageError, "where must be a condition such as"),
    ],
)
def test_what_does_not_exist_is_refused_before_any_call(tome, model, named, where, kind, message):
    with pytest.raises(kind, match=message):
        tome.within(*named, where=where)
    with pytest.raises(UsageError, match="has its own scope"):
        tome.within("diary.txt").ask(Question(text="Who?", within=WITHIN))
    with pytest.raises(UnknownName, match="did you mean"):
        tome.ask(Question(text="Who?", within=Scope(documents=frozenset({"shelf/log"}))))
    assert tome.traces.latest() == []
    assert model.calls == []


def test_a_view_knows_what_of_it_was_read(here):
    model = ScriptedModel({"collect": lambda _: {"rows": []}}, others=ExtractiveModel(HashEmbedder()))
    with Tome.open(here / "read.tome", embedder="hash", model=model, settings={"passage_tokens": 32}) as tome:
        tome.add(*(Document(id=f"d{number}", text=prose(number, 12)) for number in range(3)))
        part = tome.within("d0", "d1")
        own = {passage.id for passage in tome.store.passages(documents=["d0", "d1"]).values()}
        assert (part.coverage.read, part.coverage.passages, part.coverage.all_read) == (0, len(own), False)
        found = part.search("harbour", limit=1)
        read = {source.passage for piece in found for source in piece.origins}
        assert part.coverage.read == len(read) == 1
        part.documents.read("d1", "characters 0-10")
        assert part.coverage.read == len(read), "a part of a passage is not the passage"
        slice_ = part.documents.read("d1", "lines 1-99")
        read |= {passage.id for passage in slice_.passages}
        assert part.coverage.read == len(read)
        answer = part.ask("Who forged the letter?", system="naive limit=1")
        read |= {source for piece in answer.evidence for source in piece.sources}
        assert part.coverage.read == len(read)
        part.collect("anything", columns=("name",))
        assert part.coverage.all_read
        assert tome.coverage.read == 0, "another view has a ledger of its own"
        tome.remove("d1")
        assert part.coverage.read == part.coverage.passages == len(tome.store.passages(documents=["d0"]))
