"""What was asked of models: calls report themselves, meters around them add up.

with meter() as m:
    ...              # calls made here, and in tasks started here, are seen
m.usage(wall_seconds=2.5)
"""

from __future__ import annotations

import heapq
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from threading import Lock
from typing import Protocol, TypeAlias

from tomewise.types import Spent, Usage

Clock: TypeAlias = Callable[[], float]
Interval: TypeAlias = tuple[float, float]


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One call of a model: seconds on one clock, `cost` in dollars or None where the price is unknown.

    `requests` is how many were sent for it: more than one where some were tried again. Tokens and cost are of them all.
    """

    role: str
    model: str
    started: float
    ended: float
    input_tokens: int
    output_tokens: int
    cost: float | None
    requests: int = 1
    cached_tokens: int = 0
    reasoning_tokens: int = 0

    @property
    def spent(self) -> Spent:
        return Spent(
            calls=self.requests,
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            cost=self.cost,
            seconds=self.ended - self.started,
            cached_tokens=self.cached_tokens,
            reasoning_tokens=self.reasoning_tokens,
        )


@dataclass(frozen=True, slots=True)
class Request:
    """A request about to be sent: tokens of the prompt (estimated), the bound on those of the reply, what they cost.

    `price` maps tokens in and out to dollars, or to None where the price is unknown.
    """

    input_tokens: int
    output_bound: int
    price: Callable[[int, int], float | None]


@dataclass(slots=True)
class Bill:
    """What a request took: set by who sent it, once that is known."""

    spent: Spent


class Permit(Protocol):
    """Who may refuse a request, and is told what it took."""

    async def reserve(self, request: Request) -> None:
        """Wait until there is room for the request. Raises to refuse it."""

    def settle(self, request: Request, spent: Spent) -> None:
        """The request has ended and took `spent`."""


class Meter:
    """Collects model calls, from any task or thread. Made by `meter`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._begun = clock()
        self._calls: list[ModelCall] = []
        self._lock = Lock()

    def add(self, call: ModelCall) -> None:
        with self._lock:
            self._calls.append(call)

    @property
    def calls(self) -> tuple[ModelCall, ...]:
        """Every call seen so far, in the order in which they ended."""
        with self._lock:
            return tuple(self._calls)

    @property
    def total(self) -> Spent:
        return sum((call.spent for call in self.calls), Spent())

    def usage(self, wall_seconds: float | None = None) -> Usage:
        """What was used. `wall_seconds` is how long the work took: by default, since the meter was made."""
        calls = self.calls
        wall = self._clock() - self._begun if wall_seconds is None else wall_seconds
        roles: dict[str, Spent] = {}
        for call in calls:
            roles[call.role] = roles.get(call.role, Spent()) + call.spent
        intervals = [(call.started, call.ended) for call in calls]
        model_seconds = covered(intervals)
        return Usage(
            total=sum(roles.values(), Spent()),
            roles=roles,
            model_seconds=model_seconds,
            own_seconds=max(0.0, wall - model_seconds),
            depth=depth(intervals),
        )


_meters: ContextVar[tuple[Meter, ...]] = ContextVar("tomewise_meters", default=())
_permits: ContextVar[tuple[Permit, ...]] = ContextVar("tomewise_permits", default=())


@contextmanager
def meter(clock: Clock = time.perf_counter) -> Iterator[Meter]:
    """Collects every call made inside, also by tasks started inside. Meters outside of this one see the calls too."""
    made = Meter(clock)
    token = _meters.set((*_meters.get(), made))
    try:
        yield made
    finally:
        _meters.reset(token)


def report_call(
    role: str,
    *,
    model: str,
    started: float,
    ended: float,
    input_tokens: int,
    output_tokens: int,
    cost: float | None,
    requests: int = 1,
    cached_tokens: int = 0,
    reasoning_tokens: int = 0,
) -> None:
    """Reports one call to every meter around it.

    `started` is when the call was asked for, also if it then waited for a free place among the calls under way:
    otherwise calls that merely queue would look as if they depended on each other.
    """
    counted = input_tokens, output_tokens, cost, requests, cached_tokens, reasoning_tokens
    call = ModelCall(role, model, started, ended, *counted)
    for around in _meters.get():
        around.add(call)


@contextmanager
def require_permit(permit: Permit) -> Iterator[None]:
    """Has `permit` asked before each request that is sent inside; it raises to refuse. See `Budgeted`."""
    token = _permits.set((*_permits.get(), permit))
    try:
        yield
    finally:
        _permits.reset(token)


@asynccontextmanager
async def announce_request(request: Request) -> AsyncIterator[Bill]:
    """To be entered by a model around each request that it sends. Raises what a permit raises.

    Until who sends it says otherwise, and so also when it is cancelled, a request counts as one call with its prompt.
    """
    reserved: list[Permit] = []
    bill = Bill(Spent())
    try:
        for permit in _permits.get():
            await permit.reserve(request)
            reserved.append(permit)
        bill.spent = Spent(calls=1, input_tokens=request.input_tokens, cost=request.price(request.input_tokens, 0))
        yield bill
    finally:
        for permit in reserved:
            permit.settle(request, bill.spent)


def estimate_tokens(text: str) -> int:
    """Roughly how many tokens a text is: one for four bytes of UTF-8, about right for English and for Chinese."""
    return (len(text.encode("utf-8", "surrogatepass")) + 3) // 4


def covered(intervals: Sequence[Interval]) -> float:
    """The measure of the union of the intervals: the time during which at least one was under way."""
    total = 0.0
    reached = float("-inf")
    for start, end in sorted(intervals):
        if end > reached:
            total += end - max(start, reached)
            reached = end
    return total


def depth(intervals: Sequence[Interval]) -> int:
    """The length of the longest chain of intervals, each starting at or after the end of the one before. O(n log n)."""
    running: list[tuple[float, int]] = []  # a heap: when it ends, how long the longest chain ending with it is
    longest = longest_ended = 0
    for start, end in sorted(intervals):
        while running and running[0][0] <= start:
            longest_ended = max(longest_ended, heapq.heappop(running)[1])
        heapq.heappush(running, (end, longest_ended + 1))
        longest = max(longest, longest_ended + 1)
    return longest
