"""The bundled sample holds together: the story is long enough and the questions rest on what it says."""

from __future__ import annotations

import pytest

from tomewise.sample import STORY, SampleQuestion, read_questions

TEXT = STORY.read_text(encoding="utf-8")
QUESTIONS = read_questions()


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.id)
def test_a_question_has_four_options_and_rests_on_what_the_story_says(question: SampleQuestion) -> None:
    assert len(set(question.options)) == 4
    assert all(text.strip() for text in (question.question, *question.answers, *question.options))
    assert [TEXT.count(excerpt) for excerpt in question.supporting] == [1] * len(question.supporting)
    # How many headings stand before an excerpt says in which chapter it is.
    chapters = {TEXT[: TEXT.index(excerpt)].count("\n## ") for excerpt in question.supporting}
    assert (len(chapters) == 1) == (question.type == "factoid")
