"""The run: what all parts share that work on one question, or on one build, and what they used.

    with open_run() as used:
        ...              # the meter sees the calls made here, and in tasks and threads started here
    used.measure_cost()

A run is looked up, and no argument: between those who open it and those who need it are wrappers, loops and layers,
which stay as they are. Inside, `change_run` replaces some of it for a while.

A fallback is a simpler step that replaces a step that failed. Meters count them by kind. A build writes one note for
each kind, `fallback: KIND: COUNT`, into the notes of a `LayerReport`. An answer reports them in its last event,
`fallbacks`, which maps each kind to its count. A flag is a statement for memory that its texts do not support (see
`memory.proving`); a build writes notes of them too. Kinds are stable, because programs read them.
"""

from __future__ import annotations

import heapq
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from tomewise.errors import BadReply, Refused
from tomewise.types import Cost, Event, Limit, Report

if TYPE_CHECKING:
    from tomewise.types import In, LanguageModel, Out, Role

Clock: TypeAlias = Callable[[], float]
Interval: TypeAlias = tuple[float, float]
Flag: TypeAlias = tuple[str, str, str]  # a model, a kind, and a statement of this model

ASKED_AGAIN, LEFT_OUT, UNSUPPORTED = "asked again", "left out", "unsupported"
NOT_DECOMPOSED = "question asked whole"
NO_KEYWORDS = "searched with the question in place of keywords"
NOT_RECOGNISED = "facts not filtered"
NOT_SELECTED = "nodes not selected"
NO_WALK = "ranked by cosine alone"
ASKED_ALONE = "passage asked alone"
REPLY_SKIPPED = "reply skipped"
PART_SKIPPED = "part of a reply skipped"
PROSE_READ = "prose taken for an answer"


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One call of a model. `started` and `ended` are seconds on one clock; `dollars` are None if the price is unknown.

    `requests` counts the requests that were sent for the call: more than one if some were tried again. Tokens and cost
    are the sums over all of them.
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
    """Collects model calls, from any task or thread, and counts what came of them. Made by `meter` and `open_run`.

    `repaired` replies became usable after the model saw what was wrong; `refused` replies did not. `reused` counts the
    asks that a reply answered which an experiment paid for earlier, `kept` those that one of the tome did. Of the asks
    of a run, `replies` counts those that got one, `failures` those that failed since the last reply. `fallbacks` counts
    steps by kind, `flags` are statements for memory without support. `is_unkept` says that something of the answer
    could not be kept.
    """

    def __init__(self, clock: Clock = time.perf_counter) -> None:
        self.repaired = self.refused = self.reused = self.kept = self.replies = self.failures = 0
        self.fallbacks = Counter[str]()
        self.flags: list[Flag] = []
        self.is_unkept = False
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


@dataclass(frozen=True, slots=True)
class Request:
    """A request about to be sent: the estimated tokens of the prompt, and the bound on the tokens of the reply.

    `price` maps input and output tokens to dollars, or to None if the price is unknown. `most` is how often it may be
    sent, when one announcement stands for a request and its repair.
    """

    input_tokens: int
    output_bound: int
    price: Callable[[int, int], float | None]
    most: int = 1


class Permit(Protocol):
    """May refuse a request, and learns the cost of every request it let pass."""

    async def reserve(self, request: Request) -> int:
        """Wait until there is room for the request. Returns how often it may be sent, and raises to refuse it."""

    def settle(self, request: Request, spent: Cost) -> None:
        """Take note that the request has ended and has cost `spent`."""


class Spender(Protocol):
    """What a piece of work may spend. See `language.budget.Budget`."""

    limit: Limit

    def leaves(self, cost: Cost) -> bool:
        """Whether so much more can be spent, as far as this process knows."""

    async def ask(self, model: LanguageModel, role: Role[In, Out], given: In) -> Out:
        """Ask the model. Raises `BudgetExceeded` before a request that would exceed the limit."""


class Listener(Protocol):
    """Hears the text of replies. The output that `ask` returns in the end counts, whatever was heard before."""

    def begin(self, begun: str = "") -> None:
        """A reply begins, or the rest of one that has `begun` so. Any other text of an earlier one is void."""

    def hear(self, text: str) -> None:
        """The next piece of the reply's text, as the model wrote it."""


