"""Claim verification: F1 of one class, accuracy of pairs. The label None is an undecided claim."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence


def class_f1(predicted: Sequence[str | None], gold: Sequence[str], label: str) -> float:
    """F1 of finding the claims of one class. An undecided claim lowers the recall of its class and no precision.

    Source: F1_P and F1_N as CAM reports them on FABLES (Kim et al. 2024). 0.0 when the class is in neither list.
    """
    pairs = list(zip(predicted, gold, strict=True))
    hits = sum(found == wanted == label for found, wanted in pairs)
    labels = sum((found == label) + (wanted == label) for found, wanted in pairs)
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
