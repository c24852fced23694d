"""Count what models are asked: every call reports itself, and the meters around it add up.

with meter() as m:
    ...              # the meter sees calls made here, and in tasks started here
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
    """One call of a model. `started` and `ended` are seconds on one clock; `cost` is in dollars, None if unknown.

    `requests` counts the requests that were sent for the call: more than one if some were tried again. Tokens and cost
    are the sums over all of them.
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
    """A request about to be sent: the estimated tokens of the prompt, and the bound on the tokens of the reply.

    `price` maps input and output tokens to dollars, or to None if the price is unknown.
    """

    input_tokens: int
    output_bound: int
    price: Callable[[int, int], float | None]


@dataclass(slots=True)
class Bill:
    """The cost of one request. The sender of the request sets it when it is known."""

    spent: Spent


class Permit(Protocol):
    """May refuse a request, and learns the cost of every request it let pass."""

    async def reserve(self, request: Request) -> None:
        """Wait until there is room for the request. Raises an error to refuse it."""

    def settle(self, request: Request, spent: Spent) -> None:
        """Take note that the request has ended and has cost `spent`."""


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
        """The usage so far. `wall_seconds` is how long the work took; by default, the time since the meter was made."""
        calls = self.calls
        wall = self._clock() - self._begun if wall_seconds is None else wall_seconds
        roles: dict[str, Spent] = {}
        for call in calls:
            roles[call.role] = roles.get(call.role, Spent()) + call.spent
        intervals = [(call.started, call.ended) for call in calls]
        model_seconds = measure_union(intervals)
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
    """Collect every call made inside, also by tasks started inside. Meters around this one see the calls too."""
    inner = Meter(clock)
    token = _meters.set((*_meters.get(), inner))
    try:
        yield inner
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
    """Report one call to every meter around it.

    `started` is when the caller asked, also if the call then waited for a free place. Otherwise calls that only wait in
    a queue would look as if they depended on each other.
    """
    counts = input_tokens, output_tokens, cost, requests, cached_tokens, reasoning_tokens
    call = ModelCall(role, model, started, ended, *counts)
    for each_meter in _meters.get():
        each_meter.add(call)


@contextmanager
def require_permit(permit: Permit) -> Iterator[None]:
    """Ask `permit` before each request that is sent inside. The permit raises an error to refuse. See `Budgeted`."""
    token = _permits.set((*_permits.get(), permit))
    try:
        yield
    finally:
        _permits.reset(token)


@asynccontextmanager
async def announce_request(request: Request) -> AsyncIterator[Bill]:
    """Announce a request to all permits. A model enters this around each request. Raises the error of a permit.

    The sender sets the cost on the bill. Before it does, and so if the request is cancelled, the request counts as one
    call with the tokens of its prompt.
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
    """Roughly how many tokens a text has: one for four bytes of UTF-8, about right for English and for Chinese."""
    return (len(text.encode("utf-8", "surrogatepass")) + 3) // 4


def measure_union(intervals: Sequence[Interval]) -> float:
    """The length of the union of the intervals: the time during which at least one was under way."""
    total = 0.0
    latest_end = float("-inf")
    for start, end in sorted(intervals):
        if end > latest_end:
            total += end - max(start, latest_end)
            latest_end = end
    return total


def depth(intervals: Sequence[Interval]) -> int:
    """The length of the longest chain of intervals, each starting at or after the end of the one before. O(n log n)."""
    running: list[tuple[float, int]] = []  # a heap of (end, length of the longest chain that ends with this interval)
    longest = longest_ended = 0
    for start, end in sorted(intervals):
        while running and running[0][0] <= start:
            longest_ended = max(longest_ended, heapq.heappop(running)[1])
        heapq.heappush(running, (end, longest_ended + 1))
        longest = max(longest, longest_ended + 1)
    return longest
