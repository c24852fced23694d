"""The form of a question shows whether it asks for the whole text."""

from __future__ import annotations

import pytest

from tomewise.loops.escalate import find_whole_form


@pytest.mark.parametrize(
    "question",
    [
        "Summarise the meeting.",
        "Could you please summarize what the team decided?",
        "Give me a short overview of the report.",
        "Write a summary of chapter two.",
        "How often does the keeper go to the mainland?",
        "How many times was the clock stopped?",
        "List all people who own a boat.",
        "Name every place that the narrator visits.",
        "Who are all the suspects?",
        "What is the main theme?",
        "How does her view of him change throughout the novel?",
        "What is the story about?",
    ],
)
def test_what_asks_for_the_whole_text(question):
    assert find_whole_form(question)


@pytest.mark.parametrize(
    "question",
    [
        "Who put out the light?",
        "Who wrote the summary that Ada read?",
        "Why did all the sailors leave?",
        "How many boats did Tom Hale own?",
        "What was the list of names found in?",
        "When did the meeting begin?",
        "Where is the overview map kept?",
        "",
    ],
)
def test_what_does_not(question):
    assert find_whole_form(question) == ""


def test_the_form_is_given_in_the_words_of_the_question():
    assert find_whole_form("And how  often\ndid she call?") == "how often"


def test_a_long_question_is_read_in_bounded_time():
    assert find_whole_form("give " * 100_000) == ""
