"""How many calls of a model a part makes, as the part itself states it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CallCount:
    """The calls of one use of a part, without repairs, retries, and what is asked for again since nothing shows it.

    A layer counts for each passage, a retriever for each search, a loop for each question. `formula` is for people.
    `most` is the upper limit, None if the part states none.
    """

    formula: str
    most: float | None = None

    def repeat(self, times: int) -> CallCount:
        """The calls of this many uses."""
        if self == NO_CALLS or not times:
            return NO_CALLS
        if times == 1:
            return self
        is_number = self.formula.isdecimal()
        formula = str(times * int(self.formula)) if is_number else f"{times} × ({self.formula})"
        return CallCount(formula, None if self.most is None else times * self.most)


NO_CALLS = CallCount("0", 0)
NOT_STATED = CallCount("not stated")


def read_calls(part: object) -> CallCount:
    """The `CallCount` in the attribute `calls` of a part; `NOT_STATED` if it has none."""
    stated = getattr(part, "calls", None)
    return stated if isinstance(stated, CallCount) else NOT_STATED


def sum_calls(counts: Iterable[CallCount]) -> CallCount:
    """All calls together; without an upper limit if one of the counts has none."""
    summands = [count for count in counts if count != NO_CALLS]
    if not summands:
        return NO_CALLS
    limits = [count.most for count in summands if count.most is not None]
    most = sum(limits) if len(limits) == len(summands) else None
    return CallCount(" + ".join(count.formula for count in summands), most)


def write_number(number: float) -> str:
    """A number for people, to six digits: 1200.0 as `1,200`, from a million as `1e+06`."""
    return f"{number:,g}"
