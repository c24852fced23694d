"""Sums of what was used, as rows and builds record it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

COUNTED = ("calls", "reused", "input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens")
TIMED = ("model_seconds", "own_seconds")


def sum_of(usages: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Several usages as one; the price of the whole is unknown where that of a part is. What is not there counts 0."""
    parts = list(usages)
    counted = {name: sum(part.get(name, 0) for part in parts) for name in COUNTED}
    timed = {name: sum(part.get(name, 0.0) for part in parts) for name in TIMED}
    costs = [part.get("cost", 0.0) for part in parts]
    return {**counted, **timed, "cost": None if None in costs else sum(costs)}
