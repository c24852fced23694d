import pytest

from tomewise.evaluate.metrics.answers import choice_accuracy, find_letter, pick_letter

OPTIONS = ("Paris", "Rome", "The city of Bonn", "Athens")


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("B", "B"),
        ("b.", "B"),
        ("(C)", "C"),
        ("**D**", "D"),
        ("B. Rome", "B"),
        ("A) Paris, because ...", "A"),
        ("rome", "B"),
        ("the City of Bonn.", "C"),
        ("The answer is: D", "D"),
        ("After reading, my answer: (C)", "C"),
        ("I think the answer is C.", "C"),
        ("The right option is B", "B"),
        ("A man went there, so the answer is D", "D"),  # the first A is an article
        ("Anne would go with C", "C"),
        ("It must be Athens in the end", "D"),
        ("Neither Paris nor Rome", None),  # two wordings and no letter
        ("E", None),
        ("", None),
        ("nothing fits", None),
        ("D'Artagnan prefers B", "B"),
    ],
)
def test_find_letter(reply: str, expected: str | None) -> None:
    assert find_letter(reply, OPTIONS) == expected


def test_only_letters_of_options_count() -> None:
    assert find_letter("C", OPTIONS[:2]) is None
    assert find_letter("F", tuple("uvwxyz")) == "F"
    assert find_letter("A", ()) is None


def test_a_choice_goes_before_the_reply() -> None:
    assert pick_letter("b", "A", OPTIONS) == "B"
    assert pick_letter("Z", "Athens", OPTIONS) == "D"
    assert pick_letter(None, "", OPTIONS) is None


def test_choice_accuracy() -> None:
    assert choice_accuracy("B", "", OPTIONS, "B") == 1.0
    assert choice_accuracy(None, "B. Rome", OPTIONS, "B") == 1.0
    assert choice_accuracy(None, "no idea", OPTIONS, "B") == 0.0
