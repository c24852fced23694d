"""Risk against coverage: how often a system is wrong when it answers only where it is sure enough.

El-Yaniv and Wiener (JMLR 2010): coverage is the share of the questions that are answered, risk the mean loss among
these, here one minus the score. How sure an answer is, is what the system says of it: answers given freely come before
those it was made to give, and among each those that the evidence holds in full before those it holds partly or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tomewise.evaluate.rows import Row
from tomewise.evaluate.significance import Scores

_SUPPORT = ("full", "partly", "none")
LEVELS = (*_SUPPORT, *(f"forced, {support}" for support in _SUPPORT))


@dataclass(frozen=True, slots=True)
class Risk:
    """Answers at one level of confidence or a higher one.

    `coverage` is their share of all questions, `risk` one minus their mean score: None where there is no such answer.
    """

    level: str
    coverage: float
    risk: float | None


def risks(rows: Sequence[Row], scores: Scores | None) -> tuple[Risk, ...]:
    """One for each level, surest first; a question that failed or was declined is covered at none.

    `scores` are those of the rows, NaN for rows without gold, which do not count. None gives nothing.
    """
    if scores is None or not (known := ~np.isnan(scores)).any():
        return ()
    places = np.array([_level(row) for row in rows])[known]
    kept = scores[known]
    return tuple(_risk(name, kept[places <= level], len(kept)) for level, name in enumerate(LEVELS))


def _risk(level: str, answered: Scores, asked: int) -> Risk:
    risk = 1 - float(answered.mean()) if len(answered) else None
    return Risk(level, len(answered) / asked, risk)


def _level(row: Row) -> int:
    """The place of its confidence in LEVELS; beyond them where there is no answer."""
    if row.error or not (row.prediction.answer or row.prediction.choice):
        return len(LEVELS)
    return _SUPPORT.index(row.supported) + len(_SUPPORT) * (row.forced or not row.resolved)
