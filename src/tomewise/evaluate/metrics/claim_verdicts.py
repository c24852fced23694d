"""Claim verification: F1 of one class, accuracy of pairs. A label of None is a claim left undecided."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence


def class_f1(predicted: Sequence[str | None], gold: Sequence[str], label: str) -> float:
    """F1 of finding the claims of one class; an undecided claim is missed by its class and charged to no other.

    Source: F1_P and F1_N as CAM reports them on FABLES (Kim et al. 2024). 0.0 when the class is neither met nor named.
    """
    pairs = list(zip(predicted, gold, strict=True))
    hits = sum(said == wanted == label for said, wanted in pairs)
    named = sum(said == label for said, _ in pairs)
    met = sum(wanted == label for _, wanted in pairs)
    return 2 * hits / (named + met) if named + met else 0.0


def pair_accuracy(pairs: Sequence[Hashable], right: Sequence[bool]) -> float | None:
    """The share of pairs of which both claims are judged right; `pairs[i]` names the pair of claim i.

    Source: NoCha (Karpinska et al. 2024). A pair of which only one claim was asked is left out; None when no
    pair is whole.
    """
    verdicts: dict[Hashable, list[bool]] = defaultdict(list)
    for pair, verdict in zip(pairs, right, strict=True):
        verdicts[pair].append(verdict)
    whole = [all(both) for both in verdicts.values() if len(both) > 1]
    return sum(whole) / len(whole) if whole else None
