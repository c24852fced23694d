"""Run an experiment: ask every system every question, side by side, and ask nothing twice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tomewise.cluster.worker_pool import WorkerPool
from tomewise.concurrency import run_side_by_side
from tomewise.errors import ModelUnavailable, UsageError
from tomewise.evaluate.asking import Build, GroupsHere, Message, Opened
from tomewise.evaluate.design import Design, check_design, describe_experiment, read_earlier_systems, write_about
from tomewise.evaluate.digests import digest_documents, digest_prompts
from tomewise.evaluate.items import Item
from tomewise.evaluate.journal import Journal
from tomewise.evaluate.judges import Judge
from tomewise.evaluate.on_workers import HERE, GroupsOnWorkers, Hub, HubAccount, HubCalls
from tomewise.evaluate.replay import PaidOnce
from tomewise.evaluate.results import Results, find_journal, read_results
from tomewise.evaluate.rows import Row, make_judgement_record, make_row_record, read_latest_rows, sum_costs
from tomewise.language.budget import Budget, stop_after
from tomewise.language.cached import prove_room
from tomewise.language.prompts import Prompts
from tomewise.language.wrapped import Wrapped
from tomewise.run import change_run, meter
from tomewise.systems.registry import Variant
from tomewise.tome.open_store import open_store
from tomewise.types import CallCache, Document, Progress

OnProgress = Callable[[Progress], None]
_MOST_EARLY_FAILURES = 5  # if so many first questions all fail because the model is unavailable, the run stops


async def run(
    experiment: Design,
    out: Path,
    *,
    on_progress: OnProgress | None = None,
    retry_failed: bool = False,
    pool: WorkerPool | None = None,
    make_budget: Callable[[], Budget] | None = None,
) -> Results:
    """Ask what was not asked yet, judge what was not judged yet, and return the rows of this experiment.

    `out` stores everything: tomes, rows as they come, every reply of a model. A question that fails is stored as failed
    and asked again only with `retry_failed`. With a `pool`, its workers build and ask, each one memory at a time; what
    `make_budget` makes bounds what they and this process ask of the model. Elsewhere the model has its own budget.
    Raises UsageError, StoreError, Locked (another run writes there), ModelUnavailable when the first questions all fail
    because the model is unavailable (these failures are not stored), and TomewiseError where no worker is left.
    """
    check_design(experiment)
    folder = out / experiment.name()
    journal = find_journal(folder)
    with journal.open_to_append(), _open_calls(out / "calls.tome", pool, make_budget) as (calls, hub):
        if make_budget:
            experiment = replace(experiment, model=Wrapped(experiment.model, HubAccount(hub, HERE).ask))
        paid_once = _pay_once(experiment, calls)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        groups = _plan_groups(paid_once, journal, retry_failed)
        if unasked := sum(task.row is None or bool(task.judges) for group in groups for task in group.tasks):
            await prove_room(calls, unasked)
        write_about(folder, describe_experiment(experiment, read_earlier_systems(folder), now))
        slots, report = asyncio.Semaphore(experiment.limit), on_progress or (lambda _: None)
        place = (
            GroupsOnWorkers(experiment, pool, hub, has_budget=bool(make_budget))
            if pool
            else GroupsHere(paid_once, out / "tomes", slots, report)
        )
        with change_run(must_keep=True):
            await _Run(paid_once, journal, slots, report, place).run_groups(groups)
    return _select_results(experiment, folder)


def _select_results(experiment: Design, folder: Path) -> Results:
    """The rows of the experiment's systems and questions. Raises UsageError where every system was left out."""
    results = read_results(folder)
    names = [variant.name for variant in experiment.variants]
    with_rows = [name for name in names if name in results.systems]
    refused = {name: results.refused[name] for name in names if name in results.refused}
    if refused and not with_rows:
        reason = next(iter(refused.values()))
        raise UsageError(f"{', '.join(refused)} cannot be compared here: {reason}; name another system")
    results = results.select(with_rows, {item.id for item in experiment.dataset.items})
    return replace(results, refused=refused)


