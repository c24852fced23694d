"""What an experiment is: which systems are asked what, with which model, and how their answers are scored.

Its folder keeps what it was made with.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tomewise.errors import StoreError, UnknownName, UsageError
from tomewise.evaluate.digests import (
    digest_code,
    digest_data,
    digest_documents,
    digest_memory_code,
    digest_prompts,
    digest_recipe,
)
from tomewise.evaluate.items import Dataset, Item
from tomewise.evaluate.judges import Judge, remember_judge
from tomewise.evaluate.metrics import Metric, remember_metric
from tomewise.settings import Settings
from tomewise.systems.registry import Variant, choose_variants
from tomewise.types import Embedder, LanguageModel

DEPTH = 50  # passages of a ranking that a row stores; metrics look at up to 20 documents of several passages each


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """Systems over one dataset, all with the same model, embedder and passages.

    `variants` may be given as texts and recipes too. `judges` ask `judge_model`, or `model` without one.
    `retrieval_only` ranks evidence and asks for no answer. With `force` every question gets an answer, also a guess;
    without it systems may decline, which is scored as a wrong answer. With `short_answers` the extractive model gives
    short ones. `prompts` is a folder with prompts that replace the packaged ones. `limit` questions are asked side by
    side. A build or a question ends after `max_failures` failed calls with no reply between them. With a `batch`, so
    many documents come at a time, and layers are built before the next ones. `seed` is that of the bootstrap.
    """

    dataset: Dataset
    variants: tuple[Variant, ...]
    model: LanguageModel
    embedder: Embedder
    metrics: tuple[Metric, ...]
    judges: tuple[Judge, ...] = ()
    judge_model: LanguageModel | None = None
    retrieval_only: bool = False
    force: bool = True
    short_answers: bool = False
    prompts: Path | None = None
    passage_tokens: int | None = None
    overlap: int | None = None
    batch: int | None = None
    limit: int = 16
    max_failures: int = Settings.max_failures
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "variants", choose_variants(self.variants))

    @property
    def judging_model(self) -> LanguageModel:
        """The model that judges."""
        return self.judge_model or self.model

    def name(self) -> str:
        """The name. Experiments with equal corpus, model, embedder, passages and code share it, and one table."""
        digest = digest_data(self.dataset.name, digest_documents(self.dataset.documents), *self._list_common())
        words = [self.dataset.name, self.model.name, *(["retrieval"] if self.retrieval_only else [])]
        words += ["short-answers"] if self.short_answers else []
        return "-".join([*(re.sub(r"[^a-z0-9.]+", "-", word.lower()).strip("-") for word in words), digest[:8]])

    def name_memory(self, documents: str) -> str:
        """The name of the tome of documents with that digest; it changes with the model, the prompts and the code."""
        made_with = [self.model.name, digest_prompts(self.prompts) if self.prompts else None]
        made_with += [
            digest_memory_code(),
            *sorted({digest_recipe(part) for variant in self.variants for part in variant.outside_parts}),
        ]
        return digest_data(documents, *made_with, self.embedder.name, self.passage_tokens, self.overlap, self.batch)[
            :16
        ]

    def make_key(self, variant: Variant, item: Item, documents: str, prompts: str) -> str:
        """The key of one question to one system, given two digests. A row with the same key is not asked for again."""
        wording = item.question
        question: list[object] = [item.id, wording.text, wording.options, wording.instructions, wording.form, documents]
        if wording.within:
            question.append(wording.within.to_dict())
        system = [variant.system, dict(variant.settings), prompts, *self._list_common()]
        system += map(digest_recipe, variant.outside_parts)
        return digest_data(*question, *system)[:32]

    def _list_common(self) -> list[object]:
        names = [self.model.name, self.embedder.name, digest_code()]
        common: list[object] = [*names, self.passage_tokens, self.overlap, self.batch, self.retrieval_only]
        common += [] if self.force else ["may decline"]
        return [*common, "short answers"] if self.short_answers else common


def check_design(experiment: Design) -> None:
    """Raise UsageError for an experiment that cannot measure what it names."""
    if not experiment.variants:
        raise UsageError("no system to evaluate: name one, or all")
    if not experiment.metrics and not experiment.judges:
        raise UsageError(f"{experiment.dataset.name} has no gold to score by: name a metric, or add gold to it")
    if experiment.retrieval_only:
        of_answers = [metric.name for metric in experiment.metrics if not metric.of_ranking]
        if wrong := [*of_answers, *(judge.name for judge in experiment.judges)]:
            raise UsageError(f"{', '.join(wrong)} need answers, which retrieval alone does not give: leave them out")
    for judge in experiment.judges:
        remember_judge(judge)
    for metric in experiment.metrics:
        remember_metric(metric)
        stem, _, depth = metric.name.partition("@")
        if depth.isdecimal() and int(depth) > DEPTH:
            raise UsageError(f"{metric.name!r} looks deeper than the {DEPTH} passages kept: write '{stem}@{DEPTH}'")
        if lack := describe_lack(experiment.dataset, metric):
            raise UsageError(f"{lack}: leave it out, or `tome eval list --metrics` for others")


def describe_lack(dataset: Dataset, metric: Metric) -> str:
    """The gold for a metric that no question of a data set has; empty where one has it."""
    if any(map(metric.applies, dataset.items)):
        return ""
    return f"{dataset.name} lacks the gold ({metric.needs}) that {metric.name!r} takes"


_FILE = "experiment.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What an experiment was made with. `metrics` and `judges` are of its last run, `systems` of all its runs."""

    name: str
    dataset: str
    model: str
    embedder: str
    judge_model: str
    retrieval_only: bool
    metrics: tuple[str, ...]
    judges: tuple[str, ...]
    systems: tuple[str, ...]
    seed: int
    run: str  # time of the last run, UTC
    short_answers: bool = False
    force: bool = True


