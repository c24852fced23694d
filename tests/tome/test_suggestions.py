"""Questions that a tome suggests: from names, headings and titles, without a call."""

from __future__ import annotations

import pytest

from tomewise.sample import STORY
from tomewise.testing import ScriptedModel
from tomewise.tome.tome import Tome
from tomewise.types import Document


def test_names_headings_and_titles_take_turns_and_no_model_is_asked(tmp_path):
    model = ScriptedModel({})
    with Tome.open(tmp_path / "a.tome", embedder="hash", model=model) as tome:
        assert tome.suggest_questions() == []
        tome.add(STORY)
        tome.add(Document(id="tides", title="A Table of Tides", text="High water at nine."))
        found = tome.suggest_questions(9)
    assert model.calls == []
    assert len(found) == len({each.question for each in found}) == 9
    assert [each.source for each in found[:3]] == ["names", "heading", "title"]
    assert found[0].question.startswith("How are ")
    assert {each.question for each in found} >= {"What is said under “1. The Wrong Hour”?"}
    assert "“A Table of Tides”" in found[2].question


def test_equal_tomes_suggest_equal_questions_in_any_order_of_adding(tmp_path):
    documents = [Document(id=f"d{n}", title=f"Note {n}", text="Ada Marsh met Tom Reed at Hull.") for n in range(30)]
    found = []
    for number, order in enumerate((documents, documents[::-1])):
        with Tome.open(tmp_path / f"{number}.tome", embedder="hash") as tome:
            tome.add(*order)
            found.append(tome.suggest_questions(20))
    assert found[0] == found[1]
    assert 3 < len(found[0]) <= 20


@pytest.mark.parametrize("text", ["\x1b[31m “” ?", "1 2 3 4 5", "## \n\n## 7\n\n", "x" * 5000])
def test_odd_texts_give_no_odd_questions(tmp_path, text):
    with Tome.open(tmp_path / "a.tome", embedder="hash") as tome:
        tome.add(Document(id="d", title="A\nB\x1b", text=text), Document(id="e", text="Other."))
        for each in tome.suggest_questions():
            assert "\n" not in each.question
            assert len(each.question) < 200