@dataclass(frozen=True, slots=True)
class _Task:
    """A question to one system: its row if it was asked already, and the judges that still have to judge it."""

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


def _plan_groups(experiment: Design, journal: Journal, retry_failed: bool) -> list[_Group]:
    """All tasks by group. A task with a row and without judges is done."""
    rows = read_latest_rows(journal.read(), experiment.judging_model.name)
    by_key = {row.key: row for row in rows}
    by_name = {(row.key, row.system): row for row in rows}
    prompts = digest_prompts(experiment.prompts)
    groups: dict[tuple[str, ...], _Group] = {}
    for item in experiment.dataset.items:
        if item.documents not in groups:
            ids = set(item.documents)
            documents = tuple(document for document in experiment.dataset.documents if not ids or document.id in ids)
            groups[item.documents] = _Group(documents, digest_documents(documents))
    for variant in experiment.variants:
        for item in experiment.dataset.items:
            group = groups[item.documents]
            key = experiment.make_key(variant, item, group.digest, prompts)
            row = by_name.get((key, variant.name), by_key.get(key))
            if row is not None and (_needs_ranking(item, row) if not row.error else retry_failed):
                row = None
            if row is not None and (row.system, row.item) != (variant.name, item):
                # Asked under another name, or before the gold was corrected: the row gets today's name and gold.
                row = replace(row, system=variant.name, item=item, judgements={})
                journal.append(make_row_record(row))
            judges = tuple(judge for judge in experiment.judges if _must_judge(judge, item, row, retry_failed))
            group.tasks.append(_Task(key, variant, item, row, judges))
    return list(groups.values())


def _needs_ranking(item: Item, row: Row) -> bool:
    """Whether the item has gold for a ranking now, and had none when the question was asked."""
    return bool(item.supporting or item.spans) and not (row.item.supporting or row.item.spans)


def _must_judge(judge: Judge, item: Item, row: Row | None, retry_failed: bool) -> bool:
    if not judge.applies(item) or (row is not None and row.error):
        return False
    judgement = row.judgements.get(judge.name) if row is not None else None
    return judgement is None or (retry_failed and judgement.error is not None)


@contextmanager
def _open_calls(
    path: Path, pool: WorkerPool | None, make_budget: Callable[[], Budget] | None
) -> Iterator[tuple[CallCache, Any]]:
    """The replies at a path, and the actor that alone keeps them, and the budget, when a pool works."""
    store = open_store(path)  # with a pool too: an error here names what is wrong, but a hub would only end
    try:
        if pool is None:
            yield store.calls, None
            return
    finally:
        store.close()
    hub = pool.start_beside(Hub, path.absolute(), make_budget)  # it works in another folder
    yield HubCalls(hub), hub


def _pay_once(experiment: Design, calls: CallCache) -> Design:
    """The experiment with models that pay for each reply once, across all experiments of the folder."""
    prompts, judge = Prompts(experiment.prompts), experiment.judge_model
    return replace(
        experiment,
        model=Wrapped(experiment.model, PaidOnce(prompts, calls), stop_after(experiment.max_failures)),
        judge_model=judge and Wrapped(judge, PaidOnce(prompts, calls)),
    )


