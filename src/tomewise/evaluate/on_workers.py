"""Memories that workers of a pool build and ask: this process judges and writes the journal, they do the rest.

A worker makes the tome in a folder of its own. Every reply of a model is kept first at the hub, one actor beside this
process, so that a memory which begins again on another worker pays for nothing twice.
"""

from __future__ import annotations

import asyncio
import pickle
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

from tomewise.cluster.pool_worker import Failed, Workplace, attempt
from tomewise.cluster.worker_pool import WorkerPool
from tomewise.errors import BudgetExceeded, TomewiseError, UsageError
from tomewise.evaluate.asking import GroupsHere, KeyedItem, Message, Send
from tomewise.evaluate.design import Design
from tomewise.evaluate.replay import PaidOnce
from tomewise.language.budget import Account, Budget, stop_after
from tomewise.language.prompts import Prompts
from tomewise.language.wrapped import Wrapped
from tomewise.run import Request, change_run
from tomewise.systems.registry import Variant
from tomewise.tome.open_store import open_store
from tomewise.types import Cost, Document

_MOVE = "put it in a module that is installed on every machine, and import it from there"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupWork:
    """What a worker needs for one memory: the `questions` are keys with a variant and an item.

    The `experiment` lacks what the worker has itself, and what this process does. Its dataset has the documents of the
    memory; `openie` are the extractions that the dataset brings. With `has_budget` the hub hears of each request.
    """

    number: int
    experiment: Design
    questions: tuple[KeyedItem, ...]
    openie: bytes | None
    has_budget: bool


class GroupsOnWorkers:
    """Gives each worker one memory at a time, with all its questions."""

    def __init__(self, experiment: Design, pool: WorkerPool, hub: Any, *, has_budget: bool) -> None:
        self._pool = pool
        self._hub = hub
        self._has_budget = has_budget
        self._places = asyncio.Semaphore(max(1, pool.size))
        self._senders: list[Send] = []
        # A worker has these itself; objects that cannot be sent may be among them.
        own: dict[str, Any] = dict.fromkeys(("model", "embedder", "judge_model", "prompts"))
        self._experiment = replace(experiment, metrics=(), judges=(), **own)

    async def ask_group(self, documents: tuple[Document, ...], questions: Sequence[KeyedItem], send: Send) -> None:
        """Let a worker build a memory and ask; `send` gets what comes out, a part of it twice if a worker dies.

        The last messages may come after the end. Raises what stopped the work, with the name of the machine.
        """
        number = len(self._senders)
        self._senders.append(send)
        dataset = self._experiment.dataset
        async with self._places:
            work = GroupWork(
                number=number,
                experiment=replace(
                    self._experiment, dataset=replace(dataset, documents=documents, items=(), openie=None)
                ),
                questions=tuple(questions),
                openie=dataset.openie.read_bytes() if dataset.openie else None,
                has_budget=self._has_budget,
            )
            await asyncio.wrap_future(self._pool.submit("run_group", pickle.dumps((ask_on_worker, work)), self._hub))

    async def listen(self) -> None:
        """Hand on messages, for ever. Raises TomewiseError when the hub is lost."""
        while True:
            for number, message in await reach(self._hub.take.remote()):
                await self._senders[number](message)


async def ask_on_worker(place: Workplace, hub: Any, work: GroupWork) -> None:
    """Build a memory in a folder of its own and ask all questions over it. Runs on a worker."""
    model, experiment = place.model, work.experiment
    if work.has_budget:
        model = Wrapped(model, HubAccount(hub, await reach(hub.begin.remote(work.number))).ask)

    async def send(message: Message) -> None:
        await reach(hub.put.remote(work.number, message))

    with TemporaryDirectory(prefix="tomewise-", ignore_cleanup_errors=True) as folder, change_run(must_keep=True):
        openie = None
        if work.openie is not None:
            openie = Path(folder) / "openie.jsonl"
            openie.write_bytes(work.openie)
        experiment = replace(
            experiment,
            dataset=replace(experiment.dataset, openie=openie),
            model=Wrapped(model, PaidOnce(Prompts(place.prompts), HubCalls(hub)), stop_after(experiment.max_failures)),
            embedder=place.embedder,
            prompts=place.prompts,
        )
        groups = GroupsHere(experiment, Path(folder), asyncio.Semaphore(place.limit))
        await groups.ask_group(experiment.dataset.documents, work.questions, send)


