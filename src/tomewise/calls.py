"""How many calls of a model a part makes, as the part itself states it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CallCount:
    """The calls of one use of a part, without repairs and retries of a call.

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
        if self.formula.isdecimal():
            return CallCount(str(times * int(self.formula)), None if self.most is None else self.most * times)
        return CallCount(f"{times} × ({self.formula})", None if self.most is None else self.most * times)


NO_CALLS = CallCount("0", 0)
NOT_STATED = CallCount("not stated")


def read_calls(part: object) -> CallCount:
    """What a part states in its attribute `calls`, a `CallCount`; `NOT_STATED` without one."""
    stated = getattr(part, "calls", None)
    return stated if isinstance(stated, CallCount) else NOT_STATED


def sum_calls(counts: Iterable[CallCount]) -> CallCount:
    """All calls together; without an upper limit if one of the counts has none."""
    used = [count for count in counts if count != NO_CALLS]
    if not used:
        return NO_CALLS
    limits = [count.most for count in used if count.most is not None]
    most = sum(limits) if len(limits) == len(used) else None
    return CallCount(" + ".join(count.formula for count in used), most)


def write_number(number: float) -> str:
    """A number without a needless fraction."""
    return f"{number:,g}"