def _ignore(_: object) -> None:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The state of one question or one build. Outside of one, the defaults hold."""

    meters: tuple[Meter, ...] = ()  # each sees every call and every fallback
    used: Meter | None = None  # the one that the question or the build was opened with
    model: LanguageModel | None = None  # is asked in place of a `SharedModel`
    budget: Spender | None = None
    permits: tuple[Permit, ...] = ()  # all are asked before each request
    fresh_mark: str = ""  # only replies kept with this mark are used, others are asked for again; empty: any reply
    must_keep: bool = False  # a reply that cannot be kept ends the run
    queue: object = None  # calls with the same queue wait behind each other (see `CallSlots`)
    listener: tuple[str, Listener] | None = None  # the name of a role, and who hears its replies
    on_wait: Callable[[Event], None] = _ignore  # hears why a reply is late: a wait, or that it is asked for again
    on_progress: Report = _ignore
    on_part: Callable[[Event], None] | None = None  # is shown the parts of answers (see `loops.answer_parts`)
    whole_answers: bool = False  # no answer is shown in parts
    held_back: frozenset[str] = frozenset()  # no part is shown of an answer whose reply says one of these of itself

    def find_listener(self, role: Role[In, Out]) -> Listener | None:
        """Who listens to the replies for this role, if anybody does."""
        name, listener = self.listener or ("", None)
        return listener if name == role.name else None


_run: ContextVar[Run] = ContextVar("tomewise_run", default=Run())  # noqa: B039 - a `Run` is frozen


def current_run() -> Run:
    """The run that is open here."""
    return _run.get()


def warn_unkept(error: Exception) -> None:
    """Warn, once in a run, that replies, trace or session of an answer could not be kept: the answer is worth more."""
    used = current_run().used
    if used is None or not used.is_unkept:
        warnings.warn(f"this answer was not kept in full (replies of the model, trace, session): {error}", stacklevel=2)
    if used is not None:
        used.is_unkept = True


def record_fallback(kind: str, times: int = 1) -> None:
    """Count a fallback in every meter of the run."""
    for each in current_run().meters if times else ():
        each.fallbacks[kind] += times


async def ask_or_fall_back(model: LanguageModel, role: Role[In, Out], given: In, kind: str) -> Out | None:
    """The output of a role; None for a reply that cannot be used, which counts as a fallback of this kind."""
    try:
        return await model.ask(role, given)
    except (BadReply, Refused):
        record_fallback(kind)
        return None


def report_call(call: ModelCall) -> None:
    """Report one call to every meter of the run.

    `call.started` is when the caller asked, even if the call then waited for a slot. Otherwise calls that only wait
    would look as if they depended on each other.
    """
    for each in current_run().meters:
        each.add(call)


def count_replies(**counts: int) -> None:
    """Add to the counts of replies of every meter of the run, by their names (see `Meter`)."""
    for each in current_run().meters:
        each.count_replies(counts)


@contextmanager
def change_run(**changes: Any) -> Iterator[None]:
    """Replace these fields of the run inside this context, and in the tasks and threads that start inside.

    At the end these fields alone are put back: a generator that yields inside may have been resumed in between.
    """
    before = _run.get()
    _run.set(replace(before, **changes))
    try:
        yield
    finally:
        _run.set(replace(_run.get(), **{name: getattr(before, name) for name in changes}))


@contextmanager
def meter(clock: Clock = time.perf_counter) -> Iterator[Meter]:
    """Collect every call made inside. Meters around this one see the calls too."""
    inner = Meter(clock)
    with change_run(meters=(*_run.get().meters, inner)):
        yield inner


@contextmanager
def open_run(**changes: Any) -> Iterator[Meter]:
    """Open the run of a question or a build, with these fields changed. Its failures count together.

    It goes on with what a caller has set, such as a budget.
    """
    used = Meter()
    with change_run(meters=(*_run.get().meters, used), used=used, **changes):
        yield used


def write_notes(used: Meter) -> list[str]:
    """The notes of a build: `fallback: KIND: COUNT` for each kind that occurred, then what was flagged, in one line."""
    notes = [f"fallback: {kind}: {count}" for kind, count in used.fallbacks.items() if count]
    flags = Counter(kind for _, kind, _ in used.flags)
    flagged = ", ".join(f"{flags[kind]} {kind}" for kind in (UNSUPPORTED, ASKED_AGAIN, LEFT_OUT) if flags[kind])
    return [*notes, f"of what the model wrote: {flagged} (tome show --flags)"] if flagged else notes


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
