import sys

import pytest
from rouge_score.rouge_scorer import RougeScorer

from tomewise.errors import MissingDependency
from tomewise.evaluate.metrics.answers import _make_scorer, rouge

ANSWER = "The police killed the gunman after long talks."
REFERENCES = ["The gunman was killed by police.", "Police kill a gunman after talking."]


@pytest.mark.parametrize("kind", ["rouge1", "rouge2", "rougeL"])
def test_the_maximum_over_references_of_the_package(kind: str) -> None:
    reference = RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=True)
    expected = max(reference.score(text, ANSWER)[kind].fmeasure for text in REFERENCES)
    assert rouge(ANSWER, REFERENCES, kind) == pytest.approx(expected)
    assert expected > 0


def test_by_hand() -> None:
    # Lin's example: the longest common subsequence of 4 words each is "police the gunman" of 3
    assert rouge("police kill the gunman", ["police killed the gunman"], "rougeL") == 1.0  # stemmed
    assert rouge("police end the gunman", ["police killed the gunman"], "rougeL") == pytest.approx(0.75)
    assert rouge("police end the gunman", ["police killed the gunman"], "rouge2") == pytest.approx(1 / 3)
    assert rouge("", REFERENCES, "rouge1") == 0.0
    assert rouge(ANSWER, [], "rouge1") == 0.0


def test_a_missing_package_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    _make_scorer.cache_clear()
    monkeypatch.setitem(sys.modules, "rouge_score.rouge_scorer", None)
    with pytest.raises(MissingDependency, match=r"pip install 'tomewise\[eval\]'"):
        rouge("a", ["a"], "rouge1")
