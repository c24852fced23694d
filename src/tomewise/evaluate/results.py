"""Results of an experiment: its rows, as its folder holds them, and the table made of them."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tomewise.errors import UnknownName
from tomewise.evaluate.design import About, read_about
from tomewise.evaluate.journal import Journal
from tomewise.evaluate.judges import Judge, find_judge
from tomewise.evaluate.metrics import Metric, find_metric
from tomewise.evaluate.rows import JsonObject, RankedBy, Row, read_latest_rows, sum_costs
from tomewise.evaluate.table import LEVELS, RESAMPLES, Cell, Line, Risk, Table
from tomewise.types.plain import describe_object

if TYPE_CHECKING:
    from numpy.typing import NDArray

_Key: TypeAlias = tuple[str, str]  # of a system and of a column

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
    about = results.about
    names = tuple(columns or (*about.metrics, *about.judges))
    judged = tuple(name for name in names if name in about.judges)
    if baseline is not None and baseline not in results.systems:
        raise UnknownName(f"the baseline {baseline!r} has no row: it is one of {', '.join(results.systems)}")
    scored = {name: _find_column(name, about) for name in names}
    by_system = {system: [row for row in results.rows if row.system == system] for system in results.systems}
    scores = {(system, name): score_rows(rows, name, about) for system, rows in by_system.items() for name in names}
    cells = _make_cells(by_system, scored, scores, baseline, resamples, about.seed)
    risk_of = next((name for name, column in scored.items() if column.of_answer and column.overall is None), None)
    lines = tuple(
        _make_line(
            system,
            rows,
            {name: cells[system, name] for name in names},
            judged,
            results.builds.get(system),
            measure_risks(rows, scores[system, risk_of]) if risk_of else (),
        )
        for system, rows in by_system.items()
    )
    slices = {
        name: {
            value: tabulate(part, columns=names, baseline=baseline, resamples=resamples)
            for value, part in split_results(results, name).items()
        }
        for name in by
    }
    ranked = tuple(name for name, column in scored.items() if column.of_ranking)
    return Table(about, names, judged, lines, baseline, slices, risk_of, results.refused, ranked)


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


def score_rows(rows: Sequence[Row], name: str, about: About) -> Scores | None:
    """The score of each row, NaN where its item lacks the gold; None when a row was not judged."""
    column = _find_column(name, about)
    values = [column.score_row(row) for row in rows]
    return None if None in values else np.array(values, dtype=np.float64)


def score_row(row: Row, about: About) -> dict[str, float | None]:
    """The scores of one row by column, None where it was not judged. Columns whose gold its item lacks are left out."""
    scores = {name: _find_column(name, about).score_row(row) for name in (*about.metrics, *about.judges)}
    return {
        name: None if score is None else float(score)
        for name, score in scores.items()
        if score is None or not isnan(score)
    }


def _find_column(name: str, about: About) -> Metric | Judge:
    return find_judge(name) if name in about.judges else find_metric(name)


def _make_cells(
    by_system: Mapping[str, list[Row]],
    columns: Mapping[str, Metric | Judge],
    scores: Mapping[_Key, Scores | None],
    baseline: str | None,
    resamples: int,
    seed: int,
) -> dict[_Key, Cell]:
    """All cells. All columns are resampled together, since for many systems that is most of the work."""
    known = {key: _drop_missing(column) for key, column in scores.items()}
    differences = [_subtract_baseline(by_system, columns, scores, key, baseline) for key in scores]
    means = resample_means([*known.values(), *differences], resamples=resamples, seed=seed)
    p_values = {
        key: compute_p_value(pairs, drawn)
        for key, pairs, drawn in zip(scores, differences, means[len(known) :], strict=True)
        if len(pairs) >= _FEWEST
    }
    corrected: dict[_Key, float] = {}  # for the systems of each column
    for name in columns:
        tested = {key: p for key, p in p_values.items() if key[1] == name}
        corrected |= zip(tested, correct_p_values(list(tested.values())), strict=True)
    cells: dict[_Key, Cell] = {}
    for key, drawn in zip(scores, means, strict=False):
        column = columns[key[1]]
        if isinstance(column, Metric) and column.overall is not None:
            cells[key] = Cell(column.total([row.outcome for row in by_system[key[0]]]))
        elif len(drawn):
            interval = estimate_interval(drawn)
            cells[key] = Cell(float(known[key].mean()), *interval, p_values.get(key), corrected.get(key))
        else:
            cells[key] = Cell()
    return cells


def _drop_missing(column: Scores | None) -> Scores:
    """The scores without NaN, which marks a row whose item lacks the gold."""
    return np.empty(0) if column is None else column[~np.isnan(column)]


def _subtract_baseline(
    by_system: Mapping[str, list[Row]],
    columns: Mapping[str, Metric | Judge],
    scores: Mapping[_Key, Scores | None],
    key: _Key,
    baseline: str | None,
) -> Scores:
    """The scores of a system minus those of the baseline, on the questions that both were asked.

    The difference of rankings of two kinds has no meaning, so it is left out, as is that of scores that are no means.
    """
    system, name = key
    if baseline is None or system == baseline or columns[name].overall is not None:
        return np.empty(0)
    rows, base_rows = by_system[system], by_system[baseline]
    column, base = scores[key], scores[baseline, name]
    if column is None or base is None:
        return np.empty(0)
    if columns[name].of_ranking and _read_ranked_by(rows) != _read_ranked_by(base_rows):
        return np.empty(0)
    by_question = dict(zip((row.item.id for row in base_rows), base, strict=True))
    base = np.array([by_question.get(row.item.id, np.nan) for row in rows], dtype=np.float64)
    return _drop_missing(column - base)


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


Scores: TypeAlias = "NDArray[np.float64]"

# ---------------------------------------------------------------- could a difference between systems be chance?
#
# The bootstrap over questions. Source: Efron and Tibshirani 1993, An Introduction to the Bootstrap: percentile
# intervals (section 13.3), and for paired differences the test on resamples shifted to the null hypothesis
# (section 16.4).

_TAILS = ((1 - 0.95) / 2, (1 + 0.95) / 2)  # outside of an interval
_AT_ONCE = 2_000_000  # drawn positions in memory at a time
_NEAR = 1e-12  # sums of equal numbers in another order differ by less


def resample_means(columns: Sequence[Scores], *, resamples: int = RESAMPLES, seed: int = 0) -> list[Scores]:
    """For each column of scores the means of its resamples, shape (resamples,); for an empty column shape (0,).

    Columns of equal length are drawn together: their i-th resamples hold the same questions.
    """
    means: list[Scores] = [np.empty(0)] * len(columns)
    for length in sorted({len(column) for column in columns} - {0}):
        numbers = [number for number, column in enumerate(columns) if len(column) == length]
        drawn = _draw_means(np.column_stack([columns[number] for number in numbers]), resamples, seed)
        for position, number in enumerate(numbers):
            means[number] = drawn[:, position]
    return means


def estimate_interval(means: Scores) -> tuple[float, float]:
    """The percentile interval that holds 95 % of the resampled means."""
    low, high = np.quantile(means, _TAILS)
    return float(low), float(high)


def compute_p_value(differences: Scores, means: Scores) -> float:
    """The two-sided p: how often the mean of a resample differs from the mean by as much as that differs from 0.

    `means` are those of resamples of `differences`. Numerator and denominator each get 1, so that p is never 0.
    """
    observed = float(differences.mean())
    extreme = np.abs(means - observed) >= abs(observed) - _NEAR
    return float((1 + extreme.sum()) / (1 + len(means)))


def correct_p_values(p_values: Sequence[float]) -> list[float]:
    """The p-values corrected for multiple tests, in their order: from the smallest on, times the number that remain.

    Rejecting those below a level keeps the chance of any false rejection below it, also where the tests are dependent.
    Source: Holm 1979, A Simple Sequentially Rejective Multiple Test Procedure.
    """
    raw = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(raw, kind="stable")
    stepped = np.maximum.accumulate(raw[order] * np.arange(len(raw), 0, -1))
    corrected = np.empty_like(raw)
    corrected[order] = np.minimum(stepped, 1.0)
    return [float(p) for p in corrected]


def _draw_means(scores: Scores, resamples: int, seed: int) -> Scores:
    count = len(scores)
    generator = np.random.default_rng(seed)
    most = max(1, _AT_ONCE // count)  # resamples at a time
    parts = []
    for start in range(0, resamples, most):
        size = min(most, resamples - start)
        drawn = generator.integers(count, size=(size, count)) + np.arange(size)[:, None] * count
        times = np.bincount(drawn.ravel(), minlength=size * count).reshape(size, count)
        parts.append(times.astype(np.float64) @ scores / count)
    return np.concatenate(parts)


# ---------------------------------------------------------------- risk against coverage
#
# How often is a system wrong if it answers only where it is sure enough? El-Yaniv and Wiener (JMLR 2010): coverage is
# the share of the questions that are answered, risk the mean loss among these, here 1 minus the score. The system
# itself says how sure an answer is: answers given freely are surer than forced ones; among each, full support by the
# evidence is surer than partial support, and that is surer than none.


def measure_risks(rows: Sequence[Row], scores: Scores | None) -> tuple[Risk, ...]:
    """The risk at each level, surest first. No level covers a question that failed or was declined.

    `scores` are those of the rows; rows without gold have NaN and do not count. Without scores there are no risks.
    """
    if scores is None or not (has_gold := ~np.isnan(scores)).any():
        return ()
    levels = np.array([_find_level(row) for row in rows])[has_gold]
    known = scores[has_gold]
    return tuple(_measure_risk(name, known[levels <= level], len(known)) for level, name in enumerate(LEVELS))


def _measure_risk(level: str, covered: Scores, questions: int) -> Risk:
    risk = 1 - float(covered.mean()) if len(covered) else None
    return Risk(level, len(covered) / questions, risk)


def _find_level(row: Row) -> int:
    """The index of its confidence in LEVELS; without an answer, one more than the last."""
    if row.error or not (row.prediction.answer or row.prediction.choice):
        return len(LEVELS)
    forced = row.forced or not row.resolved
    return LEVELS.index(f"forced, {row.claimed}" if forced else row.claimed)
