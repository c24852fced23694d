"""The ledger keeps its budget and says what was overtaken, and outlives its question without what belongs to that."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tomewise.errors import StoreError
from tomewise.types.plain import write_plain
from tomewise.working.ledger import (
    Ledger,
    LedgerEntry,
    LedgerMemory,
    add_facts,
    forget_oldest,
    infer,
    list_overtaken,
    settle,
)

TEXTS = st.text(st.sampled_from("ab é潮.\n"), max_size=40)
PASSAGES = st.sampled_from(["", "p1", "p2", "p3"])
FACTS = st.builds(LedgerEntry, label=st.just(""), text=TEXTS, passages=st.tuples(PASSAGES), end=st.integers(0, 9))


def count(texts):
    return [len(text.split()) for text in texts]


def fact(text, passage="p1"):
    return LedgerEntry(label="", text=text, passages=(passage,), end=len(text))


def list_texts(entries):
    return [entry.text for entry in entries]


def write(*facts, **fields):
    return add_facts(Ledger(**fields), facts)


@given(st.integers(1, 9), st.lists(st.sampled_from(["a", "b b", "c c c", "d d d d"]), max_size=8))
def test_first_in_is_first_out(budget, texts):
    facts = [fact(f"{text} {number}") for number, text in enumerate(texts)]
    ledger = forget_oldest(write(*facts), budget, count)
    sizes = count([each.text for each in facts])
    fitting = [start for start in range(len(sizes) + 1) if sum(sizes[start:]) <= budget]
    assert [each.label for each in ledger.facts] == [f"F{n + 1}" for n in range(min(fitting), len(sizes))]


def test_an_inference_rests_on_the_passages_of_its_grounds_and_survives_these():
    ledger = infer(write(fact("aa"), fact("bb", "p2")), "so", [1, 2, 9])
    ledger = infer(replace(ledger, entries=tuple(ledger.inferences)), "then", [3])
    assert [each.passages for each in ledger.inferences] == [("p1", "p2")] * 2
    assert infer(ledger, "because", [9]) == ledger, "what rests on nothing is not kept"


def test_what_is_known_is_not_added_again():
    ledger = write(fact("aa"), fact("aa"), fact("aa", "p2"), fact(" "))
    assert [(each.text, each.passages[0]) for each in ledger.facts] == [("aa", "p1"), ("aa", "p2")]
    assert add_facts(ledger, [fact("aa")]) == ledger
    ledger = infer(ledger, "so", [1])
    assert infer(ledger, "so", [2]) == ledger


def test_what_is_overtaken_is_marked_once_and_its_heir_names_all_of_it():
    ledger = infer(write(fact("nine"), fact("eleven"), fact("twelve")), "perhaps nine", [1])
    ledger = infer(ledger, "now eleven", [2], [1, 4])
    ledger = infer(ledger, "now twelve", [3], [2, 5, 1, 6, 77])
    assert [each.replaced_by for each in (*ledger.facts, *ledger.inferences)] == ["I5", "I6", "", "I5", "I6", ""]
    assert [*list_overtaken(ledger, ledger.inferences[-1])] == ["now eleven", "perhaps nine", "nine", "eleven"]


def test_questions_leave_when_they_are_settled_and_do_not_come_back():
    ledger = settle(Ledger(questions=("Who?", "Why?"), nets=("All?",)), {1, 3, 9}, ["who", "WHY ", "When?", " "])
    assert (ledger.questions, ledger.nets, ledger.settled) == (("Why?", "When?"), (), ("Who?", "All?"))


@given(st.lists(st.lists(FACTS, max_size=4), max_size=4), st.lists(TEXTS, max_size=5))
def test_nothing_is_lost_on_the_way_to_a_file(rounds, names):
    ledger = Ledger(questions=tuple(names), nets=tuple(names[1:]))
    for number, facts in enumerate(rounds):
        ledger = add_facts(ledger, facts)
        for text in names[number:]:
            ledger = infer(ledger, text, range(99), {number})
        labels = [each.label for each in ledger.entries]
        assert labels == sorted(set(labels), key=lambda label: int(label[1:]))
    memory = LedgerMemory()
    memory.ledger = ledger
    assert memory.dump() == json.loads(json.dumps(write_plain(ledger)))


# ---------------------------------------------------------------- beyond its question


def keep_rounds(*rounds):
    """A memory of rounds, each of facts, and the numbers of the entries that an inference of this round rests on."""
    ledger = Ledger(questions=("Who?",))
    for number, (facts, grounds) in enumerate(rounds):
        ledger = infer(add_facts(ledger, facts), f"so {number}", grounds)
    memory = LedgerMemory()
    memory.keep(ledger)
    return memory


def keep_three(first=(1, 2), second=(4,), passage="p2"):
    return keep_rounds(([fact("one"), fact("two", passage)], first), ([fact("six", "p3")], second))


def test_facts_and_inferences_stay_and_questions_go():
    memory = keep_three()
    assert memory.notes == ("one", "two", "so 0", "six", "so 1")
    assert (memory.ledger.questions, memory.kind) == ((), "ledger")
    assert memory.find_nodes() == {"p1", "p2", "p3"}
    memory = keep_three((1, 2), (3, 4), "")
    assert memory.notes == ("one", "six"), "what nobody could forget does not outlive its question"
    assert memory.ledger.made == 5, "no label is given twice"


def test_what_rests_on_a_removed_passage_goes_also_where_it_rests_on_others():
    memory = keep_three((1, 2), (2,))
    assert memory.forget(["p1", "p9"]) == ("one", "so 0")
    assert memory.notes == ("two", "six", "so 1")
    assert memory.find_nodes() == {"p2", "p3"}
    memory = keep_rounds(([fact(f"fact {number}", f"p{number}") for number in range(12)], list(range(1, 13))))
    assert "so 0" in memory.forget(["p11"])


def test_shrinking_keeps_inferences_first_and_then_the_newest_facts():
    memory = keep_three()
    assert memory.shrink(3) == ("one", "two")
    assert memory.notes == ("so 0", "six", "so 1")
    memory.shrink(1)
    assert memory.notes == ("so 1",)
    assert memory.shrink(1) == ()


ROUNDS = st.lists(st.tuples(st.lists(FACTS, max_size=4), st.lists(st.integers(1, 20), max_size=4)), max_size=4)


@given(ROUNDS, st.sets(st.sampled_from(["p1", "p2", "p3"])), st.integers(1, 6))
def test_a_memory_is_the_same_after_a_dump_and_forgets_and_shrinks_as_it_says(rounds, gone, most):
    memory = keep_rounds(*rounds)
    loaded = LedgerMemory.load(json.loads(json.dumps(memory.dump())))
    assert loaded.ledger == memory.ledger
    before = memory.notes
    left = memory.forget(gone)
    assert memory.find_nodes().isdisjoint({*gone, ""})
    left += memory.shrink(most)
    assert len(memory.ledger.facts) + len(memory.ledger.inferences) <= most
    assert {*left, *memory.notes} == {*before}
    assert LedgerMemory.load(memory.dump()).notes == memory.notes


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"entries": None}, "entries"),
        ({"entries": [{"no": 1}]}, "text"),
        ({"made": 1}, "never given"),
        ({"entries": [{"label": "F1", "text": "a"}, {"label": "F1", "text": "b"}]}, "the same label"),
        ({"entries": [{"label": "X1", "text": "a"}]}, "never given"),
        ({"entries": [{"label": "Fx", "text": "a"}]}, "never given"),
    ],
)
def test_damaged_data_is_refused(change, problem):
    with pytest.raises(StoreError, match=rf"damaged \(.*{problem}.*begin a new one"):
        LedgerMemory.load({**keep_three().dump(), **change})
    for data in ({}, {"budget": 3}, ["no", "ledger"]):
        with pytest.raises(StoreError, match="damaged"):
            LedgerMemory.load(data)
