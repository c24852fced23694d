"""The desk: one actor beside the driver that keeps, for all workers, their replies, their messages and one budget."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, TypeAlias

from tomewise.cluster.pool_worker import Failed
from tomewise.errors import BudgetExceeded, TomewiseError
from tomewise.evaluate.memories import Build
from tomewise.evaluate.rows import Row
from tomewise.language.budget import Budget, ask_within
from tomewise.language.forwarding import Forwarding
from tomewise.run import Request
from tomewise.tome.open_store import open_store
from tomewise.types import Cost, LanguageModel

if TYPE_CHECKING:
    from tomewise.types import In, Out, Role

Place: TypeAlias = tuple[int, int]  # who reserves: the number of a group, and how often that group has begun
HERE: Place = (-1, 0)  # the process of the evaluation; groups have 0, 1, ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A memory was built: what that took by system, and why systems are left out."""

    builds: Mapping[str, Build]
    refused: Mapping[str, str]


Message: TypeAlias = Opened | Row
Receive: TypeAlias = Callable[[Message], None]


@dataclass(frozen=True, slots=True)
class _Reservation:
    """A request that a budget lets pass, or will: then `granting` is under way."""

    request: Request
    granting: asyncio.Task[int]


class Desk:
    """Keeps replies for all workers, their messages until the driver takes them, and what they may spend together.

    It runs as one actor, which raises nothing: what is wrong is returned as `Failed`.
    """

    def __init__(self, path: Path, make_budget: Callable[[], Budget] | None) -> None:
        self._store = open_store(path)
        self._budget = make_budget() if make_budget else None
        self._reserved: dict[tuple[Place, str], _Reservation] = {}  # by place and ticket
        self._begun: Counter[int] = Counter()  # how often each group has begun
        self._messages: list[tuple[int, Message]] = []
        self._arrived = asyncio.Event()

    async def use_calls(self, verb: str, key: str, named: Mapping[str, str]) -> Any:
        """The result of a method of the cache of calls, or `Failed`."""
        try:
            return await getattr(self._store.calls, verb)(key, **named)
        except Exception as error:  # noqa: BLE001 - whoever called raises it
            return Failed.of(error)

    async def put(self, number: int, message: Message) -> None:
        """Add a message about the group of that number."""
        self._messages.append((number, message))
        self._arrived.set()

    async def take(self) -> list[tuple[int, Message]]:
        """Wait for messages, and take all in their order."""
        await self._arrived.wait()
        self._arrived.clear()
        taken, self._messages = self._messages, []
        return taken

    async def begin(self, number: int) -> Place:
        """A group begins, perhaps again: requests that a dead worker had sent for it count as sent, without a reply.

        Returns the place where it reserves from now on. A worker that was only out of reach reserves nothing any more.
        """
        for place, ticket in [key for key in self._reserved if key[0][0] == number]:
            request = self._reserved[place, ticket].request
            cost = request.price(request.input_tokens, 0)
            await self.settle(place, ticket, Cost(calls=1, input_tokens=request.input_tokens, dollars=cost))
        self._begun[number] += 1
        return number, self._begun[number]

    async def check(self) -> Failed | None:
        """See `Account`."""
        failed: Failed | None = await self._use_budget(lambda budget: budget.check())
        return failed

    async def reserve(self, place: Place, ticket: str, request: Request) -> int | Failed:
        """See `Permit`; `settle` with the same place and ticket ends it, also while it waits."""
        result: int | Failed = await self._use_budget(lambda budget: self._reserve(budget, place, ticket, request))
        return result

    async def settle(self, place: Place, ticket: str, spent: Cost) -> None:
        """See `Permit`. A reservation that is unknown has been settled: its worker was given up."""
        reservation = self._reserved.pop((place, ticket), None)
        if reservation is None or self._budget is None:
            return
        granting = reservation.granting
        if not granting.done():
            granting.cancel()
        elif granting.exception() is None:
            self._budget.settle(reservation.request, spent)

    async def count(self, spent: Cost) -> None:
        """See `Account`."""
        if self._budget is not None:
            self._budget.count(spent)

    async def _use_budget(self, use: Callable[[Budget], Awaitable[Any]]) -> Any:
        if self._budget is None:
            raise RuntimeError("a desk without a budget is not asked for one")
        try:
            return await use(self._budget)
        except BudgetExceeded as error:
            return Failed.of(error)

    async def _reserve(self, budget: Budget, place: Place, ticket: str, request: Request) -> int:
        number, times = place
        if times != self._begun[number]:
            raise BudgetExceeded("the request was given up: its work goes on with another worker")
        granting = asyncio.create_task(budget.reserve(request))
        self._reserved[place, ticket] = _Reservation(request, granting)
        await asyncio.wait([granting])
        try:
            return granting.result()
        except BudgetExceeded:
            self._reserved.pop((place, ticket), None)
            raise
        except asyncio.CancelledError:
            raise BudgetExceeded("the request was given up while it waited") from None


class DeskCalls:
    """The cache of calls of a `Desk`, for every process of the cluster."""

    def __init__(self, desk: Any) -> None:
        self._desk = desk

    async def get(self, key: str, *, since: str = "") -> str | None:
        """See `CallCache`."""
        found: str | None = await self._use("get", key, since=since)
        return found

    async def keep(self, key: str, *, role: str, model: str, reply: str, since: str = "") -> None:
        """See `CallCache`."""
        await self._use("keep", key, role=role, model=model, reply=reply, since=since)

    async def drop(self, key: str) -> None:
        """See `CallCache`."""
        await self._use("drop", key)

    async def _use(self, verb: str, key: str, **named: str) -> Any:
        return await reach(self._desk.use_calls.remote(verb, key, named))


class BudgetedAtDesk(Forwarding):
    """A model within the budget of a desk, which all workers and the process of the evaluation share."""

    def __init__(self, model: LanguageModel, desk: Any, place: Place) -> None:
        super().__init__(model)
        self._desk = desk
        self._place = place

    async def ask(self, role: Role[In, Out], given: In) -> Out:
        """As the model. Raises `BudgetExceeded` before a request that would exceed a limit."""
        return await ask_within(_DeskAccount(self._desk, self._place), self._model, role, given)


class _DeskAccount:
    """The account of a desk, for one ask, which may send several requests side by side."""

    def __init__(self, desk: Any, place: Place) -> None:
        self._desk = desk
        self._place = place
        self._tickets: defaultdict[int, list[str]] = defaultdict(list)  # by the id of a request that was let pass

    async def check(self) -> None:
        await reach(self._desk.check.remote())

    async def reserve(self, request: Request) -> int:
        ticket = token_hex(8)
        try:
            granted = await reach(self._desk.reserve.remote(self._place, ticket, request))
        except asyncio.CancelledError:
            self._desk.settle.remote(self._place, ticket, Cost())
            raise
        self._tickets[id(request)].append(ticket)  # a request may be announced again while it is under way
        return int(granted)

    def settle(self, request: Request, spent: Cost) -> None:
        self._desk.settle.remote(self._place, self._tickets[id(request)].pop(), spent)

    def count(self, spent: Cost) -> None:
        self._desk.count.remote(spent)


async def reach(call: Awaitable[Any]) -> Any:
    """The result of a call of the desk. Raises the error that the desk returned, and TomewiseError when it is lost."""
    try:
        result = await call
    except Exception as error:
        raise TomewiseError(
            f"the process that keeps replies on the machine of the evaluation ended ({type(error).__name__}): repeat "
            "the command, which goes on from here"
        ) from error
    if isinstance(result, Failed):
        raise result.error
    return result
