"""From rows to a table: one line a system, with its scores, how sure they are, and what they cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from tomewise.errors import UnknownName
from tomewise.evaluate.judges import judge_named
from tomewise.evaluate.metrics import metric_named
from tomewise.evaluate.results import About, Results
from tomewise.evaluate.risk import Risk, risks
from tomewise.evaluate.rows import JsonObject, Row
from tomewise.evaluate.significance import Scores, holm, interval, p_value, resampled
from tomewise.evaluate.slices import sliced
from tomewise.evaluate.usages import sum_of

_FEWEST = 10  # pairs of scores; resamples of fewer can hardly stray, so that p would be too small


@dataclass(frozen=True, slots=True)
class Cell:
    """A score of a system, between 0 and 1; None where none of its questions has the gold, or one was not judged.

    `low` to `high` is the 95 % interval, where the score is a mean over questions. `p` is of the difference to the
    baseline over the questions that both were asked, where these are ten or more; `p_holm` is corrected for the systems
    of the table that have such a p in this column.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    p_holm: float | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """One system: `n` questions, of which `failed` could not be answered or, by a judge, judged.

    `usage` sums over its questions (calls, `reused` ones among them, input_tokens, output_tokens, cached_tokens,
    reasoning_tokens, cost, model_seconds, own_seconds), and `per_question` is the mean of each and of `depth`, the
    longest chain of calls. A cost is None where a price is unknown. `fallbacks` counts by kind what took the place of
    a step that failed. `risks` are of the table's `risk_of`. `build` is what its layers would cost alone.
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


@dataclass(frozen=True, slots=True)
class Table:
    """Lines over the same columns; `slices` breaks it down, by the name of a slice and its values.

    `risk_of` is the first column that scores answers, if any. `refused` says of systems why they were left out.
    """

    about: About
    columns: tuple[str, ...]
    judged: tuple[str, ...]
    lines: tuple[Line, ...]
    baseline: str | None = None
    slices: Mapping[str, Mapping[str, Table]] = field(default_factory=dict)
    risk_of: str | None = None
    refused: Mapping[str, str] = field(default_factory=dict)


Column: TypeAlias = Callable[[Row], "float | None"]  # NaN: the row has no gold; None: it was not judged


def tabulate(
    results: Results,
    *,
    columns: Sequence[str] | None = None,
    baseline: str | None = None,
    by: Sequence[str] = (),
    resamples: int = 10_000,
) -> Table:
    """The table of an experiment: its metrics and judges, or the columns named; `by` names slices.

    Raises UnknownName for a column, a baseline or a slice that there is not.
    """
    named = tuple(columns or (*results.about.metrics, *results.about.judges))
    judged = tuple(name for name in named if _judge(name, results.about))
    if baseline is not None and baseline not in results.systems:
        raise UnknownName(f"the baseline {baseline!r} has no row: it is one of {', '.join(results.systems)}")
    by_system = {system: [row for row in results.rows if row.system == system] for system in results.systems}
    found = {(system, name): scores(rows, name, name in judged) for system, rows in by_system.items() for name in named}
    cells = _corrected(_cells(by_system, found, judged, baseline, resamples, results.about.seed), named)
    risk_of = _risk_of(named, judged)
    risky = {system: risks(rows, found[system, risk_of]) for system, rows in by_system.items() if risk_of}
    lines = tuple(
        _line(system, rows, cells[system], judged, results.builds.get(system), risky.get(system, ()))
        for system, rows in by_system.items()
    )
    parts = {name: sliced(results, name) for name in by}
    slices = {
        name: {
            value: tabulate(part, columns=named, baseline=baseline, resamples=resamples)
            for value, part in found.items()
        }
        for name, found in parts.items()
    }
    return Table(results.about, named, judged, lines, baseline, slices, risk_of, results.refused)


def scores(rows: Sequence[Row], name: str, judged: bool) -> Scores | None:
    """The score of each row, NaN where its item lacks the gold; None when a row was not judged."""
    column = _by_judge(name) if judged else _by_metric(name)
    found = [column(row) for row in rows]
    return None if None in found else np.array(found, dtype=np.float64)


def _judge(name: str, about: About) -> bool:
    """Whether a column is a judge's. Raises UnknownName when it is neither that nor a metric's."""
    if name in about.judges:
        return True
    metric_named(name)
    return False


def _by_metric(name: str) -> Column:
    metric = metric_named(name)
    return lambda row: metric.score(row.outcome) if metric.applies(row.item) else float("nan")


def _by_judge(name: str) -> Column:
    judge = judge_named(name)

    def score(row: Row) -> float | None:
        if not judge.applies(row.item):
            return float("nan")
        if row.error:
            return 0.0
        return row.judgements[name].score if name in row.judgements else None

    return score


def _cells(
    by_system: Mapping[str, list[Row]],
    found: Mapping[tuple[str, str], Scores | None],
    judged: Sequence[str],
    baseline: str | None,
    resamples: int,
    seed: int,
) -> dict[str, dict[str, Cell]]:
    """All cells; every resample is drawn at once, which for many systems is most of the work."""
    places = list(found)
    known = [_known(found[place]) for place in places]
    apart = [_difference(by_system, found, place, baseline) for place in places]
    means = resampled([*known, *apart], resamples=resamples, seed=seed)
    cells: dict[str, dict[str, Cell]] = {system: {} for system in by_system}
    for number, (system, name) in enumerate(places):
        overall = None if name in judged else metric_named(name).overall
        if overall is not None:
            cells[system][name] = Cell(metric_named(name).total([row.outcome for row in by_system[system]]))
        elif len(known[number]):
            p = p_value(apart[number], means[len(places) + number]) if len(apart[number]) >= _FEWEST else None
            cells[system][name] = Cell(float(known[number].mean()), *interval(means[number]), p)
        else:
            cells[system][name] = Cell()
    return cells


def _corrected(cells: dict[str, dict[str, Cell]], names: Sequence[str]) -> dict[str, dict[str, Cell]]:
    """The cells with p-values corrected for the systems of each column."""
    for name in names:
        tested = {system: of[name].p for system, of in cells.items()}
        known = {system: p for system, p in tested.items() if p is not None}
        for system, corrected in zip(known, holm(list(known.values())), strict=True):
            cells[system][name] = replace(cells[system][name], p_holm=corrected)
    return cells


def _risk_of(names: Sequence[str], judged: Sequence[str]) -> str | None:
    """The first column that scores each answer."""
    return next((name for name in names if name in judged or _scores_answers(name)), None)


def _scores_answers(name: str) -> bool:
    metric = metric_named(name)
    return metric.of_answer and metric.overall is None


def _known(column: Scores | None) -> Scores:
    return np.empty(0) if column is None else column[~np.isnan(column)]


def _difference(
    by_system: Mapping[str, list[Row]],
    found: Mapping[tuple[str, str], Scores | None],
    place: tuple[str, str],
    baseline: str | None,
) -> Scores:
    """Score by score what a system has over the baseline, on the questions that both were asked."""
    system, name = place
    one = found[place]
    other = found.get((baseline, name)) if baseline and baseline != system else None
    if one is None or other is None or baseline is None:
        return np.empty(0)
    theirs = dict(zip((row.item.id for row in by_system[baseline]), other, strict=True))
    pairs = [(own, theirs.get(row.item.id, np.nan)) for row, own in zip(by_system[system], one, strict=True)]
    return _known(np.array([own - their for own, their in pairs], dtype=np.float64))


def _line(
    system: str,
    rows: Sequence[Row],
    cells: Mapping[str, Cell],
    judged: Sequence[str],
    build: JsonObject | None,
    risk: tuple[Risk, ...],
) -> Line:
    failed = sum(row.error is not None or any(_unjudgeable(row, name) for name in judged) for row in rows)
    total = sum_of(row.usage for row in rows)
    depth = sum(row.usage["depth"] for row in rows)  # its sum means nothing, its mean does
    means = {**total, "depth": depth}.items()
    mean = {name: None if value is None else value / max(len(rows), 1) for name, value in means}
    fallbacks = sum((Counter(row.fallbacks) for row in rows), Counter[str]())
    return Line(system, len(rows), failed, cells, total, mean, build, dict(fallbacks), risk)


def _unjudgeable(row: Row, judge: str) -> bool:
    return judge in row.judgements and row.judgements[judge].error is not None
