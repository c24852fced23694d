"""Limits on what a model may be asked: what it may cost, and how often it may fail in a row."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from threading import Lock
from time import perf_counter
from typing import Protocol

from tomewise.errors import BudgetExceeded, KeepsFailing, ModelError, ModelUnavailable
from tomewise.language.wrapped import Wrapped, Wrapper
from tomewise.run import Meter, Permit, Request, Spender, change_run, current_run, meter
from tomewise.types import Cost, In, LanguageModel, Limit, Out, Role


class Account(Permit, Spender, Protocol):
    """Where the spending of a budget is kept: in this process (`Budget`), or in another one. Its `ask` is a wrapper."""

    limit: Limit = Limit()

    def leaves(self, cost: Cost) -> bool:
        """Whether so much more can be spent, as far as this process knows."""
        return True

    async def ask(self, model: LanguageModel, role: Role[In, Out], given: In) -> Out:
        """Ask the model. Raises `BudgetExceeded` before a request that would exceed a limit."""
        await self.check()
        permit = _Ask(self)
        with meter() as seen, change_run(permits=(*current_run().permits, permit)):
            try:
                return await model.ask(role, given)
            finally:
                if not permit.announced:
                    self.count(seen.total)

    async def check(self) -> None:
        """Raise `BudgetExceeded` if not even the smallest request would fit."""

    def count(self, spent: Cost) -> None:
        """Count what an ask has spent that announced no request."""


@dataclass(frozen=True, slots=True)
class _Amount:
    """How much a request takes from a budget."""

    calls: int = 0
    tokens: int = 0
    money: float = 0.0

    def __add__(self, more: _Amount) -> _Amount:
        return _Amount(self.calls + more.calls, self.tokens + more.tokens, self.money + more.money)

    def __sub__(self, less: _Amount) -> _Amount:
        return _Amount(self.calls - less.calls, self.tokens - less.tokens, self.money - less.money)


class Budget(Account):
    """Limits on what may be spent. Counts from when this object was made.

    Every request that is sent counts as a call: retries, repairs and refusals too. Tokens (in and out) and dollars are
    reserved before a request is sent: the estimate of its prompt and the bound on its reply. The reservation is
    replaced by the true amount when the request has ended. Minutes are those in which a request was under way.

    A request that does not fit waits for the requests under way, since most replies stay far below their bound. If no
    request is under way, it is sent if its prompt alone fits, and refused otherwise. So calls are never exceeded, and
    the other limits are exceeded by at most one reply (and by the error of an estimate). If the server does not count
    tokens, or a request was given up after it was sent, the estimate of its prompt counts. A request with an unknown
    price is sent alone; if its price is still unknown afterwards, a limit on money refuses all later requests. Within a
    limit of 0 dollars only requests that cost nothing are sent.

    A model that does not announce its requests with `usage.announce_request` is checked only before each ask, and
    counted by what it reports. `name` is that of the model, for messages.
    """

    def __init__(self, limit: Limit = Limit(), *, name: str) -> None:  # noqa: B008 - it is frozen
        self.name = name
        self.limit = limit
        self._spent = Cost()
        self._began = 0.0  # when the requests under way began
        self._seconds = 0.0  # in which others were
        self._reserved = _Amount()  # by the requests under way
        self._waiting: list[asyncio.Future[None]] = []
        self._lock = Lock()  # on the three above: the event loops of several threads may ask

    def leaves(self, cost: Cost) -> bool:
        """Whether so much more can be spent; dollars that are not known yet count as none."""
        with self._lock:
            spent = replace(self._spent, model_seconds=self._seconds)
        return self.limit.holds(spent + replace(cost, dollars=cost.dollars or 0.0))

    @property
    def spent(self) -> Cost:
        """What the requests that have ended have spent so far."""
        return self._spent

    async def check(self) -> None:
        """Raise `BudgetExceeded` if not even the smallest request would fit beside what was spent."""
        if excess := self._find_excess(_Amount(calls=1, tokens=1), self._sum_spent()):
            raise BudgetExceeded(excess)

    def count(self, spent: Cost) -> None:
        """Count what an ask has spent that announced no request."""
        with self._lock:
            self._spent += spent
            self._seconds += spent.model_seconds

    async def reserve(self, request: Request) -> int:
        """Wait until the request fits and reserve its amount. Raises `BudgetExceeded` if it can never fit.

        Returns how often it may be sent: once where it does not fit with its repair.
        """
        while not isinstance(granted := self._reserve_or_queue(request), int):
            await granted
        return granted

    def settle(self, request: Request, spent: Cost) -> None:
        """Give back what was reserved for the request and count what it spent."""
        with self._lock:
            still_reserved = self._reserved - self._bound(request)[1]
            if not still_reserved.calls:
                self._seconds += perf_counter() - self._began
                still_reserved = _Amount()  # drop rounding errors
            self._reserved = still_reserved
            self._spent += spent
            waiting, self._waiting = self._waiting, []
        for turn in waiting:
            if not turn.done():  # if it is done, the waiting task was cancelled and its event loop may be closed
                turn.get_loop().call_soon_threadsafe(_wake, turn)

    def _reserve_or_queue(self, request: Request) -> asyncio.Future[None] | int:
        """Reserve, and return how often the request may be sent; else a future to wait for before the next try."""
        least, most = self._bound(request)
        granted = request.most
        with self._lock:
            if self._find_excess(most, self._sum_spent() + self._reserved):
                if self._reserved.calls:
                    turn = asyncio.get_running_loop().create_future()
                    self._waiting.append(turn)
                    return turn
                if excess := self._find_excess(least, self._sum_spent()):
                    raise BudgetExceeded(excess)
                granted = 1
            if not self._reserved.calls:
                self._began = perf_counter()
            self._reserved += most
        return granted

    def _bound(self, request: Request) -> tuple[_Amount, _Amount]:
        """The least and the most that a request can spend."""
        times, prompt, bound = request.most, request.input_tokens, request.output_bound
        whole = times * (prompt + bound)
        money = self.limit.dollars
        if money is None:
            return _Amount(1, prompt), _Amount(times, whole)
        least, most = request.price(prompt, 0), request.price(times * prompt, times * bound)
        if least is None or most is None:
            least, most = (0.0, money) if money else (math.inf, math.inf)
        return _Amount(1, prompt, least), _Amount(times, whole, most)

    def _sum_spent(self) -> _Amount:
        spent = self._spent
        return _Amount(spent.calls, spent.tokens, spent.dollars or 0.0)

    def _find_excess(self, need: _Amount, used: _Amount) -> str | None:
        """The limit that `need` would exceed beside `used`, and the remedy; None if it exceeds no limit."""
        most, money = self.limit, self.limit.dollars
        seconds = self._seconds + (perf_counter() - self._began if self._reserved.calls else 0.0)
        for is_used, part in (
            (most.calls is not None and used.calls + need.calls > most.calls, Limit(calls=most.calls)),
            (most.minutes is not None and seconds >= most.minutes * 60, Limit(minutes=most.minutes)),
        ):
            if is_used:
                return f"the limit of {part} of {self.name} is used up: raise it, or stop here"
        if most.tokens is not None and used.tokens + need.tokens > most.tokens:
            return (
                f"{used.tokens} of {most.tokens} tokens of {self.name} are used up, and the next call needs "
                f"{need.tokens} or more: raise the limit, or stop"
            )
        if money is None:
            return None
        if self._spent.dollars is None:
            return (
                f"the price of {self.name} is unknown, so a limit of {money:g} dollars cannot be kept: "
                "limit calls or tokens instead"
            )
        if need.money == math.inf:
            return f"the price of {self.name} is unknown, and the limit is 0 dollars: limit calls or tokens instead"
        if used.money + need.money > money or 0 < money <= used.money:
            return f"{used.money:.4f} of {money:g} dollars for {self.name} are used up: raise the limit, or stop"
        return None


def list_budgets(model: LanguageModel) -> Iterator[Spender]:
    """The budgets that its asks count against: that of the run, and those of its wrappers."""
    if budget := current_run().budget:
        yield budget
    while isinstance(model, Wrapped):
        for wrapper in model.wrappers:
            if isinstance(budget := getattr(wrapper, "__self__", None), Budget):  # its `ask` is the wrapper
                yield budget
        model = model.inner


async def ask_within_run(model: LanguageModel, role: Role[In, Out], given: In) -> Out:
    """Ask the model within the budget of the run, if it has one; a wrapper for inside of the cache."""
    budget = current_run().budget
    return await (budget.ask(model, role, given) if budget else model.ask(role, given))


def stop_after(most: int) -> Wrapper:
    """A wrapper that stops after too many failures in a row: further calls would cost and give nothing.

    It raises `KeepsFailing` when `most` asks of a run (`open_run`) failed with no reply between them. An ask counts
    once, with all its retries and its repair, when it ends. For inside of the cache: what is kept says nothing about
    the model.
    """

    async def ask(model: LanguageModel, role: Role[In, Out], given: In) -> Out:
        used = current_run().used
        try:
            output = await model.ask(role, given)
        except (ModelUnavailable, BudgetExceeded):
            raise
        except ModelError as error:
            if used is not None:
                used.failures += 1
                if used.failures >= most:
                    raise KeepsFailing(_explain_stop(model.name, used, error)) from error
            raise
        if used is not None:
            used.replies += 1
            used.failures = 0
        return output

    return ask


def _explain_stop(name: str, used: Meter, last: ModelError) -> str:
    spent = used.total
    price = "at an unknown price" if spent.dollars is None else f"for {spent.dollars:.4f} dollars"
    return (
        f"{used.failures} calls of {name} failed with no reply between them, so this was stopped. The last reason: "
        f"{last}. Kept: {used.replies} replies, for which the next try does not ask again. Spent: {spent.calls} "
        f"requests and {spent.input_tokens + spent.output_tokens} tokens {price}. Mend the cause or name another "
        "model, then try again; max_failures sets how many failures are too many"
    )


class _Ask:
    """The permit of one ask. `announced` says whether the ask has announced a request."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self.announced = False

    async def reserve(self, request: Request) -> int:
        self.announced = True
        return await self._account.reserve(request)

    def settle(self, request: Request, spent: Cost) -> None:
        self._account.settle(request, spent)


def _wake(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_result(None)
