"""What an answer rests on against gold evidence: the passages that the answering call saw, and the quotations it gave.

Gold is the spans of a question, where it has any, and else its supporting documents. A place finds a span when both
share a character, and a document when it lies in it. Nothing shown, nothing cited, or nothing gold gives 0.0.

Citation precision and recall are named after ALCE (Gao et al. 2023), which asks a model whether a citation supports a
sentence; here gold evidence decides, so a good citation of a passage that is not gold counts as wrong.
"""

from __future__ import annotations

from collections.abc import Sequence

from tomewise.evaluate.items import Item, RankedPassage
from tomewise.evaluate.metrics.passage_ranks import recall_at
from tomewise.evaluate.metrics.span_overlap import finds, span_recall_at


def found_share(places: Sequence[RankedPassage], item: Item) -> float:
    """The share of the gold that the places find."""
    if item.spans:
        return span_recall_at(places, item.spans)
    return recall_at([place.document for place in places], item.supporting)


def gold_share(places: Sequence[RankedPassage], item: Item) -> float:
    """The share of the places that find gold."""
    return sum(_is_gold(place, item) for place in places) / len(places) if places else 0.0


def _is_gold(place: RankedPassage, item: Item) -> bool:
    if item.spans:
        return any(finds(place, span) for span in item.spans)
    return place.document in item.supporting
