"""The ledger beyond its question: what it holds, what it forgets, and what it says of damaged data."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tomewise.errors import StoreError
from tomewise.working.ledger import Fact, Ledger, add_facts, add_inferences, infer_from
from tomewise.working.ledger_memory import LedgerMemory

PASSAGES = ("", "p1", "p2", "p3")
FACTS = st.builds(
    Fact, label=st.just(""), text=st.text("ab é", max_size=6), passage=st.sampled_from(PASSAGES), in_text=st.booleans()
)
ROUNDS = st.lists(st.tuples(st.lists(FACTS, max_size=4), st.lists(st.integers(1, 20), max_size=4)), max_size=4)


def count(texts):
    return [len(text.split()) for text in texts]


def write(*rounds):
    """A ledger; each round has facts, and the numbers of the entries that an inference of this round rests on."""
    ledger = Ledger(questions=("Who?",), answer="Ada")
    for number, (facts, grounds) in enumerate(rounds):
        ledger = add_facts(ledger, facts, count)
        labels = [f"{letter}{each}" for each in grounds for letter in "FI"]
        inference = infer_from(ledger, f"so {number}", labels)
        ledger = add_inferences(ledger, [inference] if inference.grounds else [], count)
    return ledger


def keep(ledger):
    memory = LedgerMemory()
    memory.keep(ledger)
    return memory


def fact(text, passage):
    return Fact(label="", text=text, passage=passage, quote=text, in_text=True)


def make_memory():
    return keep(write(([fact("one", "p1"), fact("two", "p2")], [1, 2]), ([fact("six", "p3")], [4])))


def test_facts_and_inferences_stay_and_questions_and_answer_go():
    memory = make_memory()
    assert memory.notes == ("one", "two", "so 0", "six", "so 1")
    assert (memory.ledger.questions, memory.ledger.answer) == ((), "")
    assert memory.find_nodes() == {"p1", "p2", "p3"}
    assert memory.kind == "ledger"


def test_what_nobody_could_forget_does_not_outlive_its_question():
    memory = keep(write(([fact("one", "p1"), fact("two", "")], [1, 2]), ([fact("six", "p3")], [3, 4])))
    assert memory.notes == ("one", "six")
    assert memory.ledger.made == 5, "no label is given twice"


def test_what_rests_on_a_removed_passage_goes_also_where_it_rests_on_others():
    memory = keep(write(([fact("one", "p1"), fact("two", "p2")], [1, 2]), ([fact("six", "p3")], [2])))
    assert memory.forget(["p1", "p9"]) == ("one", "so 0")
    assert memory.notes == ("two", "six", "so 1")
    assert memory.find_nodes() == {"p2", "p3"}


def test_an_inference_also_rests_on_facts_that_it_has_no_room_for():
    many = [fact(f"fact {number}", f"p{number}") for number in range(12)]
    memory = keep(write((many, list(range(1, 13)))))
    assert len(memory.ledger.inferences[0].grounds) == 8
    assert "so 0" in memory.forget(["p11"])


def test_shrinking_keeps_inferences_first_and_then_the_newest_facts():
    memory = make_memory()
    inferences = [each.text for each in memory.ledger.inferences]
    left = memory.shrink(len(inferences) + 1)
    assert left == ("one", "two")
    assert [each.text for each in memory.ledger.facts] == ["six"]
    memory.shrink(1)
    assert memory.notes == (inferences[-1],)
    assert memory.shrink(1) == ()


@given(ROUNDS, st.sets(st.sampled_from(PASSAGES[1:])), st.integers(1, 6))
def test_a_memory_is_the_same_after_a_dump_and_forgets_and_shrinks_as_it_says(rounds, gone, most):
    memory = keep(write(*rounds))
    loaded = LedgerMemory.load(json.loads(json.dumps(memory.dump())))
    assert loaded.ledger == memory.ledger
    before = memory.notes
    left = memory.forget(gone)
    assert memory.find_nodes().isdisjoint(gone)
    assert "" not in memory.find_nodes()
    left += memory.shrink(most)
    assert len(memory.ledger.facts) + len(memory.ledger.inferences) <= most
    assert {*left, *memory.notes} == {*before}
    assert LedgerMemory.load(memory.dump()).notes == memory.notes


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"facts": None}, "facts"),
        ({"made": 1}, "never given"),
        ({"facts": [{"label": "F1", "text": "a"}, {"label": "F1", "text": "b"}]}, "the same label"),
        ({"facts": [{"label": "X1", "text": "a"}]}, "another kind"),
        ({"facts": [{"label": "Fx", "text": "a"}]}, "never given"),
    ],
)
def test_damaged_data_is_refused(change, problem):
    with pytest.raises(StoreError, match=rf"damaged \(.*{problem}.*begin a new one"):
        LedgerMemory.load({**make_memory().dump(), **change})
    with pytest.raises(StoreError, match="damaged"):
        LedgerMemory.load(["no", "ledger"])
