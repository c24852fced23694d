"""Ask systems questions over a memory, and make rows of what comes out."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

from tomewise.concurrency import run_side_by_side
from tomewise.errors import ModelError
from tomewise.evaluate.design import DEPTH, Design
from tomewise.evaluate.digests import digest_documents, digest_prompts
from tomewise.evaluate.items import Item, Prediction
from tomewise.evaluate.memories import Build, Memory, open_memory
from tomewise.evaluate.replay import remember_question, replay
from tomewise.evaluate.rows import Row, make_usage_record, read_answer_fields
from tomewise.evaluate.shared_desk import Opened, Receive
from tomewise.run import Meter, open_run
from tomewise.systems.answer import answer_question
from tomewise.systems.kit import System
from tomewise.systems.registry import Variant
from tomewise.types import Document, Report

KeyedItem: TypeAlias = tuple[str, str, Item]  # with the key of its row and the name of a variant


class Asking:
    """Asks the systems of an experiment, whose model pays for each reply once."""

    def __init__(self, experiment: Design) -> None:
        self._experiment = experiment
        self._prompts = digest_prompts(experiment.prompts)[:16]

    async def ask(self, key: str, variant: Variant, item: Item, memory: Memory) -> Row:
        """Ask a question and return its row, also where the question fails."""
        row = Row(
            key=key,
            system=variant.name,
            item=item,
            asked=datetime.now(UTC).isoformat(timespec="seconds"),
            versions=self._describe_versions(variant),
        )
        system = memory.systems[variant.name]
        if isinstance(system, ModelError):
            return replace(row, error=_describe_error(system))
        with remember_question(), open_run() as used:
            try:
                fields = await self._answer_and_rank(system, item, memory, used)
            except ModelError as error:
                return replace(row, error=_describe_error(error), usage=make_usage_record(used))
        return replace(row, **fields)

    async def begin_all(
        self,
        questions: Sequence[KeyedItem],
        variants: Sequence[Variant],
        memory: Memory,
        slots: asyncio.Semaphore,
        under_way: asyncio.TaskGroup,
        send: Callable[[Row], Awaitable[None]],
    ) -> None:
        """Begin to ask each question when a slot is free, but for refused systems; `send` gets the rows."""
        by_name = {variant.name: variant for variant in variants}

        async def ask(key: str, system: str, item: Item) -> None:
            try:
                await send(await self.ask(key, by_name[system], item, memory))
            finally:
                slots.release()

        for key, system, item in questions:
            if system not in memory.refused:
                await slots.acquire()
                under_way.create_task(ask(key, system, item))

    async def _answer_and_rank(self, system: System, item: Item, memory: Memory, used: Meter) -> Mapping[str, Any]:
        """The fields of a row: the answer of a system, and a ranking where the item has gold.

        The ranking is that of the system's retriever, or of what the answering call was shown.
        """
        if self._experiment.retrieval_only:
            if system.retriever is None:
                raise RuntimeError("a system without a retriever is refused before its first question")
            evidence = await system.retriever.retrieve(item.question.text, DEPTH, within=item.question.within)
            fields: dict[str, Any] = {
                "resolved": True,
                "usage": make_usage_record(used),
                "fallbacks": dict(used.fallbacks),
            }
            prediction = Prediction()
        else:
            # Every question gets an answer, also a guess: the row says how sure it is, and the table shows the risk.
            answer = await answer_question(system, replace(item.question, force=True, current=True))
            fields = {
                **read_answer_fields(answer),
                "usage": make_usage_record(used),
                "fallbacks": dict(used.fallbacks),
            }
            if not (item.supporting or item.spans):
                return fields
            prediction = replace(fields["prediction"], shown=memory.find_shown(answer.evidence))
            if system.retriever is None:
                fields["ranked_by"], evidence = "shown", list(answer.evidence)
            else:
                with replay():
                    evidence = await system.retriever.retrieve(item.question.text, DEPTH, within=item.question.within)
        by_one = system.retriever is not None
        text = item.question.text
        ranked = await asyncio.to_thread(memory.rank_passages, text, evidence, DEPTH, of_one_retriever=by_one)
        return {**fields, "prediction": replace(prediction, ranked=ranked)}

    def _describe_versions(self, variant: Variant) -> dict[str, Any]:
        experiment = self._experiment
        return {
            "tomewise": version("tomewise"),
            "prompts": self._prompts,
            "model": experiment.model.name,
            "embedder": experiment.embedder.name,
            "settings": dict(variant.settings),
            "seed": experiment.seed,
        }


class GroupsHere:
    """Opens one memory at a time, in `tomes`; the next one is built while the last questions over one are asked."""

    def __init__(self, experiment: Design, tomes: Path, slots: asyncio.Semaphore, report: Report) -> None:
        self._experiment = experiment
        self._asking = Asking(experiment)
        self._tomes = tomes
        self._slots = slots
        self._report = report
        self._opening = asyncio.Lock()

    async def ask(
        self,
        documents: tuple[Document, ...],
        variants: Sequence[Variant],
        questions: Sequence[KeyedItem],
        receive: Receive,
    ) -> None:
        """Build the memory of documents and ask over it; `receive` gets what comes out."""
        path = self._tomes / f"{self._experiment.name_memory(digest_documents(documents))}.tome"

        def record(system: str, build: Build) -> None:
            receive(Opened(builds={system: build}, refused={}))

        async def send(row: Row) -> None:
            receive(row)

        with ExitStack() as closing:
            async with run_side_by_side() as under_way, self._opening:
                memory = await open_memory(self._experiment, variants, documents, path, self._report, record)
                closing.callback(memory.tome.close)
                receive(Opened(builds={}, refused=memory.refused))
                await self._asking.begin_all(questions, variants, memory, self._slots, under_way, send)

    async def listen(self) -> None:
        """Nothing comes from elsewhere."""


def _describe_error(error: ModelError) -> str:
    return f"{type(error).__name__}: {error}"
