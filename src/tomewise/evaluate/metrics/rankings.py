"""Retrieval against gold documents and gold spans: the share that is found, how early, and in how many characters.

Most metrics are of places: for each piece of gold the place, counted from 1, where it is found among the first k, or
None. Without gold a metric is 0.0.

A document is found at the place of its best passage (MaxP: Dai and Callan 2019), and k counts documents. In MuSiQue a
document is one passage, so both are the same. A passage finds a span when both are in the same document and share at
least one character; nothing finds an empty span; here k counts passages. Papers do not agree on definitions for gold
spans: these are those for documents, and the share of gold characters.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from math import log2
from typing import TypeAlias

from tomewise.evaluate.items import Item, RankedPassage, Span

Places: TypeAlias = Sequence[int | None]
_Intervals = list[tuple[int, int]]


def find_documents(ranked: Sequence[RankedPassage], gold: Collection[str], k: int | None = None) -> Places:
    """The places of gold documents in a ranking of passages, the first one first."""
    first = list(dict.fromkeys(passage.document for passage in ranked))[:k]
    found = [place for place, document in enumerate(first, 1) if document in gold]
    return [*found, *[None] * (len(set(gold)) - len(found))]


def find_spans(ranked: Sequence[RankedPassage], gold: Sequence[Span], k: int | None = None) -> Places:
    """For each span the place of the first passage that finds it."""
    passages = list(enumerate(ranked[:k], 1))
    return [next((place for place, passage in passages if finds(passage, span)), None) for span in gold]


def finds(passage: RankedPassage, span: Span) -> bool:
    """Whether both are in one document and share a character."""
    return passage.document == span.document and max(passage.start, span.start) < min(passage.end, span.end)


def recall(places: Places, _k: int | None = None) -> float:
    """The share of the gold that is found. Source: HippoRAG 2 (Gutiérrez et al. 2025)."""
    return sum(place is not None for place in places) / len(places) if places else 0.0


def all_found(places: Places, _k: int | None = None) -> float:
    """1.0 when all gold is found: the All-Recall of HippoRAG (Gutiérrez et al. 2024)."""
    return float(bool(places) and None not in places)


def reciprocal_rank(places: Places, _k: int | None = None) -> float:
    """One over the first place with gold; its mean is MRR (Voorhees 1999)."""
    return max((1 / place for place in places if place is not None), default=0.0)


def ndcg(places: Places, k: int | None = None) -> float:
    """Discounted gain of the gold over that of the best order (Järvelin and Kekäläinen 2002).

    Gains are 0 or 1, the discount is 1 / log2(1 + place). The best order has one piece of gold at each place. A passage
    that finds several spans can exceed it; that counts as 1.0.
    """
    gain = sum(_discount(place) for place in places if place is not None)
    ideal = sum(_discount(place) for place in range(1, min(len(places), len(places) if k is None else k) + 1))
    return min(1.0, gain / ideal) if places else 0.0


def _discount(place: int) -> float:
    return 1 / log2(1 + place)


def span_recall_at(ranked: Sequence[RankedPassage], gold: Sequence[Span], k: int | None = None) -> float:
    """The share of the gold spans that the first k passages find."""
    return recall(find_spans(ranked, gold, k))


def measure_coverage(ranked: Sequence[RankedPassage], gold: Sequence[Span], k: int | None = None) -> float:
    """The share of the gold characters that the first k passages hold; characters in several spans count once.

    Source: the recall of LegalBench-RAG (Pipitone and Houir Alami 2024), which counts characters.
    """
    wanted = _merge_intervals((span.document, span.start, span.end) for span in gold)
    found = _merge_intervals((passage.document, passage.start, passage.end) for passage in ranked[:k])
    length = sum(end - start for intervals in wanted.values() for start, end in intervals)
    shared = sum(_count_shared(intervals, found.get(document, [])) for document, intervals in wanted.items())
    return shared / length if length else 0.0


def _merge_intervals(places: Iterable[tuple[str, int, int]]) -> dict[str, _Intervals]:
    """The intervals of each document in order, merged where they overlap or touch."""
    merged: dict[str, _Intervals] = {}
    for document, start, end in sorted(places):
        intervals = merged.setdefault(document, [])
        if intervals and start <= intervals[-1][1]:
            intervals[-1] = (intervals[-1][0], max(end, intervals[-1][1]))
        else:
            intervals.append((start, end))
    return merged


def _count_shared(first: _Intervals, second: _Intervals) -> int:
    """How many characters are in both."""
    return sum(max(0, min(a_end, b_end) - max(a, b)) for a, a_end in first for b, b_end in second)


def measure_gold_recall(passages: Sequence[RankedPassage], item: Item) -> float:
    """The share of the gold that the passages find."""
    if item.spans:
        return span_recall_at(passages, item.spans)
    return recall(find_documents(passages, item.supporting))


def measure_gold_precision(passages: Sequence[RankedPassage], item: Item) -> float:
    """The share of the passages that find gold."""
    return sum(_is_gold(passage, item) for passage in passages) / len(passages) if passages else 0.0


def _is_gold(passage: RankedPassage, item: Item) -> bool:
    if item.spans:
        return any(finds(passage, span) for span in item.spans)
    return passage.document in item.supporting
