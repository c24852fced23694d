"""What a model that only quotes is given, and where the sentences stand that it quotes."""

from __future__ import annotations

from itertools import pairwise

import pytest
from tests.loops.doubles import EMBEDDER, make_desk, put_passages

from tomewise.language.extractive import ExtractiveModel
from tomewise.language.roles import AnswerIn, AnswerOut, Quote
from tomewise.loops.desk import make_answer_input
from tomewise.loops.quoting import Quoter, only_quotes
from tomewise.recall.ranking import as_evidence
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing.scripted import ScriptedModel
from tomewise.types import Document, Evidence, Passage, Place, Question, Rewrite

TEXT = "# Light\nEleven keepers served. The last was Josiah.\n# Goat\nHe kept a goat. It climbed the stairs."


@pytest.fixture
def store(tmp_path):
    made = SqlStore.open(tmp_path / "a.tome")
    document = Document(id="light.md", text=TEXT)
    cuts = (0, 31, 52, len(TEXT))
    passages = [
        Passage(
            id=f"p-{number}",
            document="light.md",
            position=number,
            start=start,
            end=end,
            text=TEXT[start:end],
            place=Place(chapter=("Light",) if end <= 52 else ("Goat",)),
        )
        for number, (start, end) in enumerate(pairwise(cuts))
    ]
    put_passages(made, document, passages)
    yield made
    made.close()


def load(store) -> list[Passage]:
    return list(store.passages().values())


def test_a_sentence_has_its_neighbours_also_from_other_passages_but_not_across_a_heading(store):
    passages = load(store)
    reply = AnswerOut(
        answer="", quotes=[Quote(label="E2", quote="The last was Josiah."), Quote(label="E3", quote="He kept a goat.")]
    )
    josiah, goat = Quoter(store).quote(reply, passages)
    assert (josiah.before, josiah.after) == ("Eleven keepers served.", "")
    assert (goat.before, goat.after) == ("", "It climbed the stairs.")
    assert [each.citation.place.chapter for each in (josiah, goat)] == [("Light",), ("Goat",)]


def test_the_option_belongs_to_the_first_sentence_alone(store):
    quotes = [Quote(label="E2", quote="The last was Josiah."), Quote(label="E3", quote="He kept a goat.")]
    shown = Quoter(store).quote(AnswerOut(answer="", choice="B", quotes=quotes), load(store))
    assert [each.option for each in shown] == ["B", None]


def test_what_is_found_nowhere_is_not_quoted(store):
    reply = AnswerOut(answer="", quotes=[Quote(label="E1", quote="The moon is made of cheese.")])
    assert Quoter(store).quote(reply, load(store)) == ()


def test_passages_come_before_what_was_made_of_several_and_bring_their_headings(store):
    first, second, third = load(store)
    summary = Evidence(node="s-1", layer="tree", text="Of keepers.", score=9, sources=(first.id, second.id))
    prepared = Quoter(store).prepare(AnswerIn(question="Who?"), [summary, as_evidence(third, 1.0)])
    assert list(prepared.passages) == [third, first, second]
    assert [each.text for each in prepared.input.passages] == [third.text, first.text, second.text]
    assert prepared.input.passages[0].headings == [(0, ("Goat",))]


def test_rewrites_lose_worth_by_the_rank_of_the_passage_that_gave_their_name(store):
    first, second, third = load(store)
    rewrite = Rewrite(text="the goat of Josiah", name="Josiah", source=second.id)
    found = [as_evidence(first, 2.0), as_evidence(second, 1.0)]
    brought = Evidence(
        node=third.id, layer="passages", text=third.text, score=0.5, sources=(third.id,), rewrite=rewrite
    )
    prepared = Quoter(store).prepare(AnswerIn(question="Who?"), [*found, brought])
    assert prepared.input.rewrites == [("the goat of Josiah", 0.02)]


async def test_the_desk_gives_quotations_where_no_model_is_set_and_no_more_than_partly(store):
    model = ExtractiveModel(EMBEDDER)
    desk = make_desk(store, model)
    found = [as_evidence(passage, 1.0) for passage in load(store)]
    question = Question(text="Who was the last keeper?", force=True)
    answer = await desk.answer(question, await desk.prepare(question, found, budget=None))
    assert only_quotes(model)
    assert answer.supported != "full"
    assert answer.text.splitlines() == [each.citation.quote for each in answer.quotations]
    assert [each.citation for each in answer.quotations] == list(answer.citations)
    assert all(TEXT[each.start : each.end] == each.quote for each in answer.citations)


async def test_a_declined_question_keeps_its_quotations_and_has_no_answer(store):
    desk = make_desk(store, ExtractiveModel(EMBEDDER))
    question = Question(text="Who was the last keeper of Skagen?")
    found = [as_evidence(passage, 1.0) for passage in load(store)]
    answer = await desk.answer(question, await desk.prepare(question, found, budget=None))
    assert (answer.resolved, answer.text, answer.choice, answer.citations) == (False, "", None, ())
    assert len(answer.quotations) == 3
    assert answer.missing == "nothing here names Skagen"


async def test_a_real_model_is_asked_as_ever(store):
    model = ScriptedModel(
        {"answer": [{"answer": "Josiah", "quotes": [{"label": "E2", "quote": "The last was Josiah."}]}]}
    )
    desk = make_desk(store, model)
    question = Question(text="Who was the last keeper?")
    found = [as_evidence(passage, 1.0) for passage in load(store)]
    answer = await desk.answer(question, await desk.prepare(question, found, budget=None))
    assert (answer.text, answer.quotations) == ("Josiah", ())
    assert type(model.calls[0].given) is type(make_answer_input(question, []))
