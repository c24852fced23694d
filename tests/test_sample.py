"""The bundled sample holds together: the story is long enough and the questions rest on what it says."""

from __future__ import annotations

from collections import Counter

import pytest

from tomewise.sample import STORY, SampleQuestion, read_questions

TEXT = STORY.read_text(encoding="utf-8")
QUESTIONS = read_questions()
each_question = pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.id)


def chapter(excerpt: str) -> int:
    """How many chapter headings stand before the excerpt."""
    return TEXT[: TEXT.index(excerpt)].count("\n## ")


def test_the_story_is_long_and_has_chapters() -> None:
    assert len(TEXT.split()) >= 8000
    assert TEXT.startswith("# ")
    assert TEXT.count("\n## ") == 9


def test_there_are_eight_questions_of_each_type() -> None:
    assert Counter(question.type for question in QUESTIONS) == {"factoid": 8, "narrative": 8, "inferential": 8}


def test_ids_are_unique() -> None:
    assert len({question.id for question in QUESTIONS}) == len(QUESTIONS) == 24


def test_the_letters_are_spread_evenly() -> None:
    assert Counter(question.correct for question in QUESTIONS) == dict.fromkeys("ABCD", 6)


def test_the_right_option_is_not_betrayed_by_its_length() -> None:
    longest = [
        max(question.options, key=len) == question.options["ABCD".index(question.correct)] for question in QUESTIONS
    ]
    assert 3 <= sum(longest) <= 9


@each_question
def test_there_are_four_different_options_and_an_answer(question: SampleQuestion) -> None:
    assert len(set(question.options)) == len(question.options) == 4
    assert question.correct in tuple("ABCD")
    assert 1 <= len(question.answers) <= 3
    assert all(text.strip() for text in (question.question, *question.answers, *question.options))


@each_question
def test_the_evidence_is_verbatim_and_unique(question: SampleQuestion) -> None:
    assert [TEXT.count(excerpt) for excerpt in question.supporting] == [1] * len(question.supporting)
    assert all(40 <= len(excerpt) <= 300 for excerpt in question.supporting)


@each_question
def test_only_factoids_rest_on_one_chapter(question: SampleQuestion) -> None:
    chapters = {chapter(excerpt) for excerpt in question.supporting}
    if question.type == "factoid":
        assert len(chapters) == 1
    else:
        assert 2 <= len(question.supporting) <= 4
        assert len(chapters) >= 2
