"""From scores to evidence: the one way in which every retriever ranks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tomewise.types import Evidence, Passage

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tomewise.store.sqlite.store import SqliteStore

# Sums of floats differ in their last bits with the place of a row; ties must not hang on them.
_DECIMALS = 6


def top(scores: NDArray[np.floating], limit: int) -> NDArray[np.intp]:
    """Positions of the `limit` best scores and of all that tie with the last of them, in no order."""
    if limit >= len(scores):
        return np.arange(len(scores))
    if limit <= 0:
        return np.empty(0, np.intp)
    least = np.partition(scores, len(scores) - limit)[len(scores) - limit]
    return np.flatnonzero(scores >= least - 10.0**-_DECIMALS)


def ranked(store: SqliteStore, keys: Sequence[int], scores: Iterable[float], limit: int) -> list[Evidence]:
    """The best passages as evidence, ties broken by id."""
    passages = store.passages(keys)
    found = [
        evidence_of(passages[key], round(float(score), _DECIMALS))
        for key, score in zip(keys, scores, strict=True)
        if key in passages
    ]
    return sorted(found, key=lambda evidence: (-evidence.score, evidence.node))[:limit]


def evidence_of(passage: Passage, score: float) -> Evidence:
    """A passage as evidence."""
    return Evidence(
        node=passage.id,
        layer="passages",
        text=passage.text,
        score=score,
        sources=(passage.id,),
        title=passage.title,
    )
