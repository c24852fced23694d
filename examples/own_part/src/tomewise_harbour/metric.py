"""A metric: how much shorter than 200 characters an answer is."""

from __future__ import annotations

from tomewise.parts import Metric, Outcome


def measure_brevity(outcome: Outcome) -> float:
    """1 for a single character, 0 for 200 or none."""
    length = len(outcome.prediction.answer)
    return max(0.0, 1 - length / 200) if length else 0.0


brevity = Metric("brevity", "answers", measure_brevity)
