"""Results of an experiment: its rows, as its folder holds them, and the table made of them."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import isnan
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from tomewise.brief import describe_object
from tomewise.errors import UnknownName
from tomewise.evaluate.about import About, read_about
from tomewise.evaluate.journal import Journal
from tomewise.evaluate.judges import find_judge
from tomewise.evaluate.metrics import Metric, find_metric
from tomewise.evaluate.risk import Risk, measure_risks
from tomewise.evaluate.rows import JsonObject, RankedBy, Row, read_latest_rows, sum_costs
from tomewise.evaluate.significance import Scores, compute_p_value, correct_p_values, estimate_interval, resample_means
from tomewise.evaluate.table import Cell, Line, Table

Column: TypeAlias = Callable[[Row], "float | None"]  # NaN: the item lacks the gold; None: the row was not judged

LENGTH = "length"
_ROWS = "rows.jsonl"
_MOST = 8  # more different numbers of a slice than this are put in bins
_BINS = 4
_FEWEST = 10  # pairs of scores; resamples of fewer hardly vary, so that p would be too small


@dataclass(frozen=True, slots=True)
class Results:
    """The rows of an experiment, one for each system and question.

    `builds` says by system what its layers would cost if it were alone, summed over the memories of the experiment: its
    cost, `fallbacks` by layer, `notes` for a reader, `networks` by layer, one for each memory. `refused` says why a
    system was left out. Rows are sorted by system, in the order of the first run, then by the id of the question, and
    not by their arrival.
    """

    about: About
    """What was asked of whom: the design of the experiment, with versions."""
    rows: tuple[Row, ...]
    """One for each system and question, with scores, cost and trace."""
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

    def select(self, systems: Sequence[str] | None = None, items: Collection[str] | None = None) -> Results:
        """The rows of these systems, in this order, and of these questions; None means all.

        Raises UnknownName for a system that has no row.
        """
        names = self.systems if systems is None else systems
        for name in names:
            if name not in self.systems:
                raise UnknownName(f"{self.about.name} has no row of {name!r}: it has {', '.join(self.systems)}")
        rows = [row for name in names for row in self.rows if row.system == name]
        return replace(self, rows=tuple(row for row in rows if items is None or row.item.id in items))


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
    return results.select([name for name in about.systems if name in {row.system for row in rows}])


def _sum_builds(records: Sequence[JsonObject]) -> dict[str, JsonObject]:
    """By system the cost of its layers: the last record of each memory, summed over all memories."""
    last: dict[str, dict[str, JsonObject]] = {}
    for record in records:
        if record["kind"] == "build":
            last.setdefault(record["system"], {})[record["memory"]] = record
    return {system: _sum_build(list(parts.values())) for system, parts in last.items()}


def _sum_build(parts: Sequence[JsonObject]) -> JsonObject:
    fallbacks = sum((Counter(part["fallbacks"]) for part in parts), Counter[str]())
    notes = list(dict.fromkeys(note for part in parts for note in part["notes"]))
    networks: dict[str, list[JsonObject]] = {}
    for part in parts:
        for layer, network in part["networks"].items():
            networks.setdefault(layer, []).append(network)
    cost = sum_costs(part["cost"] for part in parts)
    return {**cost, "fallbacks": dict(fallbacks), "notes": notes, "networks": networks}


def tabulate(
    results: Results,
    *,
    columns: Sequence[str] | None = None,
    baseline: str | None = None,
    by: Sequence[str] = (),
    resamples: int = 10_000,
) -> Table:
    """The table of an experiment: its metrics and judges, or `columns` alone; `by` names slices.

    Raises UnknownName for a column, a baseline or a slice that does not exist.
    """
    names = tuple(columns or (*results.about.metrics, *results.about.judges))
    judged = tuple(name for name in names if name in results.about.judges)
    metrics = {name: find_metric(name) for name in names if name not in judged}
    if baseline is not None and baseline not in results.systems:
        raise UnknownName(f"the baseline {baseline!r} has no row: it is one of {', '.join(results.systems)}")
    by_system = {system: [row for row in results.rows if row.system == system] for system in results.systems}
    score_columns = {
        (system, name): score_rows(rows, name, name in judged) for system, rows in by_system.items() for name in names
    }
    ranked = tuple(name for name in names if name in metrics and metrics[name].of_ranking)
    cells = _make_cells(by_system, score_columns, metrics, baseline, resamples, results.about.seed)
    _correct_p(cells, names)
    of_answers = {name for name, metric in metrics.items() if metric.of_answer and metric.overall is None}
    risk_of = next((name for name in names if name in of_answers or name in judged), None)
    risks = {
        system: measure_risks(rows, score_columns[system, risk_of]) for system, rows in by_system.items() if risk_of
    }
    lines = tuple(
        _make_line(system, rows, cells[system], judged, results.builds.get(system), risks.get(system, ()))
        for system, rows in by_system.items()
    )
    slices = {
        name: {
            value: tabulate(part, columns=names, baseline=baseline, resamples=resamples)
            for value, part in split_results(results, name).items()
        }
        for name in by
    }
    return Table(results.about, names, judged, lines, baseline, slices, risk_of, results.refused, ranked)


def split_results(results: Results, name: str) -> dict[str, Results]:
    """The results by the value of a slice, without the costs of builds. Raises UnknownName.

    The slice `length` is that of the documents of the question, in characters. Whole numbers of many values are put in
    up to four bins of about equally many questions. A question without the slice is left out.
    """
    names = list_slices(results.rows)
    if name not in names:
        raise UnknownName(f"{results.about.dataset} has no slice {name!r}: it has {', '.join(names)}")
    values = {row.item.id: value for row in results.rows if (value := _read_value(row, name)) is not None}
    make_label = _choose_labels(list(values.values()))
    parts: dict[str, list[Row]] = {make_label(value): [] for value in sorted(values.values(), key=_make_sort_key)}
    for row in results.rows:
        if row.item.id in values:
            parts[make_label(values[row.item.id])].append(row)
    return {label: replace(results, rows=tuple(part), builds={}) for label, part in parts.items()}


def list_slices(rows: Sequence[Row]) -> tuple[str, ...]:
    """The slices that at least one question has, without `pair`, which names pairs of claims."""
    names = dict.fromkeys(name for row in rows for name in row.item.slices if name != "pair")
    return (*names, LENGTH)


def _read_value(row: Row, name: str) -> str | int | None:
    return row.item.slices.get(name) if name in row.item.slices or name != LENGTH else row.characters


def _make_sort_key(value: str | int) -> tuple[int, int, str]:
    return (0, value, "") if isinstance(value, int) else (1, 0, str(value))


def _choose_labels(values: Sequence[str | int]) -> Callable[[Any], str]:
    """A function from a value to its label: the value itself, or its bin."""
    numbers = sorted(value for value in values if isinstance(value, int))
    if len(numbers) < len(values) or len(set(numbers)) <= _MOST:
        return str
    tops = sorted({numbers[-(-len(numbers) * part // _BINS) - 1] for part in range(1, _BINS + 1)})
    names = [f"up to {tops[0]:,}", *(f"{low + 1:,} to {high:,}" for low, high in pairwise(tops))]
    return lambda value: names[bisect_left(tops, value)]


def score_rows(rows: Sequence[Row], name: str, judged: bool) -> Scores | None:
    """The score of each row, NaN where its item lacks the gold; None when a row was not judged."""
    column = _make_column(name, judged)
    values = [column(row) for row in rows]
    return None if None in values else np.array(values, dtype=np.float64)


def score_row(row: Row, about: About) -> dict[str, float | None]:
    """The scores of one row by column, None where it was not judged. Columns whose gold its item lacks are left out."""
    names = (*about.metrics, *about.judges)
    scores = {name: _make_column(name, name in about.judges)(row) for name in names}
    return {
        name: None if score is None else float(score)
        for name, score in scores.items()
        if score is None or not isnan(score)
    }


def _make_column(name: str, judged: bool) -> Column:
    if not judged:
        metric = find_metric(name)
        return lambda row: metric.score(row.outcome) if metric.applies(row.item) else float("nan")
    judge = find_judge(name)

    def score(row: Row) -> float | None:
        if not judge.applies(row.item):
            return float("nan")
        if row.error:
            return 0.0
        return row.judgements[name].score if name in row.judgements else None

    return score


def _make_cells(
    by_system: Mapping[str, list[Row]],
    score_columns: Mapping[tuple[str, str], Scores | None],
    metrics: Mapping[str, Metric],
    baseline: str | None,
    resamples: int,
    seed: int,
) -> dict[str, dict[str, Cell]]:
    """All cells. All columns are resampled together, since for many systems that is most of the work."""
    keys = list(score_columns)
    known = [_drop_missing(score_columns[key]) for key in keys]
    differences = [_subtract_baseline(by_system, score_columns, key, baseline, metrics) for key in keys]
    means = resample_means([*known, *differences], resamples=resamples, seed=seed)
    cells: dict[str, dict[str, Cell]] = {system: {} for system in by_system}
    for number, (system, name) in enumerate(keys):
        metric = metrics.get(name)
        if metric is not None and metric.overall is not None:
            cells[system][name] = Cell(metric.total([row.outcome for row in by_system[system]]))
        elif len(known[number]):
            pairs = differences[number]
            p = compute_p_value(pairs, means[len(keys) + number]) if len(pairs) >= _FEWEST else None
            cells[system][name] = Cell(float(known[number].mean()), *estimate_interval(means[number]), p)
        else:
            cells[system][name] = Cell()
    return cells


def _correct_p(cells: dict[str, dict[str, Cell]], names: Sequence[str]) -> None:
    """Correct the p-values of the cells for the systems of each column."""
    for name in names:
        tested = {system: p for system, columns in cells.items() if (p := columns[name].p) is not None}
        for system, corrected in zip(tested, correct_p_values(list(tested.values())), strict=True):
            cells[system][name] = replace(cells[system][name], p_holm=corrected)


def _drop_missing(column: Scores | None) -> Scores:
    """The scores without NaN, which marks a row whose item lacks the gold."""
    return np.empty(0) if column is None else column[~np.isnan(column)]


def _subtract_baseline(
    by_system: Mapping[str, list[Row]],
    score_columns: Mapping[tuple[str, str], Scores | None],
    key: tuple[str, str],
    baseline: str | None,
    metrics: Mapping[str, Metric],
) -> Scores:
    """The scores of a system minus those of the baseline, on the questions that both were asked.

    The difference of rankings of two kinds has no meaning, so it is left out.
    """
    system, name = key
    system_scores = score_columns[key]
    base = score_columns.get((baseline, name)) if baseline and baseline != system else None
    kinds = {_read_ranked_by(by_system[each]) for each in (system, baseline) if each}
    of_ranking = name in metrics and metrics[name].of_ranking
    if system_scores is None or base is None or baseline is None or (of_ranking and len(kinds) > 1):
        return np.empty(0)
    by_question = dict(zip((row.item.id for row in by_system[baseline]), base, strict=True))
    pairs = zip(by_system[system], system_scores, strict=True)
    return _drop_missing(
        np.array([score - by_question.get(row.item.id, np.nan) for row, score in pairs], dtype=np.float64)
    )


def _make_line(
    system: str,
    rows: Sequence[Row],
    cells: Mapping[str, Cell],
    judged: Sequence[str],
    build: JsonObject | None,
    risks: tuple[Risk, ...],
) -> Line:
    failed = sum(
        row.error is not None or any(row.judgements[name].error for name in judged if name in row.judgements)
        for row in rows
    )
    total = sum_costs(row.cost for row in rows)
    depth = sum(row.cost["depth"] for row in rows)  # its mean has a meaning, its sum has none
    means = {**total, "depth": depth}.items()
    mean = {name: None if value is None else value / max(len(rows), 1) for name, value in means}
    fallbacks = sum((Counter(row.fallbacks) for row in rows), Counter[str]())
    return Line(system, len(rows), failed, cells, total, mean, build, dict(fallbacks), risks, _read_ranked_by(rows))


def _read_ranked_by(rows: Sequence[Row]) -> RankedBy:
    return "shown" if any(row.ranked_by == "shown" for row in rows) else "retriever"
