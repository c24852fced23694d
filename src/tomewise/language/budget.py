"""A limit on what a model may be asked."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

from tomewise.errors import BudgetExceeded
from tomewise.language.usage import Request, meter, permitting
from tomewise.types import LanguageModel, Spent

if TYPE_CHECKING:
    from tomewise.types import In, Out, Role


@dataclass(frozen=True, slots=True)
class _Amount:
    """What a request needs of a budget."""

    calls: int = 0
    tokens: int = 0
    money: float = 0.0

    def __add__(self, other: _Amount) -> _Amount:
        return _Amount(self.calls + other.calls, self.tokens + other.tokens, self.money + other.money)

    def __sub__(self, other: _Amount) -> _Amount:
        return _Amount(self.calls - other.calls, self.tokens - other.tokens, self.money - other.money)


class Budgeted:
    """Refuses the request after which a limit would be passed, counted from when this was made.

    Every request that is sent is one of `calls`: retries, repairs and refusals too. `tokens` (in and out) and `money`
    (dollars) are reserved before a request is sent, as the estimate of its prompt and the bound on its reply, and
    settled when it has ended. A request for which there is no room waits for those under way, since most replies stay
    far below their bound. Where none is under way, it is sent if at least its prompt fits, and refused if not: so
    `calls` is never passed, and the others by at most one reply (and by what an estimate is wrong). Where the server
    does not count, or a request was given up after it was sent, its prompt counts as estimated. A request whose price
    is unknown is sent alone; if its price is unknown afterwards too, a limit on money refuses all that follow.

    Put this inside of `Cached`: replies from the cache need no budget. A model that does not announce its requests by
    `usage.sending` is checked before each ask only, and counted by what it reports.
    """

    def __init__(
        self,
        model: LanguageModel,
        *,
        calls: int | None = None,
        tokens: int | None = None,
        money: float | None = None,
    ) -> None:
        self._model = model
        self._calls = calls
        self._tokens = tokens
        self._money = money
        self._spent = Spent()
        self._reserved = _Amount()  # by the requests under way
        self._waiting: list[asyncio.Future[None]] = []
        self._lock = Lock()  # on the three above: the event loops of several threads may ask

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def window(self) -> int:
        return self._model.window

    @property
    def spent(self) -> Spent:
        """What was spent so far, by requests that have ended."""
        return self._spent

    async def ask(self, role: Role[In, Out], given: In) -> Out:
        """As the model. Raises `BudgetExceeded` before a request that no limit leaves room for."""
        if lacking := self._lack_for(_Amount(calls=1, tokens=1), self._taken()):
            raise BudgetExceeded(lacking)
        asked = _Ask(self)
        with meter() as around, permitting(asked):
            try:
                return await self._model.ask(role, given)
            finally:
                if not asked.announced:
                    with self._lock:
                        self._spent += around.total

    def reckon(self, role: Role[In, Out], given: In) -> int:
        return self._model.reckon(role, given)

    async def rehearse(self, role: Role[In, Out], given: In) -> int | None:
        """Output tokens of the reply, where the model costs nothing to ask; None where it does."""
        inner = getattr(self._model, "rehearse", None)
        return None if inner is None else await inner(role, given)

    async def close(self) -> None:
        """Closes the model, where it has something to close."""
        if closing := getattr(self._model, "close", None):
            await closing()

    async def reserve(self, request: Request) -> None:
        """Wait for room and take it. Raises `BudgetExceeded` where there is none, nor will be."""
        while turn := self._reserve_or_queue(request):
            await turn

    def settle(self, request: Request, spent: Spent) -> None:
        """Give back what was reserved for the request and count what it took."""
        with self._lock:
            left = self._reserved - self._needs(request)[1]
            self._reserved = left if left.calls else _Amount()  # no remains of rounding
            self._spent += spent
            waiting, self._waiting = self._waiting, []
        for turn in waiting:
            if not turn.done():  # else whoever waited gave up, and its event loop may be closed
                turn.get_loop().call_soon_threadsafe(_wake, turn)

    def _reserve_or_queue(self, request: Request) -> asyncio.Future[None] | None:
        """None once there is room and it is taken; else what to wait for before the next try."""
        least, most = self._needs(request)
        with self._lock:
            if self._lack_for(most, self._taken() + self._reserved):
                if self._reserved.calls:
                    turn = asyncio.get_running_loop().create_future()
                    self._waiting.append(turn)
                    return turn
                if lacking := self._lack_for(least, self._taken()):
                    raise BudgetExceeded(lacking)
            self._reserved += most
        return None

    def _needs(self, request: Request) -> tuple[_Amount, _Amount]:
        """The least and the most that a request takes."""
        prompt, whole = request.input_tokens, request.input_tokens + request.output_bound
        if self._money is None:
            return _Amount(1, prompt), _Amount(1, whole)
        least, most = request.price(prompt, 0), request.price(prompt, request.output_bound)
        return _Amount(1, prompt, least or 0.0), _Amount(1, whole, self._money if most is None else most)

    def _taken(self) -> _Amount:
        spent = self._spent
        return _Amount(spent.calls, spent.input_tokens + spent.output_tokens, spent.cost or 0.0)

    def _lack_for(self, need: _Amount, taken: _Amount) -> str | None:
        """Why `need` has no room beside `taken`, with the remedy; None where it has."""
        if self._calls is not None and taken.calls + need.calls > self._calls:
            return f"the limit of {self._calls} calls of {self.name} is used up: raise it, or stop here"
        if self._tokens is not None and taken.tokens + need.tokens > self._tokens:
            return (
                f"{taken.tokens} of {self._tokens} tokens of {self.name} are used up, and the next call needs "
                f"{need.tokens} or more: raise the limit, or stop"
            )
        if self._money is None:
            return None
        if self._spent.cost is None:
            return (
                f"the price of {self.name} is unknown, so a limit of {self._money:g} dollars cannot be kept: "
                "limit calls or tokens instead"
            )
        if taken.money + need.money > self._money or taken.money >= self._money:
            return f"{taken.money:.4f} of {self._money:g} dollars for {self.name} are used up: raise the limit, or stop"
        return None


class _Ask:
    """One ask of a budget: whether it has announced any request."""

    def __init__(self, budget: Budgeted) -> None:
        self._budget = budget
        self.announced = False

    async def reserve(self, request: Request) -> None:
        self.announced = True
        await self._budget.reserve(request)

    def settle(self, request: Request, spent: Spent) -> None:
        self._budget.settle(request, spent)


def _wake(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_result(None)
