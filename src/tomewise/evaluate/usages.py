"""What was used, as rows and builds record it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tomewise.meter import Meter
from tomewise.outgoing.answer_models import Usage

COUNTED = ("calls", "reused", "input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens")
TIMED = ("model_seconds", "own_seconds")


def make_usage_record(used: Meter) -> dict[str, Any]:
    """What a meter counted, as JSON, and how many of its calls a stored reply answered."""
    record = Usage.of(used.usage()).write()
    del record["kept"]  # it depends on what ran before
    return {**record, "reused": used.reused}


def sum_usages(usages: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Add usages. The sum has no cost (None) where a part has none; a missing entry counts 0."""
    parts = list(usages)
    counted = {name: sum(part.get(name, 0) for part in parts) for name in COUNTED}
    timed = {name: sum(part.get(name, 0.0) for part in parts) for name in TIMED}
    costs = [part.get("cost", 0.0) for part in parts]
    return {**counted, **timed, "cost": None if None in costs else sum(costs)}