class _Run:
    """The asking and judging of one run, and its progress."""

    def __init__(
        self,
        experiment: Design,
        journal: Journal,
        slots: asyncio.Semaphore,
        report: OnProgress,
        place: GroupsHere | GroupsOnWorkers,
    ) -> None:
        self._experiment = experiment
        self._journal = journal
        self._slots = slots
        self._report = report
        self._place = place
        self._done = self._total = self._waiting = 0
        self._early_failures: list[Row] = []  # because the model is unavailable, before any question succeeded
        self._model_replied = False
        self._refused = {record["system"] for record in journal.read() if record["kind"] == "refused"}

    async def run_groups(self, groups: Sequence[_Group]) -> None:
        """Let workers, or this process, ask over each group; judge and store what comes out."""
        tasks = [task for group in groups for task in group.tasks]
        self._total = len(tasks)
        self._waiting = sum(task.row is None for task in tasks)
        self._count_done(sum(task.row is not None and not task.judges for task in tasks))
        async with run_side_by_side() as around:
            listening = around.create_task(self._place.listen())
            async with run_side_by_side() as under_way:
                for group in groups:
                    under_way.create_task(self._work_on_group(group, under_way))
            listening.cancel()

    async def _work_on_group(self, group: _Group, under_way: asyncio.TaskGroup) -> None:
        """Let what was not asked yet be asked; rows are stored as they come, and judged."""
        unasked = {(task.key, task.variant.name): task for task in group.tasks if task.row is None}
        opened, all_asked = asyncio.Event(), asyncio.Event()

        def begin_judging(task: _Task, row: Row) -> None:
            if not row.error:
                for metric in self._experiment.metrics:
                    metric.try_on(row.outcome)
            finishing = self._finish(task, row)
            try:
                under_way.create_task(finishing)
            except RuntimeError:  # the run ends with an error that came first
                finishing.close()
                raise

        async def receive(message: Message) -> None:
            # A worker that began again for one that died sends some messages once more.
            if isinstance(message, Row):
                if task := unasked.pop((message.key, message.system), None):
                    begin_judging(task, self._store_row(replace(message, item=task.item), group))
            elif not opened.is_set():
                opened.set()
                self._record_opening(message, group, unasked)
            if not unasked:
                all_asked.set()

        for task in group.tasks:
            if task.row is not None and task.judges:
                begin_judging(task, task.row)
        if unasked:
            questions = [(task.key, task.variant, task.item) for task in unasked.values()]
            await self._place.ask_group(group.documents, questions, receive)
            await all_asked.wait()

    def _record_opening(self, opened: Opened, group: _Group, unasked: dict[tuple[str, str], _Task]) -> None:
        """Write what a memory took, and each refusal once; the questions to refused systems are left out."""
        for system in sorted(set(opened.refused) - self._refused):
            self._journal.append({"kind": "refused", "system": system, "reason": opened.refused[system]})
            self._refused.add(system)
        memory = self._experiment.name_memory(group.digest)
        for system, build in opened.builds.items():
            if build != Build(sum_costs([]), {}, ()):  # a system without layers has nothing to build
                self._journal.append({"kind": "build", "system": system, "memory": memory, **asdict(build)})
        left_out = [key for key in unasked if key[1] in opened.refused]
        for key in left_out:
            del unasked[key]
            self._waiting -= 1
            self._count_done(1)

    async def _finish(self, task: _Task, row: Row) -> None:
        model, embedder = self._experiment.judging_model, self._experiment.embedder
        for judge in () if row.error else task.judges:
            async with self._slots:
                with meter() as used:
                    judgement = await judge.judge(model, embedder, row.item, row.prediction.answer)
                self._journal.append(
                    make_judgement_record(row.key, judge.name, model.name, judgement, used.measure_cost())
                )
        self._count_done(1)

    def _store_row(self, row: Row, group: _Group) -> Row:
        """Write a row to the journal. Raises ModelUnavailable when the first questions all failed with that error."""
        row = replace(row, characters=sum(len(document.text) for document in group.documents))
        unavailable = (row.error or "").startswith(f"{ModelUnavailable.__name__}: ")
        if unavailable and not self._model_replied:
            self._early_failures.append(row)
            if (count := len(self._early_failures)) >= min(_MOST_EARLY_FAILURES, self._waiting):
                message = f"the first {count} questions all failed, so the run stopped"
                raise ModelUnavailable(f"{message}: {str(row.error).partition(': ')[2]}")
            return row
        self._model_replied = True
        for each in (*self._early_failures, row):
            self._journal.append(make_row_record(each))
        self._early_failures.clear()
        return row

    def _count_done(self, more: int) -> None:
        self._done += more
        self._report(Progress(label="questions", done=self._done, total=self._total))
