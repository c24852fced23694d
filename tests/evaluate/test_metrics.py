"""Metrics against cases by hand and slow definitions, and the names that they have."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from math import log2

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tomewise.errors import MissingDependency, UnknownName
from tomewise.evaluate.items import Dataset, Item, Outcome, Prediction, RankedPassage, Span
from tomewise.evaluate.metrics import choose_metrics, find_metric, list_metrics
from tomewise.evaluate.metrics.answers import find_letter, pick_letter, rouge
from tomewise.types import Question

Place = tuple[str, int, int]


def score(name: str, outcome: Outcome) -> float:
    return find_metric(name).score(outcome)


def answer(text: str, *references: str) -> Outcome:
    """An answer to a question with these references."""
    return Outcome(Item(id="q", question=Question(text="?"), answers=references), Prediction(answer=text))


def rank(documents: str, gold: str) -> Outcome:
    """A ranking of documents with names of one letter."""
    item = Item(id="q", question=Question(text="?"), supporting=tuple(gold))
    return Outcome(item, Prediction(ranked=make_passages(*((name, 0, 5) for name in documents))))


def find(places: Sequence[Place], gold: Sequence[Place]) -> Outcome:
    """A ranking of passages, and the spans that are looked for."""
    spans = tuple(Span(document=document, start=start, end=end) for document, start, end in gold)
    return Outcome(Item(id="q", question=Question(text="?"), spans=spans), Prediction(ranked=make_passages(*places)))


def make_passages(*places: Place) -> tuple[RankedPassage, ...]:
    return tuple(RankedPassage(id=f"{name}{start}", document=name, start=start, end=end) for name, start, end in places)


def make_claim(pair: int, correct: str, options: tuple[str, ...] = ("True", "False")) -> Item:
    question = Question(text="So?", options=options)
    return Item(id=f"{pair}{correct}", question=question, answers=("x",), correct=correct, slices={"pair": pair})


ANSWER = "The police killed the gunman after long talks."
REFERENCES = ("The gunman was killed by police.", "Police kill a gunman after talking.")
LIN = "police killed the gunman"
FOUND = (("m", 0, 10), ("n", 40, 60), ("m", 20, 30), ("m", 30, 40))
GOLD = (("m", 25, 35), ("m", 5, 6), ("m", 100, 110))
BY_HAND = [
    ("em", answer("The Dodgers.", "Giants", "dodgers"), 1),  # any reference
    ("em", answer("Los Angeles Dodgers", "Dodgers"), 0),
    ("em", answer("A man,  a plan", "man plan"), 1),
    ("em", answer("U.S.A.", "usa"), 1),  # punctuation goes before the words are split
    ("em", answer("Theatre", "atre"), 0),
    ("f1", answer("the cat sat mat", "a cat sat"), 0.8),  # 2 of 3 words, 2 of 2 wanted: precision 2/3, recall 1
    ("f1", answer("no no", "no"), 2 / 3),  # a repeated word counts as often as both have it
    ("f1", answer("", "blue"), 0),
    ("f1", answer("blue"), 0),
    ("f1", answer("the", "a"), 1),
    ("substring-em", answer("It was in Paris, France.", "paris"), 1),
    ("substring-em", answer("Paris", "Paris, France"), 0),
    ("helmet-f1", answer("yes", "yes"), 1),  # 0 where only one side is closed
    ("helmet-f1", answer("yes", "yes it is"), 0),
    ("helmet-f1", answer("red car", "car"), 2 / 3),
    # Lin's example: the longest common subsequence of 4 words each is "police the gunman" of 3
    ("rouge-l", answer("police kill the gunman", LIN), 1),  # stemmed
    ("rouge-l", answer("police end the gunman", LIN), 0.75),
    ("rouge-2", answer("police end the gunman", LIN), 1 / 3),
    ("rouge-1", answer("", *REFERENCES), 0),
    ("recall@2", rank("abcd", "bdx"), 1 / 3),
    ("recall@4", rank("abcd", "bdx"), 2 / 3),
    ("recall", rank("abcd", "bd"), 1),
    ("all@3", rank("abcd", "ac"), 1),
    ("all@2", rank("abcd", "ac"), 0),
    ("mrr", rank("abcd", "cd"), 1 / 3),
    ("mrr@2", rank("abcd", "c"), 0),
    ("ndcg@4", rank("abcd", "bdx"), (1 / log2(3) + 1 / log2(5)) / (1 + 1 / log2(3) + 1 / log2(4))),
    ("ndcg@2", rank("abcd", "abx"), 1),  # only two places: the ideal holds two
    ("ndcg", rank("abcd", ""), 0),
    ("ndcg@2", rank("aab", "ab"), 1),
    ("span-recall", find([("m", 0, 5)], [("m", 5, 9)]), 0),  # they touch and share nothing
    ("span-recall", find(FOUND, ()), 0),
    ("span-all@3", find(FOUND, GOLD[:2]), 1),
    ("span-all@2", find(FOUND, GOLD[:2]), 0),
    ("span-all", find(FOUND, ()), 0),
    ("span-mrr", find(FOUND, GOLD[:1]), 1 / 3),
    ("span-mrr@2", find(FOUND, GOLD[:1]), 0),
    # spans found at the places 3 and 1; the third is not found
    ("span-ndcg", find(FOUND, GOLD), (1 / log2(4) + 1) / (1 + 1 / log2(3) + 1 / log2(4))),
    ("span-ndcg", find(FOUND, [("m", 0, 3), ("m", 5, 8)]), 1),  # one passage finds two
    # gold: 10 + 1 + 10 characters; found: 5 (25 to 30) at place 3, 1 at place 1
    ("span-coverage@1", find(FOUND, GOLD), 1 / 21),
]


@pytest.mark.parametrize(("name", "outcome", "expected"), BY_HAND)
def test_scores_by_hand(name: str, outcome: Outcome, expected: float) -> None:
    assert find_metric(name).name == name
    assert score(name, outcome) == pytest.approx(expected)


def test_rouge_is_the_maximum_over_references_of_the_package() -> None:
    from rouge_score.rouge_scorer import RougeScorer

    reference = RougeScorer(["rouge1"], use_stemmer=True)
    expected = max(reference.score(text, ANSWER)["rouge1"].fmeasure for text in REFERENCES)
    assert score("rouge-1", answer(ANSWER, *REFERENCES)) == pytest.approx(expected)


def test_without_its_package_rouge_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rouge_score.rouge_scorer", None)
    with pytest.raises(MissingDependency, match=r"pip install 'tomewise\[eval\]'"):
        rouge("rouge3", "a", ["a"])  # of a kind that no test asked for before


OPTIONS = ("Paris", "Rome", "The city of Bonn", "Athens")
LETTERS = {
    "B": "B",
    "(C)": "C",
    "**D**": "D",
    "A) Paris, because ...": "A",
    "the City of Bonn.": "C",
    "After reading, my answer: (C)": "C",
    "A man went there, so the answer is D": "D",  # the first A is an article
    "Anne would go with C": "C",
    "It must be Athens in the end": "D",
    "Neither Paris nor Rome": None,  # two wordings and no letter
    "": None,
    "D'Artagnan prefers B": "B",
}


@pytest.mark.parametrize(("reply", "expected"), LETTERS.items())
def test_the_letter_of_a_reply_is_found(reply: str, expected: str | None) -> None:
    assert find_letter(reply, OPTIONS) == expected


def test_only_letters_of_options_count_and_a_choice_goes_before_the_reply() -> None:
    assert find_letter("C", OPTIONS[:2]) is None
    assert pick_letter("b", "A", OPTIONS) == "B"
    assert pick_letter("Z", "Athens", OPTIONS) == "D"
    assert pick_letter(None, "", OPTIONS) is None
    item = make_claim(1, "B", OPTIONS)
    predictions = Prediction(choice="B"), Prediction(answer="B. Rome"), Prediction(answer="no idea")
    assert [score("accuracy", Outcome(item, prediction)) for prediction in predictions] == [1.0, 1.0, 0.0]


def total(name: str, *claims: tuple[int, str, str | None]) -> float | None:
    """The metric over claims: each has a pair, its letter, and the letter of the reply."""
    return find_metric(name).total([Outcome(make_claim(pair, gold), Prediction(choice=c)) for pair, gold, c in claims])


def test_classes_and_pairs_of_claims_by_hand() -> None:
    claims = [(0, "A", "A"), (1, "A", "A"), (2, "A", None), (3, "B", "A"), (4, "B", "B")]
    # class A: 2 hits, 3 named, 3 met; class B: 1 hit, 1 named, 2 met
    assert total("f1-positive", *claims) == pytest.approx(2 / 3)
    assert total("f1-negative", *claims) == pytest.approx(2 / 3)
    assert total("pair-accuracy", *claims) is None
    assert total("f1-positive", (0, "B", "B")) == 0.0
    claims = [(1, "A", "A"), (1, "B", "B"), (2, "A", "A"), (2, "B", "A"), (3, "A", "A")]
    assert total("pair-accuracy", *claims) == 0.5
    assert total("accuracy", *claims) == 0.8
    assert total("pair-accuracy") is None
    assert score("f1-negative", Outcome(make_claim(2, "B"), Prediction(choice="A"))) == 0.0


documents = st.text("abcdefghi", max_size=8)


@settings(max_examples=40)
@given(documents, documents, st.integers(1, 6))
def test_rankings_stay_in_bounds_and_grow_with_depth(ranked: str, gold: str, k: int) -> None:
    outcome = rank(ranked, gold)
    for name in ("recall", "all", "mrr", "ndcg"):
        assert 0.0 <= score(f"{name}@{k}", outcome) <= 1.0
    assert score(f"recall@{k}", outcome) <= score(f"recall@{k + 1}", outcome)
    assert (score(f"all@{k}", outcome) == 1.0) == (score(f"recall@{k}", outcome) == 1.0)


places = st.tuples(st.sampled_from("mn"), st.integers(0, 30), st.integers(0, 12)).map(
    lambda place: (place[0], place[1], sum(place[1:]))
)


@settings(max_examples=60)
@given(st.lists(places, max_size=6), st.lists(places, max_size=5), st.integers(1, 7))
def test_coverage_and_recall_against_sets_of_characters(retrieved: list[Place], wanted: list[Place], k: int) -> None:
    outcome = find(retrieved, wanted)
    found = {(name, at) for name, start, end in retrieved[:k] for at in range(start, end)}
    sets = [{(name, at) for at in range(start, end)} for name, start, end in wanted]
    union = set().union(*sets)
    coverage = len(union & found) / len(union) if union else 0.0
    assert score(f"span-coverage@{k}", outcome) == pytest.approx(coverage)
    hits = sum(bool(characters & found) for characters in sets)
    assert score(f"span-recall@{k}", outcome) == pytest.approx(hits / len(wanted) if wanted else 0.0)
    assert 0.0 <= score(f"span-ndcg@{k}", outcome) <= 1.0


def test_every_name_is_a_metric_and_a_failed_question_scores_0() -> None:
    free = replace(find(FOUND, GOLD).item, answers=("The Hague",), supporting=("m",))
    odd = replace(make_claim(1, "A", ("a", "b")), answers=("the",))
    for name in list_metrics():
        for item in (free, odd):
            assert score(name.replace("@K", "@3"), Outcome(item, Prediction())) == 0.0


def test_totals_leave_out_items_without_the_gold_and_nothing_else() -> None:
    found, bare = rank("abc", "ad"), rank("abc", "")
    outcomes = [found, Outcome(found.item, Prediction()), bare]
    assert find_metric("recall@2").total(outcomes) == pytest.approx(0.25)
    assert find_metric("recall@2").applies(found.item)
    assert find_metric("accuracy").total(outcomes) is None
    assert find_metric("pair-accuracy").total(outcomes) is None


UNKNOWN = {
    "recal@5": "did you mean 'recall'",
    "F1": "did you mean 'f1'",
    "em@5": "takes no depth",
    "recall@0": "not a whole number above 0",
    "xyzzy": "The metrics are em, f1",
}


@pytest.mark.parametrize(("name", "says"), UNKNOWN.items())
def test_an_unknown_name_gets_the_nearest(name: str, says: str) -> None:
    with pytest.raises(UnknownName) as caught:
        find_metric(name)
    assert says in str(caught.value)
    assert repr(name) in str(caught.value)


def test_default_metrics_are_what_the_gold_allows() -> None:
    def list_defaults(item: Item) -> list[str]:
        return [metric.name for metric in choose_metrics(Dataset(name="d", documents=(), items=(item,)))]

    free = replace(find(FOUND, GOLD).item, answers=("The Hague",), supporting=("m",))
    assert list_defaults(free)[:3] == ["em", "f1", "recall@2"]
    assert "span-recall@5" in list_defaults(free)
    assert list_defaults(answer("", "word " * 40).item) == ["rouge-1", "rouge-2", "rouge-l"]
    assert list_defaults(replace(make_claim(4, "A", ("x", "y", "z")), slices={})) == ["accuracy"]
    assert list_defaults(make_claim(1, "A")) == ["accuracy", "f1-positive", "f1-negative", "pair-accuracy"]
    assert list_defaults(answer("").item) == []
