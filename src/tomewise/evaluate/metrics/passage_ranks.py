"""Retrieval against gold ids: `ranked` are ids, best first; a repeated id counts once, at its first place.

The gold of our datasets names documents. So the ids are those of documents, each at the place of its best passage
(MaxP: Dai and Callan 2019), and k counts documents. In MuSiQue a document is one passage, so both are the same.
Without gold a metric is 0.0.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import log2


def recall_at(ranked: Sequence[str], gold: Collection[str], k: int | None = None) -> float:
    """The share of the gold ids among the first k (all, without k). Source: HippoRAG 2 (Gutiérrez et al. 2025)."""
    return len(ids & set(_list_first(ranked, k))) / len(ids) if (ids := set(gold)) else 0.0


def all_at(ranked: Sequence[str], gold: Collection[str], k: int | None = None) -> float:
    """1.0 when every gold id is among the first k: the All-Recall of HippoRAG (Gutiérrez et al. 2024)."""
    return float(bool(gold) and set(gold) <= set(_list_first(ranked, k)))


def reciprocal_rank(ranked: Sequence[str], gold: Collection[str], k: int | None = None) -> float:
    """One over the place of the first gold id among the first k; its mean is MRR (Voorhees 1999)."""
    gold_ids = set(gold)
    return next((1 / place for place, id in enumerate(_list_first(ranked, k), 1) if id in gold_ids), 0.0)


def ndcg_at(ranked: Sequence[str], gold: Collection[str], k: int | None = None) -> float:
    """Discounted gain of the gold ids among the first k over that of the best order (Järvelin and Kekäläinen 2002).

    Gains are 0 or 1, the discount is 1 / log2(1 + place).
    """
    gold_ids = set(gold)
    gain = sum(discount(place) for place, id in enumerate(_list_first(ranked, k), 1) if id in gold_ids)
    return gain / ideal_gain(len(gold_ids), k) if gold_ids else 0.0


def discount(place: int) -> float:
    """The gain of a gold id at this place; places are counted from 1."""
    return 1 / log2(1 + place)


def ideal_gain(count: int, k: int | None) -> float:
    """The discounted gain of `count` gold ids at the first places, k at most."""
    return sum(discount(place) for place in range(1, min(count, count if k is None else k) + 1))


def _list_first(ranked: Sequence[str], k: int | None) -> list[str]:
    return list(dict.fromkeys(ranked))[:k]