def check_importable(variants: Sequence[Variant]) -> None:
    """Raise UsageError for a system that is an object which no other process can import."""
    for variant in variants:
        what = f"the system {variant.name!r} is a function that workers cannot import"
        try:
            written = pickle.dumps(variant)
        except Exception as error:
            raise UsageError(f"{what} ({error}): {_MOVE}") from error
        if b"__main__" in written:
            raise UsageError(f"{what}: {_MOVE}")


# ---------------------------------------------------------------- the hub

Place: TypeAlias = tuple[int, int]  # who reserves: the number of a group, and how often that group has begun
HERE: Place = (-1, 0)  # the process of the evaluation; groups have 0, 1, ...


class Hub:
    """Keeps replies for all workers, their messages until the driver takes them, and what they may spend together.

    It runs as one actor, which raises nothing: what is wrong is returned as `Failed`.
    """

    def __init__(self, path: Path, make_budget: Callable[[], Budget] | None) -> None:
        self._store = open_store(path)
        self._budget = make_budget() if make_budget else Budget(name="")
        # By place and ticket, requests that the budget lets pass, or will: then it is being asked.
        self._reserved: dict[tuple[Place, str], tuple[Request, asyncio.Task[int]]] = {}
        self._begun: Counter[int] = Counter()  # how often each group has begun
        self._messages: list[tuple[int, Message]] = []
        self._arrived = asyncio.Event()

    async def use_calls(self, verb: str, key: str, named: Mapping[str, str]) -> Any:
        """The result of a method of the cache of calls, or `Failed`."""
        return await attempt(partial(getattr(self._store.calls, verb), key, **named))

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
            request, _ = self._reserved[place, ticket]
            cost = request.price(request.input_tokens, 0)
            await self.settle(place, ticket, Cost(calls=1, input_tokens=request.input_tokens, dollars=cost))
        self._begun[number] += 1
        return number, self._begun[number]

    async def check(self) -> Failed | None:
        """See `Account`."""
        return await attempt(self._budget.check)

    async def reserve(self, place: Place, ticket: str, request: Request) -> int | Failed:
        """See `Permit`; `settle` with the same place and ticket ends it, also while it waits."""
        return await attempt(self._reserve, place, ticket, request)

    async def settle(self, place: Place, ticket: str, spent: Cost) -> None:
        """See `Permit`. A reservation that is unknown has been settled: its worker was given up."""
        if (place, ticket) not in self._reserved:
            return
        request, granting = self._reserved.pop((place, ticket))
        if not granting.done():
            granting.cancel()
        elif granting.exception() is None:
            self._budget.settle(request, spent)

    async def count(self, spent: Cost) -> None:
        """See `Account`."""
        self._budget.count(spent)

    async def _reserve(self, place: Place, ticket: str, request: Request) -> int:
        number, times = place
        if times != self._begun[number]:
            raise BudgetExceeded("the request was given up: its work goes on with another worker")
        granting = asyncio.create_task(self._budget.reserve(request))
        self._reserved[place, ticket] = request, granting
        await asyncio.wait([granting])
        try:
            return granting.result()
        except BudgetExceeded:
            self._reserved.pop((place, ticket), None)
            raise
        except asyncio.CancelledError:
            raise BudgetExceeded("the request was given up while it waited") from None


class HubCalls:
    """The cache of calls of a `Hub`, for every process of the cluster."""

    def __init__(self, hub: Any) -> None:
        self._hub = hub

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
        return await reach(self._hub.use_calls.remote(verb, key, named))


class HubAccount(Account):
    """The account of a hub, which all workers and the process of the evaluation share."""

    def __init__(self, hub: Any, place: Place) -> None:
        self._hub = hub
        self._place = place
        self._tickets: defaultdict[int, list[str]] = defaultdict(list)  # by the id of a request that was let pass

    async def check(self) -> None:
        await reach(self._hub.check.remote())

    async def reserve(self, request: Request) -> int:
        ticket = token_hex(8)
        try:
            granted = await reach(self._hub.reserve.remote(self._place, ticket, request))
        except asyncio.CancelledError:
            self._hub.settle.remote(self._place, ticket, Cost())
            raise
        self._tickets[id(request)].append(ticket)  # a request may be announced again while it is under way
        return int(granted)

    def settle(self, request: Request, spent: Cost) -> None:
        tickets = self._tickets[id(request)]
        self._hub.settle.remote(self._place, tickets.pop(), spent)
        if not tickets:
            del self._tickets[id(request)]

    def count(self, spent: Cost) -> None:
        self._hub.count.remote(spent)


async def reach(call: Awaitable[Any]) -> Any:
    """The result of a call of the hub. Raises the error that the hub returned, and TomewiseError when it is lost."""
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
