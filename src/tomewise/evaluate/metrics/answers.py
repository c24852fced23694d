"""Answers against gold: exact match, token F1 and ROUGE, the letter of a choice, the verdicts of claims.

Metrics of texts compare an answer with each of its references, and take the best.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
from functools import cache, wraps
from importlib import import_module
from string import ascii_uppercase, punctuation
from typing import Any

from tomewise.errors import MissingDependency
from tomewise.language.fences import get_letter

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", punctuation)
_CLOSED = frozenset({"yes", "no", "noanswer"})
_LEADING_WORDS = r"(?:answer is|answer|option is)\s*+:?\s*+[\"'(*]*+"


def normalise(text: str) -> str:
    """Lower case, without ASCII punctuation and English articles, words one space apart.

    Source: Rajpurkar et al. 2016 (SQuAD), section 6.1, in that order of steps.
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def _take_best(compare: Callable[[str, str], float]) -> Callable[[str, Sequence[str]], float]:
    """The comparison with all references: the highest score of an answer against one of them; 0.0 without any."""

    @wraps(compare)
    def score_best(answer: str, references: Sequence[str]) -> float:
        return max((compare(answer, reference) for reference in references), default=0.0)

    return score_best


@_take_best
def exact_match(answer: str, reference: str) -> float:
    """1.0 when the answer equals the reference after normalisation (SQuAD, section 6.1)."""
    return float(normalise(answer) == normalise(reference))


@_take_best
def token_f1(answer: str, reference: str) -> float:
    """Harmonic mean of precision and recall of the bag of normalised words (SQuAD, section 6.1).

    Where one side has no words left, equality decides, as in SQuAD 2.0 (Rajpurkar et al. 2018).
    """
    words, gold = normalise(answer).split(), normalise(reference).split()
    if not words or not gold:
        return float(words == gold)
    shared = (Counter(words) & Counter(gold)).total()
    return 2 * shared / (len(words) + len(gold))


@_take_best
def substring_match(answer: str, reference: str) -> float:
    """1.0 when the answer contains the reference, both normalised (HELMET, Yen et al. 2025).

    No answer contains a reference that normalises to nothing.
    """
    wanted = normalise(reference)
    return float(bool(wanted) and wanted in normalise(answer))


@_take_best
def helmet_f1(answer: str, reference: str) -> float:
    """Token F1, but 0 where one side is yes, no or noanswer and the other side differs.

    Source: HELMET's scorer (Yen et al. 2025), which took the rule from HotpotQA (Yang et al. 2018).
    """
    texts = {normalise(answer), normalise(reference)}
    return 0.0 if len(texts) > 1 and texts & _CLOSED else token_f1(answer, [reference])


def find_letter(reply: str, options: Sequence[str]) -> str | None:
    """The letter that a free reply means, or None.

    The first rule that finds a letter decides: the reply is the wording of an option; it begins with a letter; a letter
    follows "answer is", "answer:" or "option is"; it contains the wording of exactly one option; it contains a letter.

    Source: the parser of InfiniteBench (Zhang et al. 2024) for EN.MC. Deviations: only letters of options count; a
    letter must be a word by itself ("Anne" is not A); an A or I before a word in lower case is an article or a pronoun;
    a reply of one letter may be in lower case; the two rules about wordings are ours.
    """
    if not options:
        return None
    letters = ascii_uppercase[: len(options)]
    alone = rf"\b([{letters}])\b(?![’']\w)(?!(?<=\b[AI])\s+[a-z])"
    reply = reply.strip()
    reply = reply.upper() if len(reply.strip(punctuation)) == 1 else reply
    return (
        _find_wording(reply, options, whole=True)
        or _get_letter(re.match(rf"[\"'(*\[]*{alone}", reply))
        or _get_letter(re.search(rf"(?i:{_LEADING_WORDS}){alone}", reply))
        or _find_wording(reply, options, whole=False)
        or _get_letter(re.search(alone, reply))
    )


def pick_letter(choice: str | None, reply: str, options: Sequence[str]) -> str | None:
    """The letter of `choice` if it is one of the options, else the letter found in the reply, else None."""
    letters = ascii_uppercase[: len(options)]
    named = (choice or "").strip().rstrip(".)").upper()
    return named if len(named) == 1 and named in letters else find_letter(reply, options)


def _find_wording(reply: str, options: Sequence[str], *, whole: bool) -> str | None:
    """The letter of the one option whose wording the reply is, or contains."""
    text = normalise(reply)
    wordings = [normalise(option) for option in options]
    letters = [
        get_letter(at)
        for at, wording in enumerate(wordings)
        if wording and (text == wording if whole else f" {wording} " in f" {text} ")
    ]
    return letters[0] if len(letters) == 1 else None


def _get_letter(found: re.Match[str] | None) -> str | None:
    return found[1] if found else None


def class_f1(predicted: Sequence[str | None], gold: Sequence[str], label: str) -> float:
    """F1 of finding the claims of one class. An undecided claim lowers the recall of its class and no precision.

    Source: F1_P and F1_N as CAM reports them on FABLES (Kim et al. 2024). 0.0 when the class is in neither list.
    """
    pairs = list(zip(predicted, gold, strict=True))
    hits = sum(found == true == label for found, true in pairs)
    labels = sum((found == label) + (true == label) for found, true in pairs)
    return 2 * hits / labels if labels else 0.0


def pair_accuracy(pairs: Sequence[Hashable], right: Sequence[bool]) -> float | None:
    """The share of pairs with two correct verdicts; `pairs[i]` names the pair of claim i, `right[i]` is its verdict.

    Source: NoCha (Karpinska et al. 2024). A pair with only one claim asked does not count; None when
    no pair counts.
    """
    verdicts: dict[Hashable, list[bool]] = defaultdict(list)
    for pair, verdict in zip(pairs, right, strict=True):
        verdicts[pair].append(verdict)
    whole = [all(both) for both in verdicts.values() if len(both) > 1]
    return sum(whole) / len(whole) if whole else None


def rouge(kind: str, answer: str, references: Sequence[str]) -> float:
    """F-measure of ROUGE (`kind` is rouge1, rouge2 or rougeL), stemmed.

    Source: Lin 2004, as the package rouge-score computes it; stemming and the maximum as in QMSum (Zhong et al. 2021)
    and ODSum (Zhou et al. 2023). Raises MissingDependency without that package.
    """
    scorer = _make_scorer(kind)
    return _take_best(lambda answer, reference: float(scorer.score(reference, answer)[kind].fmeasure))(
        answer, references
    )


@cache
def _make_scorer(kind: str) -> Any:
    try:
        scoring = import_module("rouge_score.rouge_scorer")
    except ImportError as error:
        message = f"{kind} needs the package rouge-score, which is not installed: pip install 'tomewise[eval]'"
        raise MissingDependency(message) from error
    return scoring.RougeScorer([kind], use_stemmer=True)