def describe_experiment(experiment: Design, before: Sequence[str], now: str) -> About:
    """What to store about an experiment; `before` are the systems of earlier runs."""
    return About(
        name=experiment.name(),
        dataset=experiment.dataset.name,
        model=experiment.model.name,
        embedder=experiment.embedder.name,
        judge_model=experiment.judging_model.name if experiment.judges else "",
        retrieval_only=experiment.retrieval_only,
        metrics=tuple(metric.name for metric in experiment.metrics),
        judges=tuple(judge.name for judge in experiment.judges),
        systems=tuple(dict.fromkeys([*before, *(variant.name for variant in experiment.variants)])),
        seed=experiment.seed,
        run=now,
        short_answers=experiment.short_answers,
        force=experiment.force,
    )


def write_about(folder: Path, about: About) -> None:
    """Store it in the folder of the experiment, in one step."""
    new = folder / f"{_FILE}.new"
    new.write_text(json.dumps(asdict(about), indent=1) + "\n", encoding="utf-8")
    os.replace(new, folder / _FILE)


def read_about(folder: Path) -> About:
    """What the experiment in a folder was made with. Raises StoreError."""
    path = folder / _FILE
    try:
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        lists = {name: tuple(record[name]) for name in ("metrics", "judges", "systems")}
        return About(**{**record, **lists})
    except FileNotFoundError as error:
        raise StoreError(f"{folder} holds no experiment: make one with `tome eval run`") from error
    except (ValueError, TypeError, KeyError) as error:
        raise StoreError(f"{path} is damaged ({error}): run the experiment again, which asks nothing twice") from error


def read_earlier_systems(folder: Path) -> tuple[str, ...]:
    """The systems of earlier runs of the experiment in a folder."""
    return read_about(folder).systems if (folder / _FILE).is_file() else ()


def list_experiments(out: Path) -> list[About]:
    """The experiments in a folder, the latest first. The folder may also be that of one experiment."""
    folders = [out] if (out / _FILE).is_file() else [path.parent for path in out.glob(f"*/{_FILE}")]
    return sorted((read_about(folder) for folder in folders), key=lambda about: (about.run, about.name), reverse=True)


def find_folder(out: Path, name: str | None = None) -> Path:
    """The folder of the experiment whose name begins with `name`, or of the latest. Raises UnknownName, StoreError."""
    stored = list_experiments(out)
    if not stored:
        raise StoreError(f"{out} holds no experiment: make one with `tome eval run`, or name its folder")
    matches = [about for about in stored if name is None or about.name.startswith(name)]
    chosen = next((about for about in matches if about.name == name), None)
    if not matches or (name is not None and len(matches) > 1 and chosen is None):
        many = f"{len(matches)} experiments" if matches else "no experiment"
        names = ", ".join(about.name for about in stored)
        raise UnknownName(f"{name!r} fits {many} in {out}: it has {names}; write more of the name")
    chosen = chosen or matches[0]
    return out if (out / _FILE).is_file() else out / chosen.name
