"""The ledger keeps its budget, whatever is written into it, and outlives its question without what belongs to that."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tomewise.errors import StoreError, UsageError
from tomewise.working.ledger import (
    Inference,
    Ledger,
    LedgerFact,
    LedgerMemory,
    add_facts,
    add_inferences,
    dump,
    forget_oldest,
    forget_unused,
    infer_from,
    load,
)

TEXTS = st.text(st.sampled_from("ab é潮.\n"), max_size=40)
PASSAGES = st.sampled_from(["", "p1", "p2", "p3"])
FACTS = st.builds(LedgerFact, label=st.just(""), text=TEXTS, passage=PASSAGES, quote=TEXTS, in_text=st.booleans())


def count(texts):
    """A token for each two characters of a word, the last one rounded up."""
    return [sum((len(word) + 1) // 2 for word in text.split()) for text in texts]


def fact(text, passage="p1", quote=""):
    return LedgerFact(label="", text=text, passage=passage, quote=quote, in_text=bool(quote))


def list_texts(entries):
    return [entry.text for entry in entries]


def write(budget, *facts, **fields):
    """A ledger of these facts, limited."""
    return forget_unused(add_facts(Ledger(**fields), facts, count), budget, count)


def infer(ledger, text, *labels):
    return add_inferences(ledger, [infer_from(ledger, text, labels)], count)


@pytest.mark.parametrize(
    ("budget", "facts", "fields", "kept"),
    [
        pytest.param(4, "one two six", {}, ["two", "six"], id="the oldest go first"),
        pytest.param(4, "Ada rain hail snow", {"questions": ("Who is Ada?",)}, ["Ada", "snow"], id="what is asked"),
        pytest.param(4, "Ada rain hail snow", {"nets": ("Ada?",)}, ["Ada", "snow"], id="what is looked for"),
        pytest.param(4, "Ada rain hail snow", {"settled": ("ADA",)}, ["Ada", "snow"], id="what is settled"),
        pytest.param(
            8,
            "Ada_rain Ada_hail Ada_snow Ada_wind",
            {"questions": ("Where was Ada?",)},
            ["Ada snow", "Ada wind"],
            id="a word that many facts have tells nothing",
        ),
    ],
)
def test_of_facts_that_nothing_rests_on_those_stay_that_a_question_concerns_then_the_newest(
    budget, facts, fields, kept
):
    ledger = write(budget, *(fact(text.replace("_", " ")) for text in facts.split()), **fields)
    assert list_texts(ledger.facts) == kept
    asked = forget_unused(write(None, *map(fact, ("Ada", "rain", "hail", "snow"))), 4, count, asked="What of Ada?")
    assert [(each.label, each.text) for each in asked.facts] == [("F1", "Ada"), ("F4", "snow")]


def test_the_grounds_of_inferences_stay_longest_and_these_have_half_of_the_budget():
    ledger = infer(write(None, *map(fact, ("rain", "hail", "Eve", "snow")), questions=("Who is Eve?",)), "so", "F1")
    assert list_texts(forget_unused(ledger, 4, count).facts) == ["rain", "Eve"]
    assert list_texts(forget_unused(ledger, 2, count).facts) == ["rain"]
    assert forget_unused(ledger, None, count) == ledger, "without a budget nothing is forgotten"
    for text in ("or", "if"):
        ledger = infer(ledger, text, "F1")
    assert list_texts(forget_unused(ledger, 4, count).inferences) == ["or", "if"]


@pytest.mark.parametrize(
    ("budget", "given_fact", "kept"),
    [
        (3, fact("aa bb cc dd ee ff gg", quote="xx yy"), ("aa bb cc", "xx yy", 3)),
        (1, fact("aa bb", quote="aa bb"), ("aa", "aa", 1)),  # a quotation that is cut still stands in the text
    ],
)
def test_a_fact_larger_than_the_budget_is_cut_and_not_dropped(budget, given_fact, kept):
    ledger = add_facts(Ledger(), [given_fact], count)
    for limited in (forget_unused(ledger, budget, count), forget_oldest(ledger, budget, count)):
        (cut,) = limited.facts
        assert (cut.text, cut.quote, cut.tokens) == kept
    assert len(write(4, fact("aa bb", quote="xx yy zz"), fact("cc dd")).facts) == 2, "roles are shown the text alone"


@given(st.integers(1, 9), st.lists(st.sampled_from(["a", "b b", "c c c", "d d d d"]), max_size=8))
def test_first_in_is_first_out(budget, texts):
    facts = [fact(f"{text} {number}") for number, text in enumerate(texts)]
    ledger = forget_oldest(add_facts(Ledger(), facts, count), budget, count)
    sizes = [min(budget, each) for each in count([each.text for each in facts])]
    fitting = [start for start in range(len(sizes) + 1) if sum(sizes[start:]) <= budget]
    assert [each.label for each in ledger.facts] == [f"F{n + 1}" for n in range(min(fitting), len(sizes))]


def test_an_inference_survives_the_facts_it_rests_on():
    ledger = infer(write(None, fact("aa", quote="q"), fact("bb")), "so", "F1", "F2", "F9")
    ledger = replace(ledger, facts=())
    assert list_texts(ledger.inferences[0].grounds) == ["aa", "bb"]
    again = infer(ledger, "then", ledger.inferences[0].label).inferences[1]
    assert list_texts(again.grounds) == ["aa", "bb"], "what rests on an inference rests on its facts"
    assert infer_from(Ledger(), "so", ["F1"]) == Inference(label="", text="so"), "it may rest on nothing"


def test_what_is_known_is_not_added_again():
    ledger = write(None, fact("aa"), fact("aa"), fact("aa", "p2"), fact(" "))
    assert [(each.text, each.passage) for each in ledger.facts] == [("aa", "p1"), ("aa", "p2")]
    assert add_facts(ledger, [fact("aa")], count) == ledger
    ledger = infer(infer(ledger, "so"), "so")
    assert list_texts(ledger.inferences) == ["so"]
    assert add_inferences(ledger, ledger.inferences, count) == ledger


def test_budgets_and_data_that_cannot_be_are_refused():
    for budget in (0, -3):
        for forget in (forget_oldest, forget_unused):
            with pytest.raises(UsageError, match=str(budget)):
                forget(Ledger(), budget, count)
    for data in ({}, {"budget": 3}, {**dump(Ledger()), "facts": [{"no": 1}]}):
        with pytest.raises(UsageError, match="dump"):
            load(data)


@given(st.integers(1, 20) | st.none(), st.lists(st.lists(FACTS, max_size=4), max_size=4), st.lists(TEXTS, max_size=5))
def test_the_budget_is_always_kept_and_nothing_is_lost_on_the_way_to_a_file(budget, rounds, names):
    ledger = Ledger(questions=tuple(names), nets=tuple(names[1:]))
    for number, facts in enumerate(rounds):
        ledger = add_facts(ledger, facts, count)
        inferences = [infer_from(ledger, text, [each.label for each in ledger.facts]) for text in names[number:]]
        ledger = forget_unused(add_inferences(ledger, inferences, count), budget, count)
        for entries, most in ((ledger.facts, budget), (ledger.inferences, budget and max(1, budget // 2))):
            assert most is None or sum(each.tokens for each in entries) <= most
            assert len({each.label for each in entries}) == len(entries)
        assert all(each.tokens == count([each.text])[0] for each in ledger.inferences)
        assert not any(each.text.strip() for each in facts) or ledger.facts, "a fact is cut, not dropped"
    ledger = replace(ledger, answer="so")
    assert load(json.loads(json.dumps(dump(ledger)))) == ledger


# ---------------------------------------------------------------- beyond its question


def keep_rounds(*rounds):
    """A memory of rounds, each of facts, and the numbers of the entries that an inference of this round rests on."""
    ledger = Ledger(questions=("Who?",), answer="Ada")
    for number, (facts, grounds) in enumerate(rounds):
        ledger = add_facts(ledger, facts, count)
        inference = infer_from(ledger, f"so {number}", [f"{letter}{each}" for each in grounds for letter in "FI"])
        ledger = add_inferences(ledger, [inference] if inference.grounds else [], count)
    memory = LedgerMemory()
    memory.keep(ledger)
    return memory


def keep_three(first=(1, 2), second=(4,), passage="p2"):
    facts = [fact("one", "p1", "one"), fact("two", passage, "two")]
    return keep_rounds((facts, first), ([fact("six", "p3", "six")], second))


def test_facts_and_inferences_stay_and_questions_and_answer_go():
    memory = keep_three()
    assert memory.notes == ("one", "two", "so 0", "six", "so 1")
    assert (memory.ledger.questions, memory.ledger.answer, memory.kind) == ((), "", "ledger")
    assert memory.find_nodes() == {"p1", "p2", "p3"}
    memory = keep_three((1, 2), (3, 4), "")
    assert memory.notes == ("one", "six"), "what nobody could forget does not outlive its question"
    assert memory.ledger.made == 5, "no label is given twice"


def test_what_rests_on_a_removed_passage_goes_also_where_it_rests_on_others_or_has_no_room_for_them():
    memory = keep_three((1, 2), (2,))
    assert memory.forget(["p1", "p9"]) == ("one", "so 0")
    assert memory.notes == ("two", "six", "so 1")
    assert memory.find_nodes() == {"p2", "p3"}
    memory = keep_rounds(([fact(f"fact {number}", f"p{number}") for number in range(12)], list(range(1, 13))))
    assert len(memory.ledger.inferences[0].grounds) == 8
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
        ({"facts": None}, "facts"),
        ({"made": 1}, "never given"),
        ({"facts": [{"label": "F1", "text": "a"}, {"label": "F1", "text": "b"}]}, "the same label"),
        ({"facts": [{"label": "X1", "text": "a"}]}, "another kind"),
        ({"facts": [{"label": "Fx", "text": "a"}]}, "never given"),
    ],
)
def test_damaged_data_is_refused(change, problem):
    with pytest.raises(StoreError, match=rf"damaged \(.*{problem}.*begin a new one"):
        LedgerMemory.load({**keep_three().dump(), **change})
    with pytest.raises(StoreError, match="damaged"):
        LedgerMemory.load(["no", "ledger"])
