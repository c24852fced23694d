"""The network of the schemata in one line, for `tome show` and for the notes of tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any


def describe_network(networks: Sequence[Mapping[str, Any]]) -> str:
    """Settings, share of isolated passages, clusters by level, and calls of the networks of one or several tomes.

    A network is what `SchemataLayer` records under that name. All of them have the same settings, but each its own
    threshold.
    """
    first = networks[0]
    thresholds = sorted({network["theta"] for network in networks})
    theta = f"{thresholds[0]:g}" + (f" to {thresholds[-1]:g}" if len(thresholds) > 1 else "")
    passages = sum(network["passages"] for network in networks)
    isolated = sum(network["isolated"] for network in networks)
    levels = [sum(counts) for counts in zip_longest(*(network["clusters"] for network in networks), fillvalue=0)]
    clusters = f"clusters by level {', '.join(f'{count:,}' for count in levels)}" if levels else "no clusters"
    calls = f"the last batch asked for {sum(network.get('calls', 0) for network in networks):,} summaries"
    settings = f"alpha {first['alpha']:g}, sigma {first['sigma']:g}, theta {theta}, k {first['k']}"
    return f"{settings}; {isolated / max(1, passages):.1%} of {passages:,} passages isolated; {clusters}; {calls}"
