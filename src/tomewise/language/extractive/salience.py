"""Find the important sentences in a set, and choose a few that differ from one another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from math import log, sqrt

_TRADE = 0.7  # the weight of relevance; the difference from the chosen sentences has the rest
_SHORTLIST = 80  # candidates that maximal marginal relevance compares


def rarity(bags: Sequence[Collection[str]]) -> dict[str, float]:
    """The inverse document frequency of every term in the bags: log(1 + n / df)."""
    counts = Counter(term for bag in bags for term in set(bag))
    total = len(bags)
    return {term: log(1 + total / count) for term, count in counts.items()}


def coverage(weights: Mapping[str, float], bag: Collection[str]) -> float:
    """The weight of the terms that are in `bag`, as a share of the weight of all terms, in [0, 1]."""
    total = sum(weights.values())
    return sum(weight for term, weight in weights.items() if term in bag) / total if total else 0.0


def likeness(left: Collection[str], right: Collection[str]) -> float:
    """The cosine of two sets of terms."""
    shared = len(set(left) & set(right))
    return shared / sqrt(len(left) * len(right)) if shared else 0.0


def centrality(bags: Sequence[Sequence[str]], idf: Mapping[str, float]) -> list[float]:
    """How typical each bag is of all bags: the weight of its terms in the tf-idf centroid, scaled to [0, 1].

    Source: the centroid of Radev and others (2004). Deviation: the sum is divided by the root of the length, so that
    neither one-word sentences nor very long ones win.
    """
    counts = Counter(term for bag in bags for term in bag)
    # A term that occurs once is not a theme, even if it is rare.
    weight = {term: idf.get(term, 0.0) * log(count) if count > 1 else 0.0 for term, count in counts.items()}
    raw = [sum(weight[term] for term in set(bag)) / sqrt(len(bag) + 4) for bag in bags]
    highest = max(raw, default=0.0)
    return [value / highest for value in raw] if highest else [0.0] * len(raw)


def find_best(scores: Sequence[float], count: int) -> list[int]:
    """The positions of the `count` highest scores, best first, ties in order."""
    return sorted(range(len(scores)), key=lambda i: (-scores[i], i))[:count]


def vary(
    scores: Sequence[float], bags: Sequence[Collection[str]], *, lengths: Sequence[int], room: int, count: int
) -> list[int]:
    """Positions chosen by maximal marginal relevance (Carbonell and Goldstein 1998), in the order of choice.

    Scores are in [0, 1]. At most `count` positions are chosen, whose `lengths` sum to at most `room`; one that does not
    fit is skipped. Positions with score 0 are never chosen.
    """
    candidates = [i for i in find_best(scores, _SHORTLIST) if scores[i] > 0]
    sets = {i: set(bags[i]) for i in candidates}
    nearest = dict.fromkeys(candidates, 0.0)
    chosen: list[int] = []
    while candidates and len(chosen) < count:
        pick = max(candidates, key=lambda i: (_TRADE * scores[i] - (1 - _TRADE) * nearest[i], -i))
        candidates.remove(pick)
        if lengths[pick] > room:
            continue
        room -= lengths[pick]
        chosen.append(pick)
        for i in candidates:
            nearest[i] = max(nearest[i], likeness(sets[i], sets[pick]))
    return chosen
