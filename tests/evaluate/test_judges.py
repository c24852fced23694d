from __future__ import annotations

import pytest

from tomewise.errors import ModelError
from tomewise.evaluate.items import Item
from tomewise.evaluate.judges import JUDGES, find_judge, statement_f1
from tomewise.language.extractive import ExtractiveModel
from tomewise.language.roles import StatementsOut
from tomewise.testing import HashEmbedder
from tomewise.testing.scripted import ScriptedModel
from tomewise.types import Question

ITEM = Item(id="q", question=Question(text="Who did it?"), answers=("the butler", "Mr. Crane"))


async def test_a_verdict_tries_the_references_until_one_says_yes(embedder):
    model = ScriptedModel({"judge_correct": lambda given: {"correct": "Crane" in given.reference, "explanation": "x"}})
    found = await find_judge("acc-l").judge(model, embedder, ITEM, "Crane")
    assert (found.score, found.error, found.detail["reference"]) == (1.0, None, "Mr. Crane")
    assert [call.given.reference for call in model.calls] == ["the butler", "Mr. Crane"]
    model = ScriptedModel({"judge_entailed": [{"correct": True}]})
    assert (await find_judge("entailed").judge(model, embedder, ITEM, "butler")).score == 1.0
    assert len(model.calls) == 1
    model = ScriptedModel({"judge_correct": [ModelError("down")]})
    failed = await find_judge("acc-l").judge(model, embedder, ITEM, "Crane")
    assert (failed.score, failed.error) == (0.0, "ModelError: down")


@pytest.mark.parametrize(("level", "score", "fits"), [("high", 60, True), ("high", 81, False), ("very low", 20, True)])
async def test_a_grade_lies_in_the_band_of_its_level(embedder, level, score, fits):
    model = ScriptedModel({"judge_level": [{"level": level, "score": score}]})
    found = await find_judge("diversity").judge(model, embedder, ITEM, "an answer")
    assert found.score == (score / 100 if fits else 0.0)
    assert (found.error is None) is fits
    assert fits or "outside of 60 to 80" in found.error
    assert model.calls[0].given.quality == "diversity"


async def test_statements_weigh_facts_and_likeness(embedder):
    model = ScriptedModel({"judge_statements": [{"supported": ["a"], "unsupported": ["b"], "missing": ["c", "d"]}]})
    found = await find_judge("statements").judge(model, embedder, ITEM, "the butler")
    assert found.detail["f1"] == pytest.approx(2 * 1 / (2 * 1 + 1 + 2))
    assert found.detail["likeness"] == pytest.approx(1.0)
    assert found.score == pytest.approx(0.75 * 0.4 + 0.25)
    assert statement_f1(StatementsOut()) == 0.0


async def test_the_extractive_model_judges_too_and_an_empty_answer_scores_0_without_a_call(embedder: HashEmbedder):
    model = ExtractiveModel(embedder)
    item = Item(id="q", question=Question(text="Who sold the boat?"), answers=("Tom Hale sold Ada Marsh the boat.",))
    for judge in JUDGES.values():
        good = await judge.judge(model, embedder, item, "Tom Hale sold Ada Marsh the boat.")
        bad = await judge.judge(model, embedder, item, "Nobody knows when rain will fall.")
        assert good.error is bad.error is None
        assert 0 <= bad.score < good.score <= 1
        assert (await judge.judge(ScriptedModel({}), embedder, ITEM, " ")).score == 0.0
