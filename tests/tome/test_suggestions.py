"""Questions that a tome suggests: from names, headings and titles, without a call."""

from __future__ import annotations

from tomewise.sample import STORY
from tomewise.testing import ScriptedModel
from tomewise.tome.tome import Tome
from tomewise.types import Document


def test_names_headings_and_titles_take_turns_and_no_model_is_asked(tmp_path):
    model = ScriptedModel({})
    with Tome.open(tmp_path / "a.tome", embedder="hash", model=model) as tome:
        assert tome.memory.suggest_questions() == []
        tome.add(STORY, Document(id="tides", title="A Table of Tides", text="High water at nine."))
        found = tome.memory.suggest_questions(9)
    assert model.calls == []
    assert len({each.question for each in found}) == 9
    assert [each.source for each in found[:3]] == ["names", "heading", "title"]
    assert "What does “1. The Wrong Hour” say?" in [each.question for each in found]
