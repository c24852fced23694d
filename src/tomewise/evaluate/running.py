"""Running an experiment: every system is asked every question once, side by side, and nothing is asked twice."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tomewise import __version__
from tomewise.errors import ModelError, ModelUnavailable
from tomewise.evaluate.experiment import DEPTH, Experiment, check, documents_digest, prompts_digest
from tomewise.evaluate.items import Item, Prediction
from tomewise.evaluate.journal import Journal
from tomewise.evaluate.judges import Judge
from tomewise.evaluate.memories import Memory, remembered
from tomewise.evaluate.replay import one_question, replaying
from tomewise.evaluate.results import Results, about, journal_of, read_results, systems_before, write_about
from tomewise.evaluate.rows import Row, as_record, judged, latest, told
from tomewise.language.cached import Cached
from tomewise.language.prompts import Prompts
from tomewise.language.usage import meter
from tomewise.reports import usage_json
from tomewise.store.sqlite import SqliteStore
from tomewise.systems import System
from tomewise.together import side_by_side
from tomewise.tome import answered
from tomewise.types import Document, LanguageModel, Progress
from tomewise.variants import Variant

OnProgress = Callable[[Progress], None]
_PATIENCE = 5  # questions that may fail for want of the model, before one came through, until the run is given up


async def run(
    experiment: Experiment, out: Path, *, on_progress: OnProgress | None = None, retry_failed: bool = False
) -> Results:
    """Ask what was not asked yet, judge what was not judged yet, and return the rows of this experiment.

    Everything is kept in `out`: tomes, rows as they come, replies of judges. A question that fails is kept as failed
    and asked again only with `retry_failed`. Raises UsageError, StoreError, Locked (another run is at it), and
    ModelUnavailable when the first questions all fail for want of the model; their failures are then not kept.
    """
    check(experiment)
    folder = out / experiment.name()
    journal = journal_of(folder)
    with journal.appending(), _judge(experiment, out) as judge:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        write_about(folder, about(experiment, systems_before(folder), now))
        plan = _plan(experiment, journal, retry_failed)
        await _Run(experiment, journal, judge, out / "tomes", on_progress or (lambda _: None)).work(plan)
    asked = [variant.name for variant in experiment.variants]
    return read_results(folder).only(asked, {item.id for item in experiment.dataset.items})


@dataclass(frozen=True, slots=True)
class _Task:
    """A question to one system: its row where it was asked already, and the judges that have yet to judge it."""

    key: str
    variant: Variant
    item: Item
    row: Row | None
    judges: tuple[Judge, ...]


@dataclass(slots=True)
class _Group:
    """Tasks over the same documents."""

    documents: tuple[Document, ...]
    digest: str
    tasks: list[_Task] = field(default_factory=list)


def _plan(experiment: Experiment, journal: Journal, retry_failed: bool) -> list[_Group]:
    """All tasks by group; those with a row and no judge are done."""
    rows = latest(journal.read(), experiment.judging.name)
    kept = {row.key: row for row in rows}
    named = {(row.key, row.system): row for row in rows}
    prompts = prompts_digest(experiment.prompts)
    groups: dict[tuple[str, ...], _Group] = {}
    for item in experiment.dataset.items:
        if item.documents not in groups:
            groups[item.documents] = _group(experiment, item)
    for variant in experiment.variants:
        for item in experiment.dataset.items:
            group = groups[item.documents]
            key = experiment.key(variant, item, group.digest, prompts)
            row = named.get((key, variant.name), kept.get(key))
            if row is not None and (_wants_ranking(item, row) if not row.error else retry_failed):
                row = None
            if row is not None and (row.system, row.item) != (variant.name, item):
                # Asked already, but under another name, or before the gold was mended: scores follow what is true now.
                row = replace(row, system=variant.name, item=item, judgements={})
                journal.append(as_record(row))
            judges = tuple(judge for judge in experiment.judges if _unjudged(judge, item, row, retry_failed))
            group.tasks.append(_Task(key, variant, item, row, judges))
    return list(groups.values())


def _wants_ranking(item: Item, row: Row) -> bool:
    """Whether there is gold for a ranking by now, where there was none when the question was asked."""
    return bool(item.supporting or item.spans) and not (row.item.supporting or row.item.spans)


def _group(experiment: Experiment, item: Item) -> _Group:
    wanted = set(item.documents)
    documents = tuple(one for one in experiment.dataset.documents if not wanted or one.id in wanted)
    return _Group(documents, documents_digest(documents))


def _unjudged(judge: Judge, item: Item, row: Row | None, retry_failed: bool) -> bool:
    if not judge.applies(item) or (row is not None and row.error):
        return False
    found = row.judgements.get(judge.name) if row is not None else None
    return found is None or (retry_failed and found.error is not None)


@contextmanager
def _judge(experiment: Experiment, out: Path) -> Iterator[LanguageModel]:
    """The model that judges, with its replies kept."""
    if not experiment.judges:
        yield experiment.judging
        return
    store = SqliteStore.open(out / "judgements.tome")
    try:
        yield Cached(experiment.judging, Prompts(experiment.prompts), store.calls)
    finally:
        store.close()


class _Run:
    def __init__(
        self, experiment: Experiment, journal: Journal, judge: LanguageModel, tomes: Path, report: OnProgress
    ) -> None:
        self._experiment = experiment
        self._journal = journal
        self._judge = judge
        self._tomes = tomes
        self._report = report
        self._places = asyncio.Semaphore(experiment.limit)
        self._done = self._total = self._waiting = 0
        self._held: list[Row] = []  # failures for want of the model, before any question came through
        self._reached = False
        self._open: list[Memory] = []
        self._prompts = prompts_digest(experiment.prompts)[:16]

    async def work(self, groups: Sequence[_Group]) -> None:
        """Group by group: the next one is made ready while the last questions of one are under way."""
        tasks = [task for group in groups for task in group.tasks]
        self._total = len(tasks)
        self._waiting = sum(task.row is None for task in tasks)
        self._done = sum(task.row is not None and not task.judges for task in tasks)
        self._tell()
        try:
            async with side_by_side() as under_way:
                for group in groups:
                    await self._group(group, under_way)
        finally:
            for memory in self._open:
                memory.tome.close()

    async def _group(self, group: _Group, under_way: asyncio.TaskGroup) -> None:
        todo = [task for task in group.tasks if task.row is None or task.judges]
        asking = {task.variant.name: task.variant for task in todo if task.row is None}
        memory = await self._memory(group, list(asking.values())) if asking else None
        characters = sum(len(document.text) for document in group.documents)
        left = Counter({"tasks": len(todo)})

        async def one(task: _Task) -> None:
            try:
                await self._one(task, memory, characters)
            finally:
                self._places.release()
                left["tasks"] -= 1
                if memory is not None and not left["tasks"]:
                    self._open.remove(memory)
                    memory.tome.close()

        for task in todo:
            await self._places.acquire()
            under_way.create_task(one(task))

    async def _memory(self, group: _Group, variants: Sequence[Variant]) -> Memory:
        def built(variant: Variant, report: Any) -> None:
            if report.usage.total.calls:
                self._journal.append({"kind": "build", "system": variant.name, "usage": usage_json(report.usage)})

        path = self._tomes / f"{self._experiment.memory_name(group.digest)}.tome"
        memory = await remembered(self._experiment, variants, group.documents, path, self._report, built)
        self._open.append(memory)
        return memory

    async def _one(self, task: _Task, memory: Memory | None, characters: int) -> None:
        row = task.row
        if row is None:
            if memory is None:
                raise RuntimeError("a question needs a memory")
            row = replace(await self._asked(task, memory), characters=characters)
            self._keep(row)
        if not row.error:
            for judge in task.judges:
                await self._judged(judge, row)
        self._done += 1
        self._tell()

    async def _asked(self, task: _Task, memory: Memory) -> Row:
        """The row of a question, also where it fails."""
        row = Row(
            key=task.key,
            system=task.variant.name,
            item=task.item,
            asked=datetime.now(UTC).isoformat(timespec="seconds"),
            versions=self._versions(task.variant),
        )
        system = memory.systems[task.variant.name]
        if isinstance(system, ModelError):
            return replace(row, error=_reason(system))
        with one_question(), meter() as used:
            try:
                said = await self._said(system, task.item, memory, used.usage)
            except ModelError as error:
                return replace(row, error=_reason(error), usage=usage_json(used.usage()))
        return replace(row, **said)

    async def _said(self, system: System, item: Item, memory: Memory, usage: Callable[[], Any]) -> Mapping[str, Any]:
        """What a system answers, and the ranking of its retriever where there is gold for one."""
        judged_by_place = bool(item.supporting or item.spans)
        if self._experiment.retrieval_only:
            found = await system.retriever.retrieve(item.question.text, DEPTH)
            said: dict[str, Any] = {"resolved": True, "usage": usage_json(usage())}
        else:
            said = told(await answered(system, replace(item.question, force=True)))
            said["usage"] = usage_json(usage())
            if not judged_by_place:
                return said
            with replaying():
                found = await system.retriever.retrieve(item.question.text, DEPTH)
        prediction = said.get("prediction") or Prediction()
        said["prediction"] = replace(prediction, ranked=memory.ranked(found, DEPTH))
        return said

    async def _judged(self, judge: Judge, row: Row) -> None:
        with meter() as used:
            found = await judge.judge(self._judge, self._experiment.embedder, row.item, row.prediction.answer)
        self._journal.append(judged(row.key, judge.name, self._experiment.judging.name, found, used.usage()))

    def _keep(self, row: Row) -> None:
        """Write a row down. Raises ModelUnavailable when nothing but that came of the first questions."""
        lost = (row.error or "").startswith(f"{ModelUnavailable.__name__}: ")
        if lost and not self._reached:
            self._held.append(row)
            if len(self._held) >= min(_PATIENCE, self._waiting):
                message = f"the first {len(self._held)} questions all failed, so the run stopped"
                raise ModelUnavailable(f"{message}: {str(row.error).partition(': ')[2]}")
            return
        self._reached = True
        for kept in (*self._held, row):
            self._journal.append(as_record(kept))
        self._held.clear()

    def _versions(self, variant: Variant) -> dict[str, Any]:
        experiment = self._experiment
        return {
            "tomewise": __version__,
            "prompts": self._prompts,
            "model": experiment.model.name,
            "embedder": experiment.embedder.name,
            "settings": dict(variant.settings),
            "seed": experiment.seed,
        }

    def _tell(self) -> None:
        self._report(Progress(label="questions", done=self._done, total=self._total))


def _reason(error: ModelError) -> str:
    return f"{type(error).__name__}: {error}"
