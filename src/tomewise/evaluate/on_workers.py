"""Memories that workers of a pool build and ask: this process judges and writes the journal, they do the rest.

A worker makes the tome in a folder of its own. Every reply of a model is kept first on the machine of this process, by
one actor there, so that a memory which begins again on another worker pays for nothing twice.
"""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

from tomewise.cluster.pool_worker import Failed, Workplace
from tomewise.cluster.worker_pool import WorkerPool
from tomewise.concurrency import run_side_by_side
from tomewise.errors import TomewiseError, UsageError
from tomewise.evaluate.asking import Asking
from tomewise.evaluate.design import Design
from tomewise.evaluate.items import Dataset, Item
from tomewise.evaluate.memories import Build, open_memory
from tomewise.evaluate.replay import PaidOnce
from tomewise.evaluate.rows import Row
from tomewise.language.failures import StopAtFailures
from tomewise.language.prompts import Prompts
from tomewise.systems.registry import Variant
from tomewise.tome.open_store import open_store
from tomewise.types import Document


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A memory was built: what that took by system, and why systems are left out."""

    builds: Mapping[str, Build]
    refused: Mapping[str, str]


Message: TypeAlias = Opened | Row
Receive: TypeAlias = Callable[[Message], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupWork:
    """What a worker needs for one memory: the `questions` are keys with the name of a variant and an item.

    `openie` are the extractions that the dataset brings. `fields` are those of the `Design`, but for what the worker
    has itself.
    """

    number: int
    dataset: str
    documents: tuple[Document, ...]
    variants: tuple[Variant, ...]
    questions: tuple[tuple[str, str, Item], ...]
    openie: bytes | None
    fields: Mapping[str, Any]


class Desk:
    """Keeps replies for all workers, and their messages until the driver takes them. It runs as one actor."""

    def __init__(self, path: Path) -> None:
        self._store = open_store(path)
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
        result = await _reach(self._desk.use_calls.remote(verb, key, named))
        if isinstance(result, Failed):
            raise result.error
        return result


class GroupsOnWorkers:
    """Gives each worker one memory at a time, with all its questions."""

    def __init__(self, experiment: Design, pool: WorkerPool, desk: Any) -> None:
        self._pool = pool
        self._desk = desk
        self._places = asyncio.Semaphore(max(1, pool.size))
        self._receivers: dict[int, Receive] = {}
        self._dataset = experiment.dataset.name
        self._openie = experiment.dataset.openie
        self._fields = {
            "metrics": (),
            **{name: getattr(experiment, name) for name in ("retrieval_only", "passage_tokens", "overlap")},
            **{name: getattr(experiment, name) for name in ("short_answers", "max_failures", "seed")},
        }

    async def ask(
        self,
        documents: tuple[Document, ...],
        variants: Sequence[Variant],
        questions: Sequence[tuple[str, str, Item]],
        receive: Receive,
    ) -> None:
        """Let a worker build a memory and ask; `receive` gets what it sends, a part of it twice if a worker dies.

        The last messages may come after the end. Raises what stopped the work, with the name of the machine.
        """
        number = len(self._receivers)
        self._receivers[number] = receive
        async with self._places:
            work = GroupWork(
                number=number,
                documents=documents,
                variants=tuple(variants),
                questions=tuple(questions),
                dataset=self._dataset,
                openie=self._openie.read_bytes() if self._openie else None,
                fields=self._fields,
            )
            await asyncio.wrap_future(self._pool.submit("run_group", pickle.dumps((ask_group, work)), self._desk))

    async def listen(self) -> None:
        """Hand on messages, for ever. Raises TomewiseError when the desk is lost."""
        while True:
            for number, message in await _reach(self._desk.take.remote()):
                self._receivers[number](message)


async def ask_group(place: Workplace, desk: Any, work: GroupWork) -> None:
    """Build a memory in a folder of its own and ask all questions over it. Runs on a worker."""
    model = StopAtFailures(place.model, work.fields["max_failures"])
    variants = {variant.name: variant for variant in work.variants}
    builds: dict[str, Build] = {}
    slots = asyncio.Semaphore(place.limit)
    with TemporaryDirectory(prefix="tomewise-", ignore_cleanup_errors=True) as folder:
        openie = None
        if work.openie is not None:
            openie = Path(folder) / "openie.jsonl"
            openie.write_bytes(work.openie)
        experiment = Design(
            dataset=Dataset(name=work.dataset, documents=(), items=(), openie=openie),
            variants=work.variants,
            model=PaidOnce(model, Prompts(place.prompts), DeskCalls(desk)),
            embedder=place.embedder,
            prompts=place.prompts,
            **work.fields,
        )
        asking = Asking(experiment)
        memory = await open_memory(
            experiment,
            work.variants,
            work.documents,
            Path(folder) / "memory.tome",
            lambda _: None,
            lambda variant, build: builds.update({variant.name: build}),
        )

        async def ask(key: str, system: str, item: Item) -> None:
            async with slots:
                row = await asking.ask(key, variants[system], item, memory)
                await _reach(desk.put.remote(work.number, row))

        try:
            await _reach(desk.put.remote(work.number, Opened(builds=builds, refused=memory.refused)))
            async with run_side_by_side() as under_way:
                for key, system, item in work.questions:
                    if system not in memory.refused:
                        under_way.create_task(ask(key, system, item))
        finally:
            memory.tome.close()


def check_importable(variants: Sequence[Variant]) -> None:
    """Raise UsageError for a system that is an object which no other process can import."""
    for variant in variants:
        try:
            written = pickle.dumps(variant)
        except Exception as error:
            raise UsageError(f"{_explain(variant)} ({error}): {_MOVE}") from error
        if b"__main__" in written:
            raise UsageError(f"{_explain(variant)}: {_MOVE}")


async def _reach(call: Awaitable[Any]) -> Any:
    """The result of a call of the desk. Raises TomewiseError when the desk is lost: it raises nothing itself."""
    try:
        return await call
    except Exception as error:
        raise TomewiseError(
            f"the process that keeps replies on the machine of the evaluation ended ({type(error).__name__}): repeat "
            "the command, which goes on from here"
        ) from error


def _explain(variant: Variant) -> str:
    return f"the system {variant.name!r} is a function that workers cannot import"


_MOVE = "put it in a module that is installed on every machine, and import it from there"
