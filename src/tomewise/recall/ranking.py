"""From scores to evidence: all retrievers rank passages in this way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tomewise.types import Evidence, Passage

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tomewise.store.sqlite.store import SqliteStore

# The last bits of a sum of floats depend on the row's position; ties must not depend on them.
_DECIMALS = 6


def find_top(scores: NDArray[np.floating], limit: int) -> NDArray[np.intp]:
    """Positions of the `limit` best scores and of all scores that tie with the last of these, in no order."""
    if limit >= len(scores):
        return np.arange(len(scores))
    if limit <= 0:
        return np.empty(0, np.intp)
    least = np.partition(scores, len(scores) - limit)[len(scores) - limit]
    return np.flatnonzero(scores >= least - 10.0**-_DECIMALS)


def rank_passages(store: SqliteStore, keys: Sequence[int], scores: Iterable[float], limit: int) -> list[Evidence]:
    """The `limit` best passages as evidence, ties by id."""
    passages = store.passages(keys)
    found = [
        as_evidence(passages[key], round(float(score), _DECIMALS))
        for key, score in zip(keys, scores, strict=True)
        if key in passages
    ]
    return sorted(found, key=lambda evidence: (-evidence.score, evidence.node))[:limit]


def as_evidence(passage: Passage, score: float) -> Evidence:
    """A passage as evidence."""
    return Evidence(
        node=passage.id,
        layer="passages",
        text=passage.text,
        score=score,
        sources=(passage.id,),
        title=passage.title,
        place=passage.place,
    )
