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
    limit_ledger,
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


def write(budget, *facts, **fields):
    """A ledger of these facts, limited."""
    return limit_ledger(add_facts(Ledger(**fields), facts, count), budget, count)


def test_of_facts_that_nothing_needs_the_oldest_go_first():
    ledger = write(4, fact("one"), fact("two"), fact("six"))
    assert texts(ledger.facts) == ["two", "six"]
    assert [each.label for each in ledger.facts] == ["F2", "F3"]


@pytest.mark.parametrize("fields", [{"questions": ("Who is Ada?",)}, {"nets": ("Ada?",)}, {"settled": ("ADA",)}])
def test_what_a_question_concerns_stays_longer_than_what_is_newer(fields):
    facts = [fact(text) for text in ("Ada", "rain", "hail", "snow")]
    assert texts(write(4, *facts, **fields).facts) == ["Ada", "snow"]
    asked = limit_ledger(add_facts(Ledger(), facts, count), 4, count, asked="What of Ada?")
    assert texts(asked.facts) == ["Ada", "snow"]


def test_a_word_that_many_facts_have_does_not_tell_what_a_question_concerns():
    facts = [fact(f"Ada {word}") for word in ("rain", "hail", "snow", "wind")]
    assert texts(write(8, *facts, questions=("Where was Ada?",)).facts) == ["Ada snow", "Ada wind"]


def test_the_grounds_of_inferences_stay_longest():
    ledger = add_facts(
        Ledger(questions=("Who is Eve?",)), [fact(text) for text in ("rain", "hail", "Eve", "snow")], count
    )
    ledger = add_inferences(ledger, [infer_from(ledger, "so", ["F1"])], count)
    assert texts(limit_ledger(ledger, 4, count).facts) == ["rain", "Eve"]
    assert texts(limit_ledger(ledger, 2, count).facts) == ["rain"]


def test_inferences_have_half_of_the_budget_and_the_oldest_go_first():
    ledger = add_facts(Ledger(), [fact("one"), fact("two")], count)
    drawn = [infer_from(ledger, text, ["F1"]) for text in ("so", "or", "if")]
    assert texts(limit_ledger(add_inferences(ledger, drawn, count), 4, count).inferences) == ["or", "if"]


def test_a_fact_larger_than_the_budget_is_cut_and_not_dropped():
    (kept,) = write(5, fact("aa bb cc dd ee ff gg", quote="xx yy")).facts
    assert (kept.text, kept.quote, kept.is_cut, kept.tokens) == ("aa bb cc", "xx yy", True, 5)
    (kept,) = write(3, fact("aa bb", quote="xx yy zz")).facts
    assert (kept.text, kept.quote, kept.is_cut) == ("aa", "xx yy", True)
    assert kept.in_text
    (kept,) = write(1, fact("aa bb", quote="xx yy zz")).facts
    assert (kept.text, kept.quote, kept.in_text) == ("aa", "", False)


def test_a_quote_that_is_the_fact_itself_counts_once():
    assert len(write(4, fact("aa bb", quote="aa bb"), fact("cc dd", quote="cc dd")).facts) == 2
    (cut,) = write(1, fact("aa bb", quote="aa bb")).facts
    assert (cut.text, cut.quote, cut.tokens) == ("aa", "aa", 1)


def test_an_inference_survives_the_facts_it_rests_on():
    ledger = add_facts(Ledger(), [fact("aa", quote="q"), fact("bb")], count)
    ledger = add_inferences(ledger, [infer_from(ledger, "so", ["F1", "F2", "F9"])], count)
    ledger = replace(ledger, facts=())
    assert [each.text for each in ledger.inferences[0].grounds] == ["aa", "bb"]
    (again,) = add_inferences(ledger, [infer_from(ledger, "then", [ledger.inferences[0].label])], count).inferences[1:]
    assert texts(again.grounds) == ["aa", "bb"], "what rests on an inference rests on its facts"


def test_what_is_known_is_not_added_again():
    ledger = add_facts(Ledger(), [fact("aa"), fact("aa"), fact("aa", "p2"), fact(" ")], count)
    assert [(each.text, each.passage) for each in ledger.facts] == [("aa", "p1"), ("aa", "p2")]
    assert add_facts(ledger, [fact("aa")], count) == ledger
    ledger = add_inferences(ledger, [infer_from(ledger, "so", []), infer_from(ledger, "so", [])], count)
    assert add_inferences(ledger, ledger.inferences, count) == ledger


def test_a_ledger_without_a_budget_forgets_nothing():
    ledger = add_facts(Ledger(), [fact("aa bb cc"), fact("dd ee")], count)
    assert limit_ledger(ledger, None, count) == ledger
    assert texts(limit_ledger(ledger, 2, count).facts) == ["dd ee"]


@pytest.mark.parametrize("budget", [0, -3])
def test_a_budget_that_holds_nothing_is_refused(budget):
    with pytest.raises(UsageError, match=str(budget)):
        limit_ledger(Ledger(), budget, count)


@pytest.mark.parametrize("data", [{}, {"budget": 3}, {**dump(Ledger()), "facts": [{"no": 1}]}])
def test_other_data_is_not_a_ledger(data):
    with pytest.raises(UsageError, match="dump"):
        load(data)


@given(st.integers(1, 20) | st.none(), st.lists(st.lists(FACTS, max_size=4), max_size=4), st.lists(TEXTS, max_size=5))
def test_the_budget_is_always_kept_and_nothing_is_lost_on_the_way_to_a_file(budget, rounds, names):
    ledger = Ledger(questions=tuple(names), nets=tuple(names[1:]))
    for number, facts in enumerate(rounds):
        ledger = add_facts(ledger, facts, count)
        inferences = [infer_from(ledger, text, [each.label for each in ledger.facts]) for text in names[number:]]
        ledger = limit_ledger(add_inferences(ledger, inferences, count), budget, count)
        for entries, most in ((ledger.facts, budget), (ledger.inferences, budget and max(1, budget // 2))):
            assert most is None or sum(each.tokens for each in entries) <= most
            assert len({each.label for each in entries}) == len(entries)
        assert all(each.tokens == count([each.text])[0] for each in ledger.inferences)
        assert not any(each.text.strip() for each in facts) or ledger.facts, "a fact is cut, not dropped"
    ledger = replace(ledger, answer="so")
    assert load(json.loads(json.dumps(dump(ledger)))) == ledger


def test_an_inference_without_facts_may_stand():
    assert infer_from(Ledger(), "so", ["F1"]) == Inference(label="", text="so")
