"""From rows to a table: for each system a line with scores, their confidence intervals, and costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from tomewise.brief import describe_object
from tomewise.errors import UnknownName
from tomewise.evaluate.judges import find_judge
from tomewise.evaluate.metrics import find_metric
from tomewise.evaluate.report import write_html
from tomewise.evaluate.risk import Risk, measure_risks
from tomewise.evaluate.rows import JsonObject, RankedBy, Row
from tomewise.evaluate.significance import Scores, compute_p_value, correct_p_values, estimate_interval, resample_means
from tomewise.evaluate.slices import split_by_slice
from tomewise.evaluate.usages import sum_usages

if TYPE_CHECKING:
    from tomewise.evaluate.results import About, Results

Column: TypeAlias = Callable[[Row], "float | None"]  # NaN: the item lacks the gold; None: the row was not judged

_FEWEST = 10  # pairs of scores; resamples of fewer hardly vary, so that p would be too small


@dataclass(frozen=True, slots=True)
class Cell:
    """A score of a system, from 0 to 1; None where its questions lack the gold, or where one was not judged.

    `low` to `high` is the 95 % interval, where the score is a mean over questions. `p` tests the difference from the
    baseline over the questions that both were asked, where these are ten or more; `p_holm` is corrected for the number
    of systems with a p in this column.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    p_holm: float | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """One system: `n` questions; for `failed` of them the system or a judge failed.

    `usage` sums over its questions (calls, of which `reused`, input_tokens, output_tokens, cached_tokens,
    reasoning_tokens, cost, model_seconds, own_seconds), and `per_question` is the mean of each and of `depth`, the
    longest chain of calls. An unknown price makes the cost None. `fallbacks` counts by kind the steps that failed
    and fell back on something else. `risks` are of the table's `risk_of`. `build` is the cost of its layers alone.
    `ranked_by` is that of its rows.
    """

    system: str
    n: int
    failed: int
    cells: Mapping[str, Cell]
    usage: JsonObject
    per_question: JsonObject
    build: JsonObject | None = None
    fallbacks: Mapping[str, int] = field(default_factory=dict)
    risks: tuple[Risk, ...] = ()
    ranked_by: RankedBy = "retriever"


@dataclass(frozen=True, slots=True)
class Table:
    """Lines over the same columns; `slices` holds a table for each value of each slice.

    `risk_of` is the first column that scores answers, if any. `refused` says by system why it was left out. `ranked`
    are the columns that score rankings.
    """

    about: About
    columns: tuple[str, ...]
    judged: tuple[str, ...]
    lines: tuple[Line, ...]
    baseline: str | None = None
    slices: Mapping[str, Mapping[str, Table]] = field(default_factory=dict)
    risk_of: str | None = None
    refused: Mapping[str, str] = field(default_factory=dict)
    ranked: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return describe_object(self, self.about.name, systems=len(self.lines), columns=len(self.columns))

    def _repr_html_(self) -> str:
        return write_html(self)


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
    judged = tuple(name for name in names if _is_judge(name, results.about))
    if baseline is not None and baseline not in results.systems:
        raise UnknownName(f"the baseline {baseline!r} has no row: it is one of {', '.join(results.systems)}")
    by_system = {system: [row for row in results.rows if row.system == system] for system in results.systems}
    score_columns = {
        (system, name): score_rows(rows, name, name in judged) for system, rows in by_system.items() for name in names
    }
    cells = _correct_p(_make_cells(by_system, score_columns, judged, baseline, resamples, results.about.seed), names)
    risk_of = _choose_risk_column(names, judged)
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
            for value, part in split_by_slice(results, name).items()
        }
        for name in by
    }
    ranked = _list_ranked(names, judged)
    return Table(results.about, names, judged, lines, baseline, slices, risk_of, results.refused, ranked)


def score_rows(rows: Sequence[Row], name: str, judged: bool) -> Scores | None:
    """The score of each row, NaN where its item lacks the gold; None when a row was not judged."""
    column = _make_judge_column(name) if judged else _make_metric_column(name)
    values = [column(row) for row in rows]
    return None if None in values else np.array(values, dtype=np.float64)


def _is_judge(name: str, about: About) -> bool:
    """Whether a column is of a judge. Raises UnknownName when it is neither of a judge nor of a metric."""
    if name in about.judges:
        return True
    find_metric(name)
    return False


