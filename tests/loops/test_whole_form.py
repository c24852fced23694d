"""The meaning and the form of a question tell whether it needs the whole text."""

from __future__ import annotations

import time

import pytest

from tomewise.embedding.choose_embedder import choose_embedder
from tomewise.embedding.hash import HashEmbedder
from tomewise.loops.whole_form import WholeForm, find_forms, list_forms, load_weights


@pytest.fixture(scope="module")
def rule() -> WholeForm:
    return WholeForm(choose_embedder("bundled"))


WHOLE = """Summarise the meeting.
Could you please summarize what the team decided?
Give me a short overview of the report.
How many times was the clock stopped?
List all people who own a boat.
List the characters.
What themes recur?
Who are all the suspects?
What is the main theme?
How does her view of him change throughout the novel?
What is the story about?"""
PART = """Who put out the light?
Why did all the sailors leave?
How many boats did Tom Hale own?
When did the meeting begin?
How often does the ferry run on Sundays?
How frequently should I change the oil?
What is the main topic of chapter 2?
Which entire document was lost?"""


@pytest.mark.parametrize("question", WHOLE.splitlines())
def test_what_needs_the_whole_text(rule: WholeForm, question: str) -> None:
    assert rule.find_reason(question)


@pytest.mark.parametrize("question", [*PART.splitlines(), "", " ", "?"])
def test_what_does_not(rule: WholeForm, question: str) -> None:
    assert rule.find_reason(question) == ""


def test_the_reason_names_the_forms(rule: WholeForm) -> None:
    assert rule.find_reason("How many times did she call?") == "count"
    assert rule.find_reason("What is this all about?") == "its meaning"


def test_the_weights_are_of_the_forms_and_of_the_bundled_embedder() -> None:
    weights = load_weights()
    assert [*weights["forms"]] == list_forms()
    assert weights["meaning"].shape == (choose_embedder("bundled").dimensions,)
    assert weights["forms"]["one part"] < 0 < weights["forms"]["count"]


def test_a_long_question_is_read_in_bounded_time() -> None:
    start = time.process_time()
    for text in ("how many " * 50_000, "from " * 90_000, "which " * 80_000, "list " * 80_000):
        find_forms(text)
    WholeForm(HashEmbedder(384)).find_reason("how many " * 50_000)
    assert time.process_time() - start < 2
