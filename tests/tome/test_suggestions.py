"""Questions that a tome suggests: from names, headings and titles, without a call."""

from __future__ import annotations

from tomewise.sample import STORY
from tomewise.testing import ScriptedModel
from tomewise.tome.tome import Tome
from tomewise.types import Document


def test_names_headings_and_titles_take_turns_and_no_model_is_asked(tmp_path):
    model = ScriptedModel({})
    with Tome.open(tmp_path / "a.tome", embedder="hash", model=model) as tome:
        assert tome.suggest_questions() == []
        tome.add(STORY, Document(id="tides", title="A Table of Tides", text="High water at nine."))
        found = tome.suggest_questions(9)
    assert model.calls == []
    assert len({each.question for each in found}) == 9
    assert [each.source for each in found[:3]] == ["names", "heading", "title"]
    assert "What does “1. The Wrong Hour” say?" in [each.question for each in found]


def test_equal_tomes_suggest_equal_questions_in_any_order_of_adding(tmp_path):
    documents = [Document(id=f"d{n}", title=f"Note {n}", text="Ada Marsh met Tom Reed at Hull.") for n in range(30)]
    found = []
    for number, order in enumerate((documents, documents[::-1])):
        with Tome.open(tmp_path / f"{number}.tome", embedder="hash") as tome:
            tome.add(*order)
            found.append(tome.suggest_questions(20))
    assert found[0] == found[1]
    assert len(found[0]) > 3
