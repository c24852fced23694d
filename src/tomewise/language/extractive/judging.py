"""Judge answers by the words they share with the reference. A strict substitute for a model's judgement."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from tomewise.language.extractive.salience import likeness
from tomewise.language.roles import LEVEL_BAND, JudgeIn, LevelIn, LevelOut, StatementsOut, VerdictOut
from tomewise.text.sentences import split_sentences
from tomewise.text.words import WORD, flatten, list_terms, make_bag

_SAME = 0.6  # token F1 from which two answers count as the same
_CONTAINED, _WHOLE = 0.75, 0.999  # share of the reference's tokens from which a prediction is correct, or entails it
_ALMOST_EQUAL = 0.9  # token F1 from which a denial in only one of two answers does not count
_ALIKE = 0.4  # cosine of the term sets from which two statements count as one
_ARTICLES = frozenset({"a", "an", "the"})
_DENIAL = re.compile(
    r"\b(?:no|not|never|none|nobody|nothing|neither|nor|cannot|without|false)\b|n['’]t\b", re.IGNORECASE
)
_READ, _STATEMENTS = 40_000, 200  # characters of an answer, and statements of one


def judge_correct(given: JudgeIn) -> VerdictOut:
    """Correct if token F1 is 0.6 or more, or the prediction has 3/4 of the reference's tokens.

    Not correct if only one of the two is negated, unless token F1 is 0.9 or more.
    """
    return _judge(given, _CONTAINED)


def judge_entailed(given: JudgeIn) -> VerdictOut:
    """Entailed if token F1 is 0.6 or more, or the prediction has all tokens of the reference."""
    return _judge(given, _WHOLE)


def _judge(given: JudgeIn, contained: float) -> VerdictOut:
    reference, prediction = given.reference[:_READ], given.prediction[:_READ]
    left, right = _count_tokens(reference), _count_tokens(prediction)
    shared = (left & right).total()
    f1, recall = (2 * shared / (left.total() + right.total()), shared / left.total()) if shared else (0.0, 0.0)
    # If only one side is negated, many shared words prove little, unless both sides are almost equal.
    one_is_negated = bool(_DENIAL.search(reference)) != bool(_DENIAL.search(prediction))
    correct = (f1 >= _SAME or recall >= contained) and not (one_is_negated and f1 < _ALMOST_EQUAL)
    same = flatten(given.reference).casefold() == flatten(given.prediction).casefold() != ""
    reason = f"token F1 {f1:.2f} (needs {_SAME}), share of the reference's tokens {recall:.2f} (needs {contained})"
    return VerdictOut(
        correct=correct or same, explanation=f"{reason}, only one is negated" if one_is_negated else reason
    )


def _count_tokens(text: str) -> Counter[str]:
    return Counter(word for word in map(str.lower, WORD.findall(text)) if word not in _ARTICLES)


def judge_level(given: LevelIn) -> LevelOut:
    """Comprehensiveness: the share of the reference's terms in the prediction. Diversity: its mean with the share of
    different terms in the prediction.
    """
    reference, prediction = set(list_terms(given.reference[:_READ])), list_terms(given.prediction[:_READ])
    different = set(prediction)
    quality = covered = len(reference & different) / max(len(reference), 1)
    if given.quality == "diversity":
        varied = len(different) / max(len(prediction), 1)
        quality = (covered + varied * min(1.0, len(different) / max(len(reference), 1))) / 2
    score = round(100 * quality, 1)
    level: Any = next(name for name, (_, highest) in LEVEL_BAND.items() if score <= highest)
    return LevelOut(level=level, score=score, explanation=f"covers {covered:.2f} of the reference's terms")


def judge_statements(given: JudgeIn) -> StatementsOut:
    """The sentences of both sides; two sentences match if their terms have a cosine of 0.4 or more."""
    stated, wanted = (
        {flatten(each.text): make_bag(each.text) for each in split_sentences(text, limit=_READ)[:_STATEMENTS]}
        for text in (given.prediction, given.reference)
    )
    alike = [
        (left, right)
        for left, bag in stated.items()
        for right, terms in wanted.items()
        if likeness(bag, terms) >= _ALIKE or left.casefold() == right.casefold()
    ]
    supported, matched = {left for left, _ in alike}, {right for _, right in alike}
    return StatementsOut(
        supported=[text for text in stated if text in supported],
        unsupported=[text for text in stated if text not in supported],
        missing=[text for text in wanted if text not in matched],
    )
