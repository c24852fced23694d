"""How fast a model reads and writes, from the times of its latest calls."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import exp, inf, log
from statistics import median
from time import perf_counter
from typing import TypeAlias

from tomewise.types import Pace

Timing: TypeAlias = tuple[int, int, float]  # tokens read and written by one call, and its seconds
KEPT = 12  # timings of a model: the latest
_STEPS = 36  # ratios that are tried, each a fifth above the one before: to write a token takes 1 to 590 times as long
_USUAL, _TRUST = 8.0, 0.01  # the ratio where the calls tell none apart, and how little it counts where they do


class SharedClock:
    """Seconds that the requests under way share: those of two side by side are as many as of two in turn."""

    def __init__(self) -> None:
        self._running = 0
        self._seconds = self._at = 0.0

    def count(self, change: int) -> float:
        """A request begins (1) or ends (-1). The seconds of one are the difference of the two."""
        now = perf_counter()
        self._seconds += (now - self._at) / max(1, self._running)
        self._at, self._running = now, self._running + change
        return self._seconds


@lru_cache(maxsize=256)
def measure_pace(timings: Sequence[Timing], beside: int) -> Pace | None:
    """The speed that explains most of the latest timings best; None without any. `beside` is that of `Pace`.

    For each ratio of writing to reading, the median over the calls: so one odd call changes nothing.
    """
    latest = [each for each in timings[-KEPT:] if min(each) >= 0 < each[0] + each[1] and 0 < each[2] < inf]
    best = (inf, 0.0, 0.0)
    for step in range(_STEPS if latest else 0):
        ratio = 1.2**step
        each = [log(seconds / (read + ratio * written)) for read, written, seconds in latest]
        middle = median(each)
        error = sum(abs(share - middle) for share in each) + _TRUST * abs(log(ratio / _USUAL))
        best = min(best, (error, exp(-middle), exp(-middle) / ratio))
    return Pace(reads=best[1], writes=best[2], beside=beside) if latest else None
