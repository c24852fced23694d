"""Judge answers by the words they share with the reference. A strict substitute for a model's judgement."""

from __future__ import annotations

import re
from collections import Counter

from tomewise.language.extractive.salience import likeness
from tomewise.language.roles import (
    LEVEL_BAND,
    JudgeIn,
    Level,
    LevelIn,
    LevelOut,
    StatementsOut,
    VerdictOut,
)
from tomewise.text.sentences import split_sentences
from tomewise.text.words import WORD, flatten, list_terms, make_bag

SAME = 0.6  # token F1 from which two answers count as the same
CONTAINED = 0.75  # share of the reference's tokens in the prediction from which the prediction counts as correct
ALIKE = 0.4  # cosine of the term sets from which two statements count as one
_ARTICLES = frozenset({"a", "an", "the"})
_DENIAL = re.compile(
    r"\b(?:no|not|never|none|nobody|nothing|neither|nor|cannot|without|false)\b|n['’]t\b", re.IGNORECASE
)
_READ = 40_000


def measure_overlap(reference: str, prediction: str) -> tuple[float, float]:
    """Token F1, and the share of the reference's tokens that the prediction holds."""
    left, right = Counter(_list_tokens(reference)), Counter(_list_tokens(prediction))
    shared = sum((left & right).values())
    if not shared:
        return 0.0, 0.0
    return 2 * shared / (left.total() + right.total()), shared / left.total()


def _list_tokens(text: str) -> list[str]:
    return [word for word in (word.lower() for word in WORD.findall(text[:_READ])) if word not in _ARTICLES]


def judge_correct(given: JudgeIn) -> VerdictOut:
    """Correct if token F1 is 0.6 or more, or the prediction has 3/4 of the reference's tokens.

    Not correct if only one of the two is negated, unless token F1 is 0.9 or more.
    """
    return _judge(given.reference, given.prediction, CONTAINED)


def _judge(reference: str, prediction: str, contained: float) -> VerdictOut:
    f1, recall = measure_overlap(reference, prediction)
    one_is_negated = bool(_DENIAL.search(reference[:_READ])) != bool(_DENIAL.search(prediction[:_READ]))
    # If only one side is negated, many shared words prove little, unless both sides are almost equal.
    correct = (f1 >= SAME or recall >= contained) and not (one_is_negated and f1 < 0.9)
    same = flatten(reference).casefold() == flatten(prediction).casefold() != ""
    reason = f"token F1 {f1:.2f} (needs {SAME}), share of the reference's tokens {recall:.2f} (needs {contained})"
    return VerdictOut(
        correct=correct or same, explanation=f"{reason}, only one is negated" if one_is_negated else reason
    )


def judge_entailed(given: JudgeIn) -> VerdictOut:
    """Entailed if token F1 is 0.6 or more, or the prediction has all tokens of the reference."""
    return _judge(given.reference, given.prediction, 0.999)


def judge_level(given: LevelIn) -> LevelOut:
    """Comprehensiveness: the share of the reference's terms in the prediction. Diversity: its mean with the share of
    different terms in the prediction.
    """
    reference, prediction = set(list_terms(given.reference[:_READ])), list_terms(given.prediction[:_READ])
    covered = len(reference & set(prediction)) / len(reference) if reference else 0.0
    quality = covered
    if given.quality == "diversity":
        varied = len(set(prediction)) / len(prediction) if prediction else 0.0
        quality = (covered + varied * min(1.0, len(set(prediction)) / max(len(reference), 1))) / 2
    score = round(100 * quality, 1)
    levels: list[Level] = ["very low", "low", "medium", "high", "very high"]
    level = levels[min(int(score // 20), 4)]
    low, high = LEVEL_BAND[level]
    return LevelOut(
        level=level, score=min(max(score, low), high), explanation=f"covers {covered:.2f} of the reference's terms"
    )


def judge_statements(given: JudgeIn) -> StatementsOut:
    """The sentences of both sides; two sentences match if their terms have a cosine of 0.4 or more."""
    stated = [flatten(sentence.text) for sentence in split_sentences(given.prediction, limit=_READ)][:200]
    wanted = [flatten(sentence.text) for sentence in split_sentences(given.reference, limit=_READ)][:200]
    bags = {text: make_bag(text) or frozenset({text.casefold()}) for text in [*stated, *wanted]}
    matched: set[int] = set()
    supported = []
    for text in stated:
        cosines = [likeness(bags[text], bags[reference]) for reference in wanted]
        matches = [i for i, value in enumerate(cosines) if value >= ALIKE]
        matched.update(matches)
        if matches:
            supported.append(text)
    return StatementsOut(
        supported=supported,
        unsupported=[text for text in stated if text not in supported],
        missing=[text for i, text in enumerate(wanted) if i not in matched],
    )
