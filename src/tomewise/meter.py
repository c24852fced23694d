"""What a piece of work used: the calls of models, and what came of their replies."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import TypeAlias

from tomewise.types import Cost

Clock: TypeAlias = Callable[[], float]
Interval: TypeAlias = tuple[float, float]


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One call of a model. `started` and `ended` are seconds on one clock; `dollars` are None if the price is unknown.

    `requests` counts the requests that were sent for the call: more than one if some were tried again. Tokens and
    dollars are the sums over all of them.
    """

    role: str
    model: str
    started: float
    ended: float
    input_tokens: int
    output_tokens: int
    dollars: float | None
    requests: int = 1
    cached_tokens: int = 0
    reasoning_tokens: int = 0

    @property
    def spent(self) -> Cost:
        return Cost(
            calls=self.requests,
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            cached_tokens=self.cached_tokens,
            reasoning_tokens=self.reasoning_tokens,
            dollars=self.dollars,
            model_seconds=self.ended - self.started,
        )


class Meter:
    """Collects model calls, from any task or thread, and counts what came of replies. Made by `run.meter`.

    `repaired` replies became usable after the model saw what was wrong; `refused` replies did not. `reused` counts the
    asks that a reply answered which an experiment paid for earlier, `kept` those that one of the tome did.
    """

    def __init__(self, clock: Clock) -> None:
        self.repaired = self.refused = self.reused = self.kept = 0
        self._clock = clock
        self._begun = clock()
        self._calls: list[ModelCall] = []
        self._lock = Lock()

    def count_replies(self, counts: Mapping[str, int]) -> None:
        """Add to what came of replies, by the names of these counts."""
        with self._lock:
            for name, count in counts.items():
                setattr(self, name, getattr(self, name) + count)

    def add(self, call: ModelCall) -> None:
        with self._lock:
            self._calls.append(call)

    @property
    def calls(self) -> tuple[ModelCall, ...]:
        """Every call seen so far, in the order in which they ended."""
        with self._lock:
            return tuple(self._calls)

    @property
    def total(self) -> Cost:
        return sum((call.spent for call in self.calls), Cost())

    def measure_cost(self, wall_seconds: float | None = None) -> Cost:
        """The cost so far. `wall_seconds` is how long the work took; by default, the time since the meter was made."""
        calls = self.calls
        wall = self._clock() - self._begun if wall_seconds is None else wall_seconds
        roles: dict[str, Cost] = {}
        for call in calls:
            roles[call.role] = roles.get(call.role, Cost()) + call.spent
        intervals = [(call.started, call.ended) for call in calls]
        model_seconds = measure_union(intervals)
        return replace(
            sum(roles.values(), Cost()),
            roles=dict(sorted(roles.items())),
            model_seconds=model_seconds,
            own_seconds=max(0.0, wall - model_seconds),
            depth=measure_depth(intervals),
            kept=self.kept,
        )


def measure_union(intervals: Sequence[Interval]) -> float:
    """The length of the union of the intervals: the time during which at least one was under way."""
    total = 0.0
    latest_end = float("-inf")
    for start, end in sorted(intervals):
        if end > latest_end:
            total += end - max(start, latest_end)
            latest_end = end
    return total


def measure_depth(intervals: Sequence[Interval]) -> int:
    """The length of the longest chain of intervals, each starting at or after the end of the one before. O(n log n)."""
    running: list[tuple[float, int]] = []  # a heap of (end, length of the longest chain that ends with this interval)
    longest = longest_ended = 0
    for start, end in sorted(intervals):
        while running and running[0][0] <= start:
            longest_ended = max(longest_ended, heapq.heappop(running)[1])
        heapq.heappush(running, (end, longest_ended + 1))
        longest = max(longest, longest_ended + 1)
    return longest
