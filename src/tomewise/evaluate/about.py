"""What an experiment was made with, and the folders of experiments."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tomewise.errors import StoreError, UnknownName
from tomewise.evaluate.design import Design

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
