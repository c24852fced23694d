"""Results of experiments, as folders hold them."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from tomewise.brief import describe_object
from tomewise.errors import StoreError, UnknownName
from tomewise.evaluate.design import Design
from tomewise.evaluate.journal import Journal
from tomewise.evaluate.rows import JsonObject, Row, read_latest_rows
from tomewise.evaluate.table import tabulate
from tomewise.evaluate.usages import sum_usages

_ABOUT, _ROWS = "experiment.json", "rows.jsonl"


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


@dataclass(frozen=True, slots=True)
class Results:
    """The rows of an experiment, one for each system and question.

    `builds` says by system what its layers would cost if it were alone, summed over the memories of the experiment: its
    usage, `fallbacks` by layer, `notes` for a reader, `networks` by layer, one for each memory. `refused` says why a
    system was left out. Rows are sorted by system, in the order of the first run, then by the id of the question, and
    not by their arrival.
    """

    about: About
    rows: tuple[Row, ...]
    builds: Mapping[str, JsonObject]
    refused: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return describe_object(self, self.about.name, systems=len(self.systems), rows=len(self.rows))

    def _repr_html_(self) -> str:
        return tabulate(self)._repr_html_()

    @property
    def systems(self) -> tuple[str, ...]:
        """The systems that have rows, in their order."""
        return tuple(dict.fromkeys(row.system for row in self.rows))

    def only(self, systems: Sequence[str] | None = None, items: Collection[str] | None = None) -> Results:
        """The rows of these systems, in this order, and of these questions; None means all.

        Raises UnknownName for a system that has no row.
        """
        names = self.systems if systems is None else systems
        for name in names:
            if name not in self.systems:
                raise UnknownName(f"{self.about.name} has no row of {name!r}: it has {', '.join(self.systems)}")
        rows = [row for name in names for row in self.rows if row.system == name]
        return replace(self, rows=tuple(row for row in rows if items is None or row.item.id in items))


def describe_experiment(experiment: Design, before: Sequence[str], now: str) -> About:
    """What to store about an experiment; `before` are the systems of earlier runs."""
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


def write_about(folder: Path, about: About) -> None:
    """Store it in the folder of the experiment, in one step."""
    new = folder / f"{_ABOUT}.new"
    new.write_text(json.dumps(asdict(about), indent=1) + "\n", encoding="utf-8")
    os.replace(new, folder / _ABOUT)


def find_journal(folder: Path) -> Journal:
    """The records of the experiment in a folder."""
    return Journal(folder / _ROWS)


def read_results(folder: Path) -> Results:
    """The results in the folder of an experiment. Raises StoreError."""
    about = read_about(folder)
    records = find_journal(folder).read()
    rows = sorted(read_latest_rows(records, about.judge_model), key=lambda row: row.item.id)
    refused = {record["system"]: record["reason"] for record in records if record["kind"] == "refused"}
    results = Results(about, tuple(rows), _sum_builds(records), refused)
    return results.only([name for name in about.systems if name in {row.system for row in rows}])


def read_about(folder: Path) -> About:
    """What the experiment in a folder was made with. Raises StoreError."""
    path = folder / _ABOUT
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
    return read_about(folder).systems if (folder / _ABOUT).is_file() else ()


def list_experiments(out: Path) -> list[About]:
    """The experiments in a folder, the latest first. The folder may also be that of one experiment."""
    folders = [out] if (out / _ABOUT).is_file() else [path.parent for path in out.glob(f"*/{_ABOUT}")]
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
    return out if (out / _ABOUT).is_file() else out / chosen.name


def _sum_builds(records: Sequence[JsonObject]) -> dict[str, JsonObject]:
    """By system the cost of its layers: the last record of each memory, summed over all memories."""
    last: dict[str, dict[str, JsonObject]] = {}
    for number, record in enumerate(records):
        if record["kind"] == "build":
            last.setdefault(record["system"], {})[record.get("memory", str(number))] = record
    return {system: _sum_build(list(parts.values())) for system, parts in last.items()}


def _sum_build(parts: Sequence[JsonObject]) -> JsonObject:
    fallbacks = sum((Counter(part.get("fallbacks", {})) for part in parts), Counter[str]())
    notes = list(dict.fromkeys(note for part in parts for note in part.get("notes", ())))
    networks: dict[str, list[JsonObject]] = {}
    for part in parts:
        for layer, network in part.get("networks", {}).items():
            networks.setdefault(layer, []).append(network)
    usage = sum_usages(part["usage"] for part in parts)
    return {**usage, "fallbacks": dict(fallbacks), "notes": notes, "networks": networks}
