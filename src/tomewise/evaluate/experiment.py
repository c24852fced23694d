"""`Experiment`: compare systems on questions with known answers, from Python. `tome eval run` uses it too."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from tomewise.cluster.pooled_model import make_model_parts
from tomewise.cluster.worker_pool import WorkerPool, open_pool
from tomewise.embedding.choose_embedder import choose_embedder
from tomewise.errors import MissingDependency, UsageError
from tomewise.evaluate import running
from tomewise.evaluate.datasets import read_dataset
from tomewise.evaluate.design import Design, check_design
from tomewise.evaluate.items import Dataset
from tomewise.evaluate.judges import Judge, find_judge
from tomewise.evaluate.metrics import Metric, choose_metrics, find_metric
from tomewise.evaluate.on_workers import check_importable
from tomewise.evaluate.report import list_records
from tomewise.evaluate.results import Results, tabulate
from tomewise.evaluate.table import Table
from tomewise.language.budget import Budget
from tomewise.language.choose_model import check_model_settings, choose_model
from tomewise.language.prompts import Prompts
from tomewise.language.wrapped import find_abilities
from tomewise.notebook_display import show_bars
from tomewise.plugins import name_faults
from tomewise.settings import Settings
from tomewise.systems.registry import Choice, choose_variant, choose_variants
from tomewise.tome.arguments import check_pool
from tomewise.tome.sync import LoopThread
from tomewise.types import Embedder, Limit, Progress
from tomewise.types.plain import describe_object

if TYPE_CHECKING:
    from tomewise.language.choose_model import ModelOrName

_Part = TypeVar("_Part", Metric, Judge)
OnProgress = Callable[[Progress], None]
Compared: TypeAlias = Choice | tuple[Choice, Mapping[str, Any]]  # a system, or a system and its settings


class Experiment:
    """Systems over one dataset, all with the same model, embedder and passages.

    `systems` are names ("comorag cycles=2"), recipes, or pairs of one of these and settings. `data` is "sample", a
    folder in the given `layout`, or a `Dataset`; `questions` takes only the first ones. `metrics` and `judges` are
    names or objects; without metrics, the gold of the data decides. `out` is the folder that keeps rows, tomes and the
    replies of models: a second run asks nothing twice. `model`, `models`, `max_failures`, `start_seconds` and
    `model_settings` are those of `Tome.open`; `limit` questions, and calls of a model, run side by side. With
    `short_answers` the extractive model cuts an answer out of a sentence, where it would else quote whole sentences;
    the report says so. Without `force` systems may decline, which is scored as a wrong answer. With a `batch`, so many
    documents come at a time, and layers are built before the next ones. With `on="ray"`, `workers` build and ask, each
    one memory at a time (see `Tome.open`); they share `limit` and the `budget`,
    and this process judges and writes. Raises UsageError, UnknownName, ReadingError.
    """

    def __init__(
        self,
        systems: Iterable[Compared],
        data: str | Path | Dataset = "sample",
        metrics: Iterable[str | Metric] = (),
        *,
        judges: Iterable[str | Judge] = (),
        layout: str = "auto",
        questions: int | None = None,
        out: str | Path = "tome-eval",
        model: ModelOrName = "extractive",
        models: Mapping[str, ModelOrName] | None = None,
        judge_model: ModelOrName | None = None,
        embedder: str | Embedder = "bundled",
        embedder_base_url: str | None = None,
        retrieval_only: bool = False,
        force: bool = True,
        short_answers: bool = False,
        prompts: str | Path | None = None,
        passage_tokens: int | None = None,
        overlap: int | None = None,
        batch: int | None = None,
        limit: int = 16,
        max_failures: int = Settings.max_failures,
        on: Literal["ray"] | None = None,
        workers: int | None = None,
        start_seconds: float = Settings.start_seconds,
        **model_settings: Any,
    ) -> None:
        arguments = signature(type(self)).parameters.values()
        check_model_settings(model_settings, [each.name for each in arguments if each.kind is Parameter.KEYWORD_ONLY])
        bounded: dict[str, Any] = {
            "passage_tokens": passage_tokens,
            "overlap": overlap,
            "limit": limit,
            "max_failures": max_failures,
        }
        budget = model_settings.get("budget")
        Settings(**bounded, start_seconds=start_seconds, on=on, workers=workers, budget=budget)  # checks them
        check_pool(on, workers)
        if questions is not None and questions < 1:
            raise UsageError(f"an experiment with {questions} questions measures nothing: take 1 or more")
        if batch is not None and batch < 1:
            raise UsageError(f"batches of {batch} documents bring none: take 1 or more")
        # Before the data, so that a misspelt name costs no time.
        variants = choose_variants(
            choose_variant(*each) if isinstance(each, tuple) else each for each in _check_several("systems", systems)
        )
        chosen_metrics = _choose_parts("metrics", metrics, Metric, find_metric, "Metric(name, needs, score)")
        chosen_judges = _choose_parts("judges", judges, Judge, find_judge, "Judge(name, ask)")
        dataset = _read_data(data, layout)
        folder = Path(prompts) if prompts else None
        by_name = isinstance(embedder, str)
        if isinstance(embedder, str):
            embedder = choose_embedder(embedder, base_url=embedder_base_url)
        shared: dict[str, Any] = {"embedder": embedder, "limit": limit, "prompts": Prompts(folder), **model_settings}
        # On workers the budget of the model that answers is kept at the hub.
        answering = {**shared, "budget": None} if on else shared
        self.design = Design(
            dataset=replace(dataset, items=dataset.items[:questions]),
            variants=variants,
            model=choose_model(model, models, short_answers=short_answers, **answering),
            embedder=embedder,
            metrics=chosen_metrics
            or tuple(metric for metric in choose_metrics(dataset) if metric.of_ranking or not retrieval_only),
            judges=chosen_judges,
            judge_model=choose_model(judge_model, **shared) if judge_model else None,
            retrieval_only=retrieval_only,
            force=force,
            short_answers=short_answers,
            prompts=folder,
            batch=batch,
            **bounded,
        )
        check_design(self.design)
        self._open_pool: Callable[[], WorkerPool] | None = None
        self._make_budget: Callable[[], Budget] | None = None
        if on:
            check_importable(variants)
            stated = {name: value for name, value in model_settings.items() if value is not None}
            api_key = stated.pop("api_key", None)
            settings = Settings(limit=limit, **stated)
            parts = make_model_parts(model, models, Prompts(folder), api_key, settings, short_answers=short_answers)
            self._open_pool = partial(
                open_pool, embedder, parts, workers, by_name=by_name, start_seconds=start_seconds, share_limit=True
            )
            if budget is not None:
                self._make_budget = partial(Budget, Limit.parse(budget), name=self.design.model.name)
        self.out = Path(out)
        self._results: Results | None = None

    def run(self, *, on_progress: OnProgress | None = None, retry_failed: bool = False) -> Results:
        """Ask and judge what was not asked and judged yet; also works inside a running event loop.

        A question that fails is stored as failed, and asked again with `retry_failed`. Raises what `running.run` does.
        """
        thread = LoopThread()
        try:
            return thread.run(self.arun(on_progress=on_progress, retry_failed=retry_failed))
        finally:
            thread.stop()

    async def arun(self, *, on_progress: OnProgress | None = None, retry_failed: bool = False) -> Results:
        """See `run`."""
        pool: WorkerPool | None = None
        try:
            with show_bars(on_progress) as report, name_faults():
                pool = await asyncio.to_thread(self._open_pool) if self._open_pool else None
                self._results = await running.run(
                    self.design,
                    self.out,
                    on_progress=report,
                    retry_failed=retry_failed,
                    pool=pool,
                    make_budget=self._make_budget,
                )
            return self._results
        finally:
            if pool is not None:
                pool.close()
            for model in {id(model): model for model in (self.design.model, self.design.judging_model)}.values():
                await find_abilities(model).close()

    def __repr__(self) -> str:
        return describe_object(self, self.design.name(), systems=len(self.design.variants))

    def _repr_html_(self) -> str | None:
        """The table of the last run; None before the first one."""
        return self._results._repr_html_() if self._results else None

    @property
    def results(self) -> Results:
        """The rows of the last run. Raises UsageError before the first one."""
        if self._results is None:
            raise UsageError("this experiment has no results yet: call `run` first")
        return self._results

    def table(self, *, baseline: str | None = None, by: Sequence[str] = ()) -> Table:
        """The scores with intervals and costs, tested against a baseline, and by slices. Raises UnknownName."""
        return tabulate(self.results, baseline=baseline, by=by)

    def to_frame(self) -> Any:
        """A pandas data frame: a line for each system and question, with answer, scores (`score:NAME`) and costs.

        Raises MissingDependency without pandas.
        """
        records = list_records(self.results)
        try:
            pandas = import_module("pandas")
        except ImportError as error:
            raise MissingDependency("a data frame needs pandas: pip install 'tomewise[eval]'") from error
        return pandas.DataFrame(records)


def _check_several(what: str, parts: Any) -> Iterable[Any]:
    if isinstance(parts, str):
        raise UsageError(f"{what} are given as a list: write [{parts!r}]")
    return parts  # type: ignore[no-any-return]


def _choose_parts(
    what: str, parts: Iterable[str | _Part], kind: type[_Part], find: Callable[[str], _Part], make: str
) -> tuple[_Part, ...]:
    """Each part once, those given by name as found. Raises UsageError for what is not a part of that kind."""
    chosen = []
    for part in dict.fromkeys(_check_several(what, parts)):
        if not isinstance(part, str | kind):
            raise UsageError(f"{part!r} is not a {what[:-1]}: pass a name, or {make}")
        chosen.append(find(part) if isinstance(part, str) else part)
    return tuple(chosen)


def _read_data(data: str | Path | Dataset, layout: str) -> Dataset:
    if isinstance(data, Dataset):
        return data
    return read_dataset("sample") if data == "sample" else read_dataset(layout, Path(data))
