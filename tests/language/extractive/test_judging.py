from __future__ import annotations

import pytest

from tomewise.language.extractive.judging import (
    judge_correct,
    judge_entailed,
    judge_level,
    judge_statements,
    measure_overlap,
)
from tomewise.language.roles import JudgeIn, LevelIn, StatementsIn


def test_token_f1_and_recall_by_hand():
    # two of three and two of four tokens are shared: F1 = 2 * 2 / 7
    assert measure_overlap("the red house burned", "a red house stood empty") == pytest.approx((4 / 7, 2 / 3))


@pytest.mark.parametrize(
    ("reference", "prediction", "correct"),
    [
        ("Matthew Lisle", "Matthew Lisle", True),
        ("Matthew Lisle", "It was built by Matthew Lisle in 1843.", True),
        ("Matthew Lisle", "Mrs. Moy", False),
        ("He was late", "He was not late", False),
        ("Matthew Lisle", "", False),
        ("", "", False),
    ],
)
def test_correct_by_shared_words(reference: str, prediction: str, correct: bool):
    assert judge_correct(JudgeIn(question="?", reference=reference, prediction=prediction)).correct is correct


def test_entailed_needs_the_whole_reference_or_the_same_answer():
    reference = "salt ate the spring of the old clock"
    part = "People say that salt ate the spring of some clock, whatever that may mean to them"
    assert judge_correct(JudgeIn(question="?", reference=reference, prediction=part)).correct
    assert not judge_entailed(JudgeIn(question="?", reference=reference, prediction=part)).correct
    assert judge_entailed(JudgeIn(question="?", reference=reference, prediction=f"{part}: {reference}")).correct


def test_levels_follow_the_share_covered():
    full = judge_level(
        LevelIn(question="?", reference="pilot drowned", prediction="The pilot drowned.", quality="comprehensiveness")
    )
    none = judge_level(
        LevelIn(question="?", reference="pilot drowned", prediction="Roses", quality="comprehensiveness")
    )
    assert (full.level, full.score, none.level, none.score) == ("very high", 100, "very low", 0)


def test_statements_are_sorted_by_whether_the_other_side_says_them():
    found = judge_statements(
        StatementsIn(
            question="?",
            prediction="The pilot drowned near the withy. Roses are red.",
            reference="Near the withy the pilot drowned. Annis found the watch.",
        )
    )
    assert found.supported == ["The pilot drowned near the withy."]
    assert found.unsupported == ["Roses are red."]
    assert found.missing == ["Annis found the watch."]
