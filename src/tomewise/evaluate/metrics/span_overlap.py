"""Retrieval against gold spans: `ranked` are passages, best first, and `gold` spans of characters.

A passage finds a span when both are in the same document and share at least one character; nothing finds an empty span.
k counts passages. Without gold a metric is 0.0. Papers do not agree on definitions for gold spans: these are those for
ids (`passage_ranks`) where a passage "finds" gold instead of being gold, and the share of gold characters.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tomewise.evaluate.items import Item, RankedPassage, Span
from tomewise.evaluate.metrics.passage_ranks import discount, ideal_gain, recall_at

Intervals = list[tuple[int, int]]


def span_recall_at(ranked: Sequence[RankedPassage], gold: Sequence[Span], k: int | None = None) -> float:
    """The share of the gold spans that the first k passages find."""
    return sum(place is not None for place in _find_places(ranked, gold, k)) / len(gold) if gold else 0.0


def span_all_at(ranked: Sequence[RankedPassage], gold: Sequence[Span], k: int | None = None) -> float:
    """1.0 when the first k passages find every gold span."""
    return float(bool(gold) and None not in _find_places(ranked, gold, k))


def span_reciprocal_rank(ranked: Sequence[RankedPassage], gold: Sequence[Span], k: int | None = None) -> float:
    """One over the place of the first passage among the first k that finds a gold span."""
    return max((1 / place for place in _find_places(ranked, gold, k) if place is not None), default=0.0)


def span_ndcg_at(ranked: Sequence[RankedPassage], gold: Sequence[Span], k: int | None = None) -> float:
    """Discounted gain of the spans; each counts once, at the first of the k passages that finds it.

    The ideal is one new span per place, as for ids. A passage that finds several can exceed it; that counts as 1.0.
    """
    gain = sum(discount(place) for place in _find_places(ranked, gold, k) if place is not None)
    return min(1.0, gain / ideal_gain(len(gold), k)) if gold else 0.0


def span_coverage_at(ranked: Sequence[RankedPassage], gold: Sequence[Span], k: int | None = None) -> float:
    """The share of the gold characters that the first k passages hold; characters in several spans count once.

    Source: the recall of LegalBench-RAG (Pipitone and Houir Alami 2024), which counts characters.
    """
    wanted = _merge_intervals((span.document, span.start, span.end) for span in gold)
    found = _merge_intervals((passage.document, passage.start, passage.end) for passage in ranked[:k])
    length = sum(end - start for intervals in wanted.values() for start, end in intervals)
    shared = sum(_count_shared(intervals, found.get(document, [])) for document, intervals in wanted.items())
    return shared / length if length else 0.0


def _find_places(ranked: Sequence[RankedPassage], gold: Sequence[Span], k: int | None) -> list[int | None]:
    """For each span the place, counted from 1, of the first passage that finds it."""
    passages = list(enumerate(ranked[:k], 1))
    return [next((place for place, passage in passages if finds(passage, span)), None) for span in gold]


def finds(passage: RankedPassage, span: Span) -> bool:
    """Whether both are in one document and share a character."""
    return passage.document == span.document and max(passage.start, span.start) < min(passage.end, span.end)


def _merge_intervals(places: Iterable[tuple[str, int, int]]) -> dict[str, Intervals]:
    """The intervals of each document in order, merged where they overlap or touch."""
    merged: dict[str, Intervals] = {}
    for document, start, end in sorted(places):
        intervals = merged.setdefault(document, [])
        if intervals and start <= intervals[-1][1]:
            intervals[-1] = (intervals[-1][0], max(end, intervals[-1][1]))
        else:
            intervals.append((start, end))
    return merged


def _count_shared(first: Intervals, second: Intervals) -> int:
    """How many characters are in both."""
    return sum(max(0, min(a_end, b_end) - max(a, b)) for a, a_end in first for b, b_end in second)


def measure_gold_recall(passages: Sequence[RankedPassage], item: Item) -> float:
    """The share of the gold that the passages find."""
    if item.spans:
        return span_recall_at(passages, item.spans)
    return recall_at([passage.document for passage in passages], item.supporting)


def measure_gold_precision(passages: Sequence[RankedPassage], item: Item) -> float:
    """The share of the passages that find gold."""
    return sum(_is_gold(passage, item) for passage in passages) / len(passages) if passages else 0.0


def _is_gold(passage: RankedPassage, item: Item) -> bool:
    if item.spans:
        return any(finds(passage, span) for span in item.spans)
    return passage.document in item.supporting
