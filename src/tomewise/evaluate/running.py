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
from tomewise.concurrency import side_by_side
from tomewise.errors import ModelError, ModelUnavailable, UsageError
from tomewise.evaluate.builds import Build
from tomewise.evaluate.digests import documents_digest, prompts_digest
from tomewise.evaluate.experiment import DEPTH, Experiment, check
from tomewise.evaluate.items import Item, Prediction
from tomewise.evaluate.journal import Journal
from tomewise.evaluate.judges import Judge
from tomewise.evaluate.memories import Memory, remembered
from tomewise.evaluate.paid import PaidOnce, counting_reused
from tomewise.evaluate.replay import one_question, replaying
from tomewise.evaluate.results import Results, about, journal_of, read_results, systems_before, write_about
from tomewise.evaluate.rows import Row, as_record, judged, latest, told
from tomewise.evaluate.usages import sum_of
from tomewise.fallbacks import count_fallbacks
from tomewise.language.prompts import Prompts
from tomewise.language.usage import meter
from tomewise.store.sqlite.store import SqliteStore
from tomewise.systems.answer import answer_question
from tomewise.systems.kit import System
from tomewise.systems.spec import Variant
from tomewise.tome.reports import usage_json
from tomewise.types import Document, LanguageModel, Progress

OnProgress = Callable[[Progress], None]
_PATIENCE = 5  # questions that may fail for want of the model, before one came through, until the run is given up


async def run(
    experiment: Experiment, out: Path, *, on_progress: OnProgress | None = None, retry_failed: bool = False
) -> Results:
    """Ask what was not asked yet, judge what was not judged yet, and return the rows of this experiment.

    Everything is kept in `out`: tomes, rows as they come, every reply of a model. A question that fails is kept as
    failed and asked again only with `retry_failed`. Raises UsageError, StoreError, Locked (another run is at it), and
    ModelUnavailable when the first questions all fail for want of the model; their failures are then not kept.
    """
    check(experiment)
    folder = out / experiment.name()
    journal = journal_of(folder)
    with journal.appending(), _paying_once(experiment, out) as paying:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        write_about(folder, about(experiment, systems_before(folder), now))
        plan = _plan(paying, journal, retry_failed)
        await _Run(paying, journal, out / "tomes", on_progress or (lambda _: None)).work(plan)
    return _results(experiment, folder)


def _results(experiment: Experiment, folder: Path) -> Results:
    """The rows of what was asked for. Raises UsageError where all of it was left out."""
    results = read_results(folder)
    named = [variant.name for variant in experiment.variants]
    answered_by = [name for name in named if name in results.systems]
    refused = {name: results.refused[name] for name in named if name in results.refused}
    if refused and not answered_by:
        reason = next(iter(refused.values()))
        raise UsageError(f"{', '.join(refused)} cannot be compared here: {reason}; name another system")
    results = results.only(answered_by, {item.id for item in experiment.dataset.items})
    return replace(results, refused=refused)


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
def _paying_once(experiment: Experiment, out: Path) -> Iterator[Experiment]:
    """The experiment with models that pay for no reply twice, whichever experiment of the folder asked for it."""
    store = SqliteStore.open(out / "calls.tome")

    def paying(model: LanguageModel) -> LanguageModel:
        return PaidOnce(model, Prompts(experiment.prompts), store.calls)

    try:
        judge = experiment.judge_model
        yield replace(experiment, model=paying(experiment.model), judge_model=judge and paying(judge))
    finally:
        store.close()


class _Run:
    def __init__(self, experiment: Experiment, journal: Journal, tomes: Path, report: OnProgress) -> None:
        self._experiment = experiment
        self._journal = journal
        self._tomes = tomes
        self._report = report
        self._places = asyncio.Semaphore(experiment.limit)
        self._done = self._total = self._waiting = 0
        self._held: list[Row] = []  # failures for want of the model, before any question came through
        self._reached = False
        self._open: list[Memory] = []
        self._prompts = prompts_digest(experiment.prompts)[:16]
        self._refused = {record["system"] for record in journal.read() if record["kind"] == "refused"}

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
        if memory is not None and memory.refused:
            todo = self._left(todo, memory.refused)
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

    def _left(self, todo: Sequence[_Task], refused: Mapping[str, str]) -> list[_Task]:
        """The tasks of systems that were not refused; why the others were is written down once."""
        for system in sorted(set(refused) - self._refused):
            self._journal.append({"kind": "refused", "system": system, "reason": refused[system]})
            self._refused.add(system)
        left = [task for task in todo if task.variant.name not in refused]
        gone = len(todo) - len(left)
        self._done += gone
        self._waiting -= gone
        self._tell()
        return left

    async def _memory(self, group: _Group, variants: Sequence[Variant]) -> Memory:
        name = self._experiment.memory_name(group.digest)

        def built(variant: Variant, build: Build) -> None:
            if build != Build(sum_of([]), {}, ()):  # a system without layers has nothing to build
                record = {"kind": "build", "system": variant.name, "memory": name, "usage": build.usage}
                self._journal.append({**record, "fallbacks": build.fallbacks, "notes": build.notes})

        path = self._tomes / f"{name}.tome"
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
        with one_question(), meter() as used, counting_reused() as reused:

            def usage() -> dict[str, Any]:
                return {**usage_json(used.usage()), "reused": reused.asks}

            try:
                said = await self._said(system, task.item, memory, usage)
            except ModelError as error:
                return replace(row, error=_reason(error), usage=usage())
        return replace(row, **said)

    async def _said(
        self, system: System, item: Item, memory: Memory, usage: Callable[[], dict[str, Any]]
    ) -> Mapping[str, Any]:
        """What a system answers, and the ranking of its retriever where there is gold for one."""
        if self._experiment.retrieval_only:
            with count_fallbacks() as fallbacks:
                found = await system.retriever.retrieve(item.question.text, DEPTH)
            said: dict[str, Any] = {"resolved": True, "usage": usage(), "fallbacks": dict(fallbacks)}
            prediction = Prediction()
        else:
            # An answer is wanted to every question: how sure it is stands in the row, and in the table beside the risk.
            with count_fallbacks() as fallbacks:
                answer = await answer_question(system, replace(item.question, force=True))
            said = {**told(answer), "usage": usage(), "fallbacks": dict(fallbacks)}
            if not (item.supporting or item.spans):
                return said
            with replaying():
                found = await system.retriever.retrieve(item.question.text, DEPTH)
            prediction = replace(said["prediction"], shown=memory.shown(answer.evidence))
        ranked = await asyncio.to_thread(memory.ranked, item.question.text, found, DEPTH)
        return {**said, "prediction": replace(prediction, ranked=ranked)}

    async def _judged(self, judge: Judge, row: Row) -> None:
        judging, embedder = self._experiment.judging, self._experiment.embedder
        with meter() as used:
            found = await judge.judge(judging, embedder, row.item, row.prediction.answer)
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
