"""The run: what all parts share that work on one question, or on one build.

    with open_run() as used:
        ...              # the meter sees the calls made here, and in tasks and threads started here
    used.measure_cost()

A run is looked up, and no argument: between those who open it and those who need it are wrappers, loops and layers,
which stay as they are. Inside, `change_run` replaces some of it for a while.
"""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from tomewise.meter import Clock, Meter
from tomewise.types import Cost, Event, Report

if TYPE_CHECKING:
    from tomewise.types import In, LanguageModel, Out, Role


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


class Limit(Protocol):
    """What a piece of work may spend. See `language.budget.Budget`."""

    async def ask(self, model: LanguageModel, role: Role[In, Out], given: In) -> Out:
        """Ask the model. Raises `BudgetExceeded` before a request that would exceed the limit."""


class Listener(Protocol):
    """Hears the text of replies. The output that `ask` returns in the end counts, whatever was heard before."""

    def begin(self) -> None:
        """A reply begins. Any text of an earlier one (a failed attempt, a reply that must be repaired) is void."""

    def hear(self, text: str) -> None:
        """The next piece of the reply's text, as the model wrote it."""


@dataclass(slots=True)
class Outcomes:
    """What came of the asks of one run: its replies, and its failures since the last reply, in order of ending.

    `is_unkept` says that something of the answer could not be kept.
    """

    used: Meter
    replies: int = 0
    failures: int = 0
    is_unkept: bool = False


def _ignore(_: object) -> None:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The state of one question or one build. Outside of one, the defaults hold."""

    meters: tuple[Meter, ...] = ()  # each sees every call
    fallbacks: tuple[Counter[str], ...] = ()  # each counts every fallback
    outcomes: Outcomes | None = None
    model: LanguageModel | None = None  # is asked in place of a `SharedModel`
    budget: Limit | None = None
    permits: tuple[Permit, ...] = ()  # all are asked before each request
    fresh_mark: str = ""  # `Cached` uses only replies kept with this mark, and asks again for others; empty: any reply
    must_keep: bool = False  # a reply that cannot be kept ends the run
    queue: object = None  # calls with the same queue wait behind each other (see `CallSlots`)
    listener: tuple[str, Listener] | None = None  # the name of a role, and who hears its replies
    on_wait: Callable[[Event], None] = _ignore
    on_progress: Report = _ignore
    on_part: Callable[[Event], None] | None = None  # is shown the parts of answers (see `loops.answer_parts`)
    whole_answers: bool = False  # no answer is shown in parts
    only_full: bool = False  # only parts that the evidence supports in full are shown

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
    outcomes = current_run().outcomes
    if outcomes is None or not outcomes.is_unkept:
        warnings.warn(f"this answer was not kept in full (replies of the model, trace, session): {error}", stacklevel=2)
    if outcomes is not None:
        outcomes.is_unkept = True


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
    with meter() as used, change_run(outcomes=Outcomes(used), **changes):
        yield used


@contextmanager
def continue_run() -> Iterator[Meter]:
    """Go on with the run that is open here, or open one. Yields the meter of all its calls."""
    outcomes = current_run().outcomes
    if outcomes is not None:
        yield outcomes.used
        return
    with open_run() as used:
        yield used
