"""Without a model: what `ask` gives in Python, in traces and sessions, and as plain data."""

from __future__ import annotations

import pytest

from tomewise import Document, Question, Tome
from tomewise.embedding.hash import HashEmbedder

LIGHT = (
    "# Light\n\nEleven keepers served here. The last keeper of the light was Josiah <Penrose>, who left in 1984.\n\n"
    "# Goat\n\nThe goat climbed the stairs."
)
QUESTION = "Who was the last keeper of the light?"
NOWHERE = "Who was the last keeper of Skagen?"


@pytest.fixture
def tome(tmp_path):
    with Tome.open(tmp_path / "a.tome", embedder=HashEmbedder()) as made:
        made.add(Document(id="light.md", text=LIGHT))
        yield made


@pytest.mark.parametrize("system", ["hybrid", "hybrid+probe cycles=1", "auto", "cosmir"])
@pytest.mark.parametrize("question", [QUESTION, NOWHERE, "?"])
def test_every_system_quotes_whole_sentences_and_none_is_sure(tome, system, question):
    answer = tome.ask(question, system=system)
    assert answer.claimed != "full"
    sentences = [each.text for each in answer.statements]
    assert all(LIGHT[each.start : each.end] == each.text for each in answer.quotes)
    assert (answer.text, answer.words.splitlines()) == ("", sentences), "quotations are no answer"
    assert answer.only_quotes == bool(sentences)
    assert question != QUESTION or sentences[0].startswith("The last keeper")


def test_traces_and_sessions_keep_the_quotations(tome):
    answer = tome.ask(QUESTION)
    assert tome.traces[answer.trace].answer.statements == answer.statements
    assert answer.to_dict()["statements"][0]["quotes"][0]["before"] == "Eleven keepers served here."
    session = tome.sessions["keepers"]
    session.ask(QUESTION)
    assert session.read().turns[0].answer.startswith("“The last keeper")
    for current in (True, False):
        asked = Question(text=QUESTION, current=current)
        assert tome.traces[tome.ask(asked).trace].question.current is current


def test_an_option_is_shown_only_beside_its_sentence(tome):
    answer = tome.ask(QUESTION, options=["Matthew Lisle", "Josiah Penrose"])
    assert [each.choice for each in answer.statements] == ["B", None, None]
    assert answer.choice == "B"
    assert answer.text == ""
