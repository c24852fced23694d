"""The ledger keeps its budget, whatever is written into it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tomewise.errors import UsageError
from tomewise.working.ledger import (
    Fact,
    Inference,
    Ledger,
    add_facts,
    add_inferences,
    dump,
    infer_from,
    limit_facts,
    load,
)

TEXTS = st.text(st.sampled_from("ab é潮.\n"), max_size=40)
FACTS = st.builds(Fact, label=st.just(""), text=TEXTS, passage=st.sampled_from(["", "p1", "p2"]), quote=TEXTS)


def count(texts):
    """A token for each two characters of a word, the last one rounded up."""
    return [sum((len(word) + 1) // 2 for word in text.split()) for text in texts]


def fact(text, passage="p1", quote=""):
    return Fact(label="", text=text, passage=passage, quote=quote, in_text=bool(quote))


def texts(entries):
    return [entry.text for entry in entries]


def test_the_oldest_facts_go_first():
    ledger = Ledger(budget=4)
    for text in ("one", "two", "six"):
        ledger = add_facts(ledger, [fact(text)], count)
    assert texts(ledger.facts) == ["two", "six"]
    assert [each.label for each in ledger.facts] == ["F2", "F3"]


def test_a_fact_larger_than_the_budget_is_cut_and_not_dropped():
    ledger = add_facts(Ledger(budget=5), [fact("aa bb cc dd ee ff gg", quote="xx yy")], count)
    (kept,) = ledger.facts
    assert (kept.text, kept.quote, kept.is_cut, kept.tokens) == ("aa bb cc dd ee", "", True, 5)
    ledger = add_facts(Ledger(budget=3), [fact("aa bb", quote="xx yy zz")], count)
    assert (ledger.facts[0].text, ledger.facts[0].quote, ledger.facts[0].is_cut) == ("aa bb", "xx", True)


def test_a_quote_that_is_the_fact_itself_counts_once():
    ledger = add_facts(Ledger(budget=4), [fact("aa bb", quote="aa bb"), fact("cc dd", quote="cc dd")], count)
    assert len(ledger.facts) == 2
    (cut,) = add_facts(Ledger(budget=1), [fact("aa bb", quote="aa bb")], count).facts
    assert (cut.text, cut.quote, cut.tokens) == ("aa", "aa", 1)


def test_an_inference_survives_the_facts_it_rests_on():
    ledger = add_facts(Ledger(budget=4), [fact("aa", quote="q"), fact("bb")], count)
    ledger = add_inferences(ledger, [infer_from(ledger, "so", ["F1", "F2", "F9"])], count)
    ledger = add_facts(ledger, [fact("cc dd ee ff")], count)
    assert texts(ledger.facts) == ["cc dd ee ff"]
    assert [each.text for each in ledger.inferences[0].grounds] == ["aa", "bb"]
    (again,) = add_inferences(ledger, [infer_from(ledger, "then", [ledger.inferences[0].label])], count).inferences[1:]
    assert texts(again.grounds) == ["aa", "bb"], "what rests on an inference rests on its facts"


def test_what_is_known_is_not_added_again():
    ledger = add_facts(Ledger(), [fact("aa"), fact("aa"), fact("aa", "p2"), fact(" ")], count)
    assert [(each.text, each.passage) for each in ledger.facts] == [("aa", "p1"), ("aa", "p2")]
    assert add_facts(ledger, [fact("aa")], count) == ledger
    ledger = add_inferences(ledger, [infer_from(ledger, "so", []), infer_from(ledger, "so", [])], count)
    assert add_inferences(ledger, ledger.inferences, count) == ledger


def test_a_ledger_without_a_budget_forgets_nothing_until_it_is_limited():
    ledger = add_facts(Ledger(), [fact("aa bb cc"), fact("dd ee")], count)
    assert len(ledger.facts) == 2
    assert texts(limit_facts(ledger, 2, count).facts) == ["dd ee"]


@pytest.mark.parametrize("budget", [0, -3])
def test_a_budget_that_holds_nothing_is_refused(budget):
    with pytest.raises(UsageError, match=str(budget)):
        Ledger(budget=budget)


@pytest.mark.parametrize("data", [{}, {"budget": 3}, {**dump(Ledger()), "facts": [{"no": 1}]}])
def test_other_data_is_not_a_ledger(data):
    with pytest.raises(UsageError, match="dump"):
        load(data)


@given(st.integers(1, 20) | st.none(), st.lists(st.lists(FACTS, max_size=4), max_size=4), st.lists(TEXTS, max_size=5))
def test_the_budget_is_always_kept_and_nothing_is_lost_on_the_way_to_a_file(budget, rounds, names):
    ledger = Ledger(budget=budget, questions=tuple(names))
    for number, facts in enumerate(rounds):
        ledger = add_facts(ledger, facts, count)
        inferences = [infer_from(ledger, text, [each.label for each in ledger.facts]) for text in names[number:]]
        ledger = add_inferences(ledger, inferences, count)
        for entries in (ledger.facts, ledger.inferences):
            assert budget is None or sum(each.tokens for each in entries) <= budget
            assert len({each.label for each in entries}) == len(entries)
        assert all(each.tokens == count([each.text])[0] for each in ledger.inferences)
        assert not any(each.text.strip() for each in facts) or ledger.facts, "a fact is cut, not dropped"
    ledger = replace(ledger, answer="so")
    assert load(json.loads(json.dumps(dump(ledger)))) == ledger


def test_an_inference_without_facts_may_stand():
    assert infer_from(Ledger(), "so", ["F1"]) == Inference(label="", text="so")
