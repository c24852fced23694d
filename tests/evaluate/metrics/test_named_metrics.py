import pytest

from tomewise.errors import UnknownName
from tomewise.evaluate.items import Dataset, Item, Outcome, Prediction, RankedPassage, Span
from tomewise.evaluate.metrics import choose_metrics, find_metric, list_metrics
from tomewise.types import Question

FREE = Item(
    id="1",
    question=Question(text="Where?"),
    answers=("The Hague",),
    supporting=("d1", "d2"),
    spans=(Span(document="d1", start=0, end=10),),
)
PASSAGES = tuple(RankedPassage(id=f"p{n}", document=f"d{n}", start=0, end=5) for n in (3, 1, 2))
PREDICTION = Prediction(answer="hague city", ranked=PASSAGES)


def claim(pair: int, correct: str) -> Item:
    question = Question(text="So?", options=("True", "False"))
    return Item(id=f"{pair}{correct}", question=question, answers=("x",), correct=correct, slices={"pair": pair})


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("em", 0.0),
        ("f1", 2 / 3),
        ("substring-em", 1.0),
        ("helmet-f1", 2 / 3),
        ("rouge-1", 0.5),
        ("rouge-2", 0.0),
        ("rouge-l", 0.5),
        ("recall@2", 0.5),
        ("recall", 1.0),
        ("all@2", 0.0),
        ("all@3", 1.0),
        ("mrr", 0.5),
        ("mrr@1", 0.0),
        ("ndcg@10", 0.693426),
        ("span-recall@2", 1.0),
        ("span-all@1", 0.0),
        ("span-mrr", 0.5),
        ("span-ndcg@2", 0.63093),
        ("span-coverage@5", 0.5),
    ],
)
def test_a_metric_scores_one_outcome(name: str, expected: float) -> None:
    metric = find_metric(name)
    assert metric.name == name
    assert metric.applies(FREE)
    assert metric.score(Outcome(FREE, PREDICTION)) == pytest.approx(expected, abs=1e-5)


def test_every_name_is_a_metric_and_a_failed_question_scores_0() -> None:
    odd = Item(
        id="9", question=Question(text="?", options=("a", "b")), answers=("the",), correct="A", slices={"pair": 1}
    )
    for name in list_metrics():
        metric = find_metric(name.replace("@K", "@3"))
        assert metric.score(Outcome(FREE, Prediction())) == 0.0
        assert metric.score(Outcome(odd, Prediction())) == 0.0


def test_totals_leave_out_items_without_the_gold_and_nothing_else() -> None:
    bare = Item(id="2", question=Question(text="Why?"))
    outcomes = [Outcome(FREE, PREDICTION), Outcome(FREE, Prediction()), Outcome(bare, PREDICTION)]
    assert find_metric("recall@2").total(outcomes) == pytest.approx(0.25)
    assert find_metric("accuracy").total(outcomes) is None
    assert find_metric("pair-accuracy").total(outcomes) is None


def test_metrics_of_a_whole_run() -> None:
    choices = [(claim(1, "A"), "A"), (claim(1, "B"), "B"), (claim(2, "A"), "A"), (claim(2, "B"), "A")]
    outcomes = [Outcome(item, Prediction(choice=choice)) for item, choice in choices]
    assert find_metric("accuracy").total(outcomes) == 0.75
    assert find_metric("pair-accuracy").total(outcomes) == 0.5
    assert find_metric("f1-positive").total(outcomes) == pytest.approx(0.8)
    assert find_metric("f1-negative").total(outcomes) == pytest.approx(2 / 3)
    assert find_metric("f1-negative").score(outcomes[3]) == 0.0


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("recal@5", "did you mean 'recall'"),
        ("rougel", "did you mean 'rouge-l'"),
        ("F1", "did you mean 'f1'"),
        ("em@5", "takes no depth"),
        ("recall@0", "not a whole number above 0"),
        ("ndcg@ten", "not a whole number above 0"),
        ("recall@", "not a whole number above 0"),
        ("xyzzy", "The metrics are em, f1"),
    ],
)
def test_an_unknown_name_gets_the_nearest(name: str, says: str) -> None:
    with pytest.raises(UnknownName) as caught:
        find_metric(name)
    assert says in str(caught.value)
    assert repr(name) in str(caught.value)


def defaults(*items: Item) -> list[str]:
    return [metric.name for metric in choose_metrics(Dataset(name="d", documents=(), items=items))]


def test_default_metrics_are_what_the_gold_allows() -> None:
    assert defaults(FREE)[:3] == ["em", "f1", "recall@2"]
    assert "span-recall@5" in defaults(FREE)
    summary = Item(id="3", question=Question(text="?"), answers=("word " * 40,))
    assert defaults(summary) == ["rouge-1", "rouge-2", "rouge-l"]
    choice = Item(id="4", question=Question(text="?", options=("x", "y", "z")), answers=("x",), correct="A")
    assert defaults(choice) == ["accuracy"]
    assert defaults(claim(1, "A")) == ["accuracy", "f1-positive", "f1-negative", "pair-accuracy"]
    assert defaults(Item(id="5", question=Question(text="?"))) == []