def _make_metric_column(name: str) -> Column:
    metric = find_metric(name)
    return lambda row: metric.score(row.outcome) if metric.applies(row.item) else float("nan")


def _make_judge_column(name: str) -> Column:
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
    judged: Sequence[str],
    baseline: str | None,
    resamples: int,
    seed: int,
) -> dict[str, dict[str, Cell]]:
    """All cells. All columns are resampled together, since for many systems that is most of the work."""
    places = list(score_columns)
    known = [_drop_missing(score_columns[place]) for place in places]
    ranked = _list_ranked({name for _, name in places}, judged)
    differences = [_subtract_baseline(by_system, score_columns, place, baseline, ranked) for place in places]
    means = resample_means([*known, *differences], resamples=resamples, seed=seed)
    cells: dict[str, dict[str, Cell]] = {system: {} for system in by_system}
    for number, (system, name) in enumerate(places):
        overall = None if name in judged else find_metric(name).overall
        if overall is not None:
            cells[system][name] = Cell(find_metric(name).total([row.outcome for row in by_system[system]]))
        elif len(known[number]):
            pairs = differences[number]
            p = compute_p_value(pairs, means[len(places) + number]) if len(pairs) >= _FEWEST else None
            cells[system][name] = Cell(float(known[number].mean()), *estimate_interval(means[number]), p)
        else:
            cells[system][name] = Cell()
    return cells


def _correct_p(cells: dict[str, dict[str, Cell]], names: Sequence[str]) -> dict[str, dict[str, Cell]]:
    """The cells with p-values corrected for the systems of each column."""
    for name in names:
        all_p = {system: columns[name].p for system, columns in cells.items()}
        tested = {system: p for system, p in all_p.items() if p is not None}
        for system, corrected in zip(tested, correct_p_values(list(tested.values())), strict=True):
            cells[system][name] = replace(cells[system][name], p_holm=corrected)
    return cells


def _choose_risk_column(names: Sequence[str], judged: Sequence[str]) -> str | None:
    """The first column that scores each answer."""
    return next((name for name in names if name in judged or _scores_answers(name)), None)


def _scores_answers(name: str) -> bool:
    metric = find_metric(name)
    return metric.of_answer and metric.overall is None


def _drop_missing(column: Scores | None) -> Scores:
    """The scores of the rows whose items have the gold."""
    return np.empty(0) if column is None else column[~np.isnan(column)]


def _subtract_baseline(
    by_system: Mapping[str, list[Row]],
    score_columns: Mapping[tuple[str, str], Scores | None],
    place: tuple[str, str],
    baseline: str | None,
    ranked: Sequence[str],
) -> Scores:
    """The scores of a system minus those of the baseline, on the questions that both were asked.

    The difference of rankings of two kinds has no meaning, so it is left out.
    """
    system, name = place
    own = score_columns[place]
    base = score_columns.get((baseline, name)) if baseline and baseline != system else None
    kinds = {_read_ranked_by(by_system[each]) for each in (system, baseline) if each}
    if own is None or base is None or baseline is None or (name in ranked and len(kinds) > 1):
        return np.empty(0)
    by_question = dict(zip((row.item.id for row in by_system[baseline]), base, strict=True))
    pairs = zip(by_system[system], own, strict=True)
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
    failed = sum(row.error is not None or any(_judge_failed(row, name) for name in judged) for row in rows)
    total = sum_usages(row.usage for row in rows)
    depth = sum(row.usage["depth"] for row in rows)  # its mean has a meaning, its sum has none
    means = {**total, "depth": depth}.items()
    mean = {name: None if value is None else value / max(len(rows), 1) for name, value in means}
    fallbacks = sum((Counter(row.fallbacks) for row in rows), Counter[str]())
    return Line(system, len(rows), failed, cells, total, mean, build, dict(fallbacks), risks, _read_ranked_by(rows))


def _list_ranked(names: Iterable[str], judged: Sequence[str]) -> tuple[str, ...]:
    """The columns that score rankings."""
    return tuple(name for name in names if name not in judged and find_metric(name).of_ranking)


def _read_ranked_by(rows: Sequence[Row]) -> RankedBy:
    return "shown" if any(row.ranked_by == "shown" for row in rows) else "retriever"


def _judge_failed(row: Row, judge: str) -> bool:
    return judge in row.judgements and row.judgements[judge].error is not None
