"""Evaluations whose memories workers build and ask: rows and tables are those of one process, whatever ends."""

from __future__ import annotations

import csv
import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from tests.texts import prose

from tomewise.evaluate.experiment import Experiment
from tomewise.evaluate.items import Dataset, Item
from tomewise.evaluate.report import write_csv
from tomewise.evaluate.rows import Row
from tomewise.recall.flat import Dense
from tomewise.systems.kit import Kit, System, answer_once
from tomewise.types import Document, Question

SYSTEMS = ("hybrid", "cogitorag", "raptor")
TIMES = ("seconds", "asked", "waiting")


def own_recipe(kit: Kit) -> System:
    """Retrieve a few passages."""
    return answer_once(kit, Dense(kit.store, kit.embedder), 3, 500, selection="as found")


def make_dataset(memories: int, words: int = 300) -> Dataset:
    """Documents with two questions about each, asked over that document alone."""
    documents = tuple(Document(id=f"d{number}", text=prose(number, words)) for number in range(memories))
    items = tuple(
        Item(
            id=f"q{number}{turn}",
            question=Question(text=f"What is said {turn} in the {number}th place?"),
            answers=(document.text.split()[5],),
            supporting=(document.id,),
            documents=(document.id,),
        )
        for number, document in enumerate(documents)
        for turn in ("first", "last")
    )
    return Dataset(name="town", documents=documents, items=items)


def drop_times(value: Any) -> Any:
    """The value without what is measured by a clock."""
    if isinstance(value, dict):
        return {name: drop_times(each) for name, each in value.items() if not any(word in name for word in TIMES)}
    return [drop_times(each) for each in value] if isinstance(value, list) else value


def list_rows(experiment: Experiment) -> list[dict[str, Any]]:
    from tomewise.evaluate.rows import make_row_record

    rows: tuple[Row, ...] = experiment.results.rows
    return [drop_times(json.loads(json.dumps(make_row_record(row)))) for row in rows]


def read_table(experiment: Experiment) -> list[dict[str, str]]:
    lines = csv.DictReader(StringIO(write_csv(experiment.table(baseline="hybrid"))))
    return [drop_times(line) for line in lines]


@pytest.mark.cluster
def test_rows_and_tables_are_those_of_one_process(nodes: object, tmp_path: Path) -> None:
    made = [
        Experiment([*SYSTEMS, own_recipe], make_dataset(4), embedder="hash", out=tmp_path / name, **place)
        for name, place in (("pooled", {"on": "ray", "workers": 2}), ("alone", {}))
    ]
    for experiment in made:
        experiment.run()
    pooled, alone = made
    assert len(alone.results.rows) == 32
    assert list_rows(pooled) == list_rows(alone)
    assert read_table(pooled) == read_table(alone)
    builds = [drop_times(dict(each.results.builds)) for each in made]
    assert builds[0] == builds[1]
