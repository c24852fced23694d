"""Risk against coverage: how often a system is wrong if it answers only where it is sure enough.

El-Yaniv and Wiener (JMLR 2010): coverage is the share of the questions that are answered, risk the mean loss among
these, here 1 minus the score. The system itself says how sure an answer is: answers given freely are surer than forced
ones; among each, full support by the evidence is surer than partial support, and that is surer than none.
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
    """The answers at one level of confidence or a higher one.

    `coverage` is their share of all questions. `risk` is 1 minus their mean score, or None without such an answer.
    """

    level: str
    coverage: float
    risk: float | None


def measure_risks(rows: Sequence[Row], scores: Scores | None) -> tuple[Risk, ...]:
    """The risk at each level, surest first. No level covers a question that failed or was declined.

    `scores` are those of the rows; rows without gold have NaN and do not count. Without scores there are no risks.
    """
    if scores is None or not (has_gold := ~np.isnan(scores)).any():
        return ()
    levels = np.array([_find_level(row) for row in rows])[has_gold]
    known = scores[has_gold]
    return tuple(_measure_risk(name, known[levels <= level], len(known)) for level, name in enumerate(LEVELS))


def _measure_risk(level: str, covered: Scores, questions: int) -> Risk:
    risk = 1 - float(covered.mean()) if len(covered) else None
    return Risk(level, len(covered) / questions, risk)


def _find_level(row: Row) -> int:
    """The index of its confidence in LEVELS; without an answer, one more than the last."""
    if row.error or not (row.prediction.answer or row.prediction.choice):
        return len(LEVELS)
    forced = row.forced or not row.resolved
    return LEVELS.index(f"forced, {row.claimed}" if forced else row.claimed)
