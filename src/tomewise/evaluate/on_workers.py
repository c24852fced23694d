"""Memories that workers of a pool build and ask: this process judges and writes the journal, they do the rest.

A worker makes the tome in a folder of its own. Every reply of a model is kept first at the hub (`hub.py`), so that
a memory which begins again on another worker pays for nothing twice.
"""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tomewise.cluster.pool_worker import Workplace
from tomewise.cluster.worker_pool import WorkerPool
from tomewise.errors import UsageError
from tomewise.evaluate.asking import GroupsHere, KeyedItem, Message, Send
from tomewise.evaluate.design import Design
from tomewise.evaluate.hub import BudgetedAtHub, HubCalls, reach
from tomewise.evaluate.replay import PaidOnce
from tomewise.language.failures import StopAtFailures
from tomewise.language.prompts import Prompts
from tomewise.run import change_run
from tomewise.systems.registry import Variant
from tomewise.types import Document


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupWork:
    """What a worker needs for one memory: the `questions` are keys with the name of a variant and an item.

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
        own: dict[str, Any] = dict.fromkeys(("model", "embedder", "judge_model", "prompts"))
        self._experiment = replace(experiment, metrics=(), judges=(), **own)

    async def ask_group(
        self, documents: tuple[Document, ...], variants: tuple[Variant, ...], questions: Sequence[KeyedItem], send: Send
    ) -> None:
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
                    self._experiment,
                    dataset=replace(dataset, documents=documents, items=(), openie=None),
                    variants=variants,
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
        model = BudgetedAtHub(model, hub, await reach(hub.begin.remote(work.number)))
    model = StopAtFailures(model, experiment.max_failures)

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
            model=PaidOnce(model, Prompts(place.prompts), HubCalls(hub)),
            embedder=place.embedder,
            prompts=place.prompts,
        )
        groups = GroupsHere(experiment, Path(folder), asyncio.Semaphore(place.limit))
        await groups.ask_group(experiment.dataset.documents, experiment.variants, work.questions, send)


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
