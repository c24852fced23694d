import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from tomewise.evaluate.metrics.answers import class_f1, pair_accuracy


def test_class_f1_by_hand() -> None:
    gold = ["A", "A", "A", "B", "B"]
    predicted = ["A", "A", None, "A", "B"]
    # class A: 2 hits, 3 named, 3 met; class B: 1 hit, 1 named, 2 met
    assert class_f1(predicted, gold, "A") == pytest.approx(2 / 3)
    assert class_f1(predicted, gold, "B") == pytest.approx(2 / 3)
    assert class_f1([], [], "A") == 0.0


@given(st.lists(st.tuples(st.sampled_from(["A", "B", "-"]), st.sampled_from(["A", "B"])), min_size=1, max_size=30))
def test_class_f1_against_scikit_learn(pairs: list[tuple[str, str]]) -> None:
    predicted, gold = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    ours = [class_f1([None if label == "-" else label for label in predicted], gold, label) for label in "AB"]
    assert ours == pytest.approx(list(f1_score(gold, predicted, labels=["A", "B"], average=None, zero_division=0)))


def test_a_pair_needs_both_claims() -> None:
    assert pair_accuracy([1, 1, 2, 2, 3], [True, True, True, False, True]) == 0.5
    assert pair_accuracy([1, 2], [True, True]) is None
    assert pair_accuracy([], []) is None
