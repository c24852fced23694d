"""The evidence of an answer against gold evidence: the passages that the answering call saw, and those it cites.

Gold is the spans of a question if it has any, else its supporting documents. A place finds a span when both share a
character, and it finds the document it lies in. Without shown passages, citations or gold a metric is 0.0.

The names citation precision and recall come from ALCE (Gao et al. 2023), which asks a model whether a citation supports
a sentence. Here gold evidence decides: a good citation of a passage that is not gold counts as wrong.
"""

from __future__ import annotations

from collections.abc import Sequence

from tomewise.evaluate.items import Item, RankedPassage
from tomewise.evaluate.metrics.passage_ranks import recall_at
from tomewise.evaluate.metrics.span_overlap import finds, span_recall_at


def measure_found(places: Sequence[RankedPassage], item: Item) -> float:
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
