"""Short answers against reference answers: exact match and token F1, and the variants of HELMET.

All take the maximum over the references and give 0.0 without references.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_CLOSED = frozenset({"yes", "no", "noanswer"})


def normalise(text: str) -> str:
    """Lower case, without ASCII punctuation and English articles, words one space apart.

    Source: Rajpurkar et al. 2016 (SQuAD), section 6.1, in that order of steps.
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def exact_match(answer: str, references: Sequence[str]) -> float:
    """1.0 when the answer equals a reference after normalisation (SQuAD, section 6.1)."""
    return float(any(normalise(answer) == normalise(reference) for reference in references))


def token_f1(answer: str, references: Sequence[str]) -> float:
    """Harmonic mean of precision and recall of the bag of normalised words (SQuAD, section 6.1).

    Where one side has no words left, equality decides, as in SQuAD 2.0 (Rajpurkar et al. 2018).
    """
    return max((_f1(normalise(answer).split(), normalise(reference).split()) for reference in references), default=0.0)


def substring_match(answer: str, references: Sequence[str]) -> float:
    """1.0 when the answer contains a reference, both normalised (HELMET, Yen et al. 2025).

    No answer contains a reference that normalises to nothing.
    """
    text = normalise(answer)
    return float(any(wanted and wanted in text for wanted in map(normalise, references)))


def helmet_f1(answer: str, references: Sequence[str]) -> float:
    """Token F1, but 0 where one side is yes, no or noanswer and the other side differs.

    Source: HELMET's scorer (Yen et al. 2025), which took the rule from HotpotQA (Yang et al. 2018).
    """
    return max((_compute_closed_f1(normalise(answer), normalise(reference)) for reference in references), default=0.0)


def _compute_closed_f1(answer: str, wanted: str) -> float:
    if answer != wanted and (answer in _CLOSED or wanted in _CLOSED):
        return 0.0
    return _f1(answer.split(), wanted.split())


def _f1(words: list[str], wanted: list[str]) -> float:
    if not words or not wanted:
        return float(words == wanted)
    shared = (Counter(words) & Counter(wanted)).total()
    return 2 * shared / (len(words) + len(wanted))
