"""Memories that workers of a pool build and ask: this process judges and writes the journal, they do the rest.

A worker makes the tome in a folder of its own. Every reply of a model is kept first at the desk (`shared_desk.py`), so
that a memory which begins again on another worker pays for nothing twice.
"""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tomewise.cluster.pool_worker import Workplace
from tomewise.cluster.worker_pool import WorkerPool
from tomewise.concurrency import run_side_by_side
from tomewise.errors import UsageError
from tomewise.evaluate.asking import Asking, KeyedItem
from tomewise.evaluate.design import Design
from tomewise.evaluate.items import Dataset
from tomewise.evaluate.memories import Build, open_memory
from tomewise.evaluate.replay import PaidOnce
from tomewise.evaluate.shared_desk import BudgetedAtDesk, DeskCalls, Message, Opened, Receive, reach
from tomewise.language.failures import StopAtFailures
from tomewise.language.prompts import Prompts
from tomewise.run import change_run
from tomewise.systems.registry import Variant
from tomewise.types import Document

_FIELDS = ("retrieval_only", "passage_tokens", "overlap", "short_answers", "max_failures", "seed")  # of a `Design`


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupWork:
    """What a worker needs for one memory: the `questions` are keys with the name of a variant and an item.

    `openie` are the extractions that the dataset brings. `fields` are those of the `Design`, but for what the worker
    has itself. With `has_budget` each request is announced to the desk.
    """

    number: int
    dataset: str
    documents: tuple[Document, ...]
    variants: tuple[Variant, ...]
    questions: tuple[KeyedItem, ...]
    openie: bytes | None
    has_budget: bool
    fields: Mapping[str, Any]


class GroupsOnWorkers:
    """Gives each worker one memory at a time, with all its questions."""

    def __init__(self, experiment: Design, pool: WorkerPool, desk: Any, *, has_budget: bool) -> None:
        self._pool = pool
        self._desk = desk
        self._has_budget = has_budget
        self._places = asyncio.Semaphore(max(1, pool.size))
        self._receivers: dict[int, Receive] = {}
        self._dataset = experiment.dataset.name
        self._openie = experiment.dataset.openie
        self._fields = {"metrics": (), **{name: getattr(experiment, name) for name in _FIELDS}}

    async def ask(
        self,
        documents: tuple[Document, ...],
        variants: Sequence[Variant],
        questions: Sequence[KeyedItem],
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
                has_budget=self._has_budget,
                fields=self._fields,
            )
            await asyncio.wrap_future(self._pool.submit("run_group", pickle.dumps((ask_group, work)), self._desk))

    async def listen(self) -> None:
        """Hand on messages, for ever. Raises TomewiseError when the desk is lost."""
        while True:
            for number, message in await reach(self._desk.take.remote()):
                self._receivers[number](message)


async def ask_group(place: Workplace, desk: Any, work: GroupWork) -> None:
    """Build a memory in a folder of its own and ask all questions over it. Runs on a worker."""
    model = place.model
    if work.has_budget:
        model = BudgetedAtDesk(model, desk, await reach(desk.begin.remote(work.number)))
    model = StopAtFailures(model, work.fields["max_failures"])
    builds: dict[str, Build] = {}
    slots = asyncio.Semaphore(place.limit)
    with TemporaryDirectory(prefix="tomewise-", ignore_cleanup_errors=True) as folder, change_run(must_keep=True):
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
            builds.__setitem__,
        )

        async def send(message: Message) -> None:
            await reach(desk.put.remote(work.number, message))

        try:
            await send(Opened(builds=builds, refused=memory.refused))
            async with run_side_by_side() as under_way:
                await asking.begin_all(work.questions, work.variants, memory, slots, under_way, send)
        finally:
            memory.tome.close()


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


_MOVE = "put it in a module that is installed on every machine, and import it from there"
