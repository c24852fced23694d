"""Whether a question has one clause decides whether a call is spent on splitting it."""

import json
from pathlib import Path

import pytest

from tomewise.language.extractive.steering import decompose
from tomewise.language.roles import DecomposeIn
from tomewise.recall.diffusion import DecomposedRecall, has_one_clause
from tomewise.sample import read_questions
from tomewise.testing import ScriptedModel

STORY = Path(__file__).resolve().parents[3] / "shared" / "data" / "story" / "conversations.jsonl"


@pytest.mark.parametrize(
    ("question", "is_one"),
    [
        ("Who sold the boat?", True),
        ("Where was the author of the book that Ada read at Sker born?", True),
        ("What was his name, in the film where he goes to Rome?", True),
        ("Who sold the boat and why?", False),
        ("Which is older, Sker or Orrin?", False),
        ("Which lamp was lit later than the one at Sker?", False),
        ("Why did the clerks of Marsh & Sons differ?", False),
        ("Who came? Who left?", False),
        ("In what order came these: the tide, the brig, the letter?", False),
        ("Who wrote: nothing", False),
        ("Did Ada meet Tom", True),
        ("Tell me of Ada", False),
        ("Was haben Ada und Tom gemeinsam?", False),
        ("谁卖了船？", False),
        ("", False),
    ],
)
def test_a_clause_is_told_by_its_words(question, is_one):
    assert has_one_clause(question) == is_one


async def test_no_call_is_spent_on_one_clause():
    asked = []

    class Inner:
        async def retrieve(self, query, limit, *, within=None):
            asked.append(query)
            return []

    model = ScriptedModel({"decompose": lambda given: {"subqueries": ["Who came?", "Who left?"]}})
    await DecomposedRecall(Inner(), model).retrieve("Who sold the boat?", 5)
    assert (asked, model.calls) == (["Who sold the boat?"], [])
    await DecomposedRecall(Inner(), model).retrieve("Who came and who left?", 5)
    assert asked[1:] == ["Who came?", "Who left?"]
    assert len(model.calls) == 1


def test_what_the_extractive_model_splits_is_asked():
    for question in [each.question for each in read_questions()]:
        assert not (has_one_clause(question) and decompose(DecomposeIn(question=question)).subqueries)


@pytest.mark.skipif(not STORY.exists(), reason="needs ../shared")
def test_what_a_strong_model_split_is_asked():
    rows = [json.loads(line) for line in STORY.read_text(encoding="utf-8").splitlines()]
    split = [row for row in rows if row["role"] == "decompose" and row["reply"]["subqueries"]]
    assert len(split) == 2
    assert not any(has_one_clause(row["given"]["question"]) for row in split)
