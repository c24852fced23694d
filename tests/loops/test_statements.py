"""A text is cut into statements, and what is not proved leaves it."""

import pytest

from tomewise.loops.statements import keep_proved, list_statements, read_marks
from tomewise.types import Answer, Statement


def make_answer(text, *gone):
    spans = list_statements(text)
    supports = ["none" if text[start:end] in gone else "quoted" for start, end in spans]
    statements = (
        Statement(text=text[start:end], start=start, end=end, support=support)
        for (start, end), support in zip(spans, supports, strict=True)
    )
    return Answer(text=text, statements=tuple(statements))


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("1. The lamp went out.\n2. Seven men drowned.", ["The lamp went out.", "Seven men drowned."]),
        ("Two things happened:\n\n- The lamp went out.", ["The lamp went out."]),
        ("| who | when |\n| --- | --- |\n| Ada | nine |", ["| Ada | nine |"]),
        ("The lamp went out. Seven men drowned.", ["The lamp went out.", "Seven men drowned."]),
        ("nine", ["nine"]),
        ("**The lamp went out.** Seven men drowned.", ["**The lamp went out.**", "Seven men drowned."]),
        ("The lamp went out.[^a] Seven men drowned.", ["The lamp went out.[^a]", "Seven men drowned."]),
        ("The lamp went out. [1] Seven men drowned. [2]", ["The lamp went out. [1]", "Seven men drowned. [2]"]),
        ("It failed:\n\n```python\nx = 1. Or two.\n\n| a |\n```\n\nSeven men drowned.", ["Seven men drowned."]),
        ("Nine men drowned.\n~~~\nIt has no end. It has none.", ["Nine men drowned."]),
        ("```\nx = 1. Or two.\n```", ["```\nx = 1. Or two.\n```"]),
    ],
)
def test_statements_are_sentences_items_and_rows(text, statements):
    assert [text[start:end] for start, end in list_statements(text)] == statements


@pytest.mark.parametrize(
    ("text", "gone", "kept"),
    [
        ("A is true. B is false. C is true.", ["B is false."], "A is true. C is true."),
        ("A is false. B is true.", ["A is false."], "B is true."),
        (
            "- A is true.\n- B is false. C is true.\n- D is false.",
            ["B is false.", "D is false."],
            "- A is true.\n- C is true.",
        ),
        ("- A is false.\n- B is true.", ["A is false."], "- B is true."),
        ("A is\ntrue. B is\nfalse. C is true.", ["B is\nfalse."], "A is\ntrue. C is true."),
        ("A is true.\n\nB is false.\n\nC is true.", ["B is false."], "A is true.\n\n\nC is true."),
        ("| a | b |\n| - | - |\n| A | one |\n| B | two |", ["| A | one |"], "| a | b |\n| - | - |\n| B | two |"),
    ],
)
def test_what_is_not_proved_leaves_and_the_rest_stays_in_its_place(text, gone, kept):
    answer = keep_proved(make_answer(text, *gone))
    assert (answer.text, answer.withheld) == (kept, len(gone))
    assert [answer.text[each.start : each.end] for each in answer.statements] == [
        each.text for each in answer.statements
    ]
    assert all(each.text not in gone for each in answer.statements)


def test_an_answer_of_which_nothing_is_proved_is_declined_without_its_words():
    answer = keep_proved(make_answer("Napoleon did it.", "Napoleon did it."))
    assert (answer.resolved, answer.text, answer.statements, answer.withheld) == (False, "", (), 1)
    assert "Napoleon" not in str(answer)


@pytest.mark.parametrize(
    ("text", "shown", "marks"),
    [
        ("Nine [E1]. Ten [E2, E3].", "Nine. Ten.", [(4, ("E1",)), (9, ("E2", "E3"))]),
        ("[E1] Nine.", "Nine.", [(0, ("E1",))]),
        ("Citric acid [E330] is used.", "Citric acid [E330] is used.", []),
    ],
)
def test_marks_name_what_was_shown(text, shown, marks):
    read = read_marks(text, 3)
    assert (read.text, list(read.marks)) == (shown, marks)
