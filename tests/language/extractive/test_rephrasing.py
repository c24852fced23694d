"""What the extractive model makes of a follow-up question."""

from __future__ import annotations

import pytest

from tomewise.language.extractive.rephrasing import rephrase
from tomewise.language.roles import RephraseIn, TurnShown

TURNS = [
    TurnShown(question="Who kept the light on Gull Rock?", answer="Ada Marsh"),
    TurnShown(question="Who sold the Heron to Ida Poe?", answer="It was Tom Hale."),
]


@pytest.mark.parametrize(
    ("question", "alone"),
    [
        ("And who taught him to sail?", "Who taught Tom Hale to sail?"),
        ("Where did he live?", "Where did Tom Hale live?"),
        ("What was his trade?", "What was Tom Hale's trade?"),
        ("When did she buy it?", "When did Ida Poe buy it?"),
        ("What did Tom Hale ask her?", "What did Tom Hale ask Ida Poe?"),
        ("Why?", "Why: Who sold the Heron to Ida Poe?"),
        ("Where is Bruges?", "Where is Bruges?"),
        ("What did they find in the cellar?", "What did they find in the cellar?"),
        ("And?", "And: Who sold the Heron to Ida Poe?"),
    ],
)
def test_names_of_the_last_turns_take_the_place_of_pronouns(question, alone):
    assert rephrase(RephraseIn(question=question, turns=TURNS)).question == alone


def test_without_turns_only_the_opening_goes():
    assert rephrase(RephraseIn(question="And who is he?", turns=[])).question == "Who is he?"
