"""What experiments found, as it is kept in a folder."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from tomewise.errors import StoreError, UnknownName
from tomewise.evaluate.experiment import Experiment
from tomewise.evaluate.journal import Journal
from tomewise.evaluate.rows import JsonObject, Row, latest
from tomewise.evaluate.usages import sum_of

_ABOUT, _ROWS = "experiment.json", "rows.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What an experiment was made with. `metrics` and `judges` are those of its last run, `systems` of every run."""

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
    run: str  # when it was last run, UTC


@dataclass(frozen=True, slots=True)
class Results:
    """The rows of an experiment, one for each system and question, and by system what its layers would cost alone.

    A build sums over the memories of an experiment: its usage, `fallbacks` by layer, `notes` for a reader.
    `refused` says why a system was left out.
    Rows stand by system in the order of the first run, then by the id of the question: not in that of their arrival.
    """

    about: About
    rows: tuple[Row, ...]
    builds: Mapping[str, JsonObject]
    refused: Mapping[str, str] = field(default_factory=dict)

    @property
    def systems(self) -> tuple[str, ...]:
        """The systems that have rows, in their order."""
        return tuple(dict.fromkeys(row.system for row in self.rows))

    def only(self, systems: Sequence[str] | None = None, items: Collection[str] | None = None) -> Results:
        """The rows of some systems, in their order, and of some questions. Raises UnknownName for a system without."""
        named = self.systems if systems is None else systems
        for name in named:
            if name not in self.systems:
                raise UnknownName(f"{self.about.name} has no row of {name!r}: it has {', '.join(self.systems)}")
        rows = [row for name in named for row in self.rows if row.system == name]
        kept = [row for row in rows if items is None or row.item.id in items]
        return replace(self, rows=tuple(kept))


def about(experiment: Experiment, before: Sequence[str], now: str) -> About:
    """What to write down of an experiment; `before` are the systems of earlier runs."""
    return About(
        name=experiment.name(),
        dataset=experiment.dataset.name,
        model=experiment.model.name,
        embedder=experiment.embedder.name,
        judge_model=experiment.judging.name if experiment.judges else "",
        retrieval_only=experiment.retrieval_only,
        metrics=tuple(metric.name for metric in experiment.metrics),
        judges=tuple(judge.name for judge in experiment.judges),
        systems=tuple(dict.fromkeys([*before, *(variant.name for variant in experiment.variants)])),
        seed=experiment.seed,
        run=now,
    )


def write_about(folder: Path, told: About) -> None:
    """Keep it, in one step."""
    beside = folder / f"{_ABOUT}.new"
    beside.write_text(json.dumps(asdict(told), indent=1) + "\n", encoding="utf-8")
    os.replace(beside, folder / _ABOUT)


def journal_of(folder: Path) -> Journal:
    """The records of the experiment in a folder."""
    return Journal(folder / _ROWS)


def read_results(folder: Path) -> Results:
    """The results in the folder of an experiment. Raises StoreError."""
    told = read_about(folder)
    records = journal_of(folder).read()
    rows = sorted(latest(records, told.judge_model), key=lambda row: row.item.id)
    refused = {record["system"]: record["reason"] for record in records if record["kind"] == "refused"}
    results = Results(told, tuple(rows), _builds(records), refused)
    return results.only([name for name in told.systems if name in {row.system for row in rows}])


def read_about(folder: Path) -> About:
    """What the experiment in a folder was made with. Raises StoreError."""
    path = folder / _ABOUT
    try:
        given: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        lists = {name: tuple(given[name]) for name in ("metrics", "judges", "systems")}
        return About(**{**given, **lists})
    except FileNotFoundError as error:
        raise StoreError(f"{folder} holds no experiment: make one with `tome eval run`") from error
    except (ValueError, TypeError, KeyError) as error:
        raise StoreError(f"{path} is damaged ({error}): run the experiment again, which asks nothing twice") from error


def systems_before(folder: Path) -> tuple[str, ...]:
    """The systems of earlier runs of the experiment in a folder."""
    return read_about(folder).systems if (folder / _ABOUT).is_file() else ()


def experiments(out: Path) -> list[About]:
    """The experiments kept in a folder, the latest first; the folder may be that of one experiment."""
    folders = [out] if (out / _ABOUT).is_file() else [path.parent for path in out.glob(f"*/{_ABOUT}")]
    return sorted((read_about(folder) for folder in folders), key=lambda told: (told.run, told.name), reverse=True)


def folder_of(out: Path, name: str | None = None) -> Path:
    """The folder of the experiment whose name begins so, or of the latest. Raises UnknownName, StoreError."""
    kept = experiments(out)
    if not kept:
        raise StoreError(f"{out} holds no experiment: make one with `tome eval run`, or name its folder")
    fitting = [told for told in kept if name is None or told.name.startswith(name)]
    if not fitting or (name is not None and len(fitting) > 1 and name not in (told.name for told in fitting)):
        many = f"{len(fitting)} experiments" if fitting else "no experiment"
        raise UnknownName(f"{name!r} fits {many} in {out}: it has {', '.join(told.name for told in kept)}")
    chosen = next((told for told in fitting if told.name == name), fitting[0])
    return out if (out / _ABOUT).is_file() else out / chosen.name


def _builds(records: Sequence[JsonObject]) -> dict[str, JsonObject]:
    """What the layers of each system cost, in each memory as last recorded, and over all memories."""
    latest: dict[str, dict[str, JsonObject]] = {}
    for number, record in enumerate(records):
        if record["kind"] == "build":
            latest.setdefault(record["system"], {})[record.get("memory", str(number))] = record
    return {system: _build(list(parts.values())) for system, parts in latest.items()}


def _build(parts: Sequence[JsonObject]) -> JsonObject:
    fallbacks = sum((Counter(part.get("fallbacks", {})) for part in parts), Counter[str]())
    notes = list(dict.fromkeys(note for part in parts for note in part.get("notes", ())))
    return {**sum_of(part["usage"] for part in parts), "fallbacks": dict(fallbacks), "notes": notes}
