"""Plots of results: score against cost, score by document length, and score by cycles allowed; as PNG and SVG."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tomewise.errors import MissingDependency
from tomewise.evaluate.results import LENGTH, Results, score_rows, split_results, tabulate
from tomewise.evaluate.table import Line

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Readers who see fewer colours can distinguish these (Okabe and Ito 2008); in print the markers differ.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_WIDE = 10.0  # ratio of the largest to the smallest cost from which the scale of costs is logarithmic

Style: TypeAlias = dict[str, Any]
Draw: TypeAlias = "Callable[[Axes, Results, str], None]"


def write_plots(results: Results, folder: Path, metric: str | None = None) -> list[Path]:
    """Draw three plots, each as PNG and SVG, and return their paths. Equal results give equal files.

    `metric` is a metric or judge of the experiment, by default the first. Raises MissingDependency without matplotlib.
    """
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingDependency("plots need matplotlib: pip install 'tomewise[eval]'") from error
    about = results.about
    metric = metric or (*about.metrics, *about.judges)[0]
    plots: Mapping[str, Draw] = {"cost": _draw_cost, "length": _draw_length, "cycles": _draw_cycles}
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    with matplotlib.rc_context({"svg.hashsalt": "tomewise", "font.size": 10}):
        for name, draw in plots.items():
            figure = Figure(figsize=(6.4, 4.2), layout="constrained")
            axes = figure.add_subplot()
            draw(axes, results, metric)
            axes.set_ylabel(f"{metric} (%)")
            axes.set_title(f"{about.dataset}, {about.model}", fontsize=10)
            axes.spines[["top", "right"]].set_visible(False)
            axes.grid(axis="y", alpha=0.3)
            axes.set_ylim(0, 1.05 * max(axes.get_ylim()[1], 1))
            figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=9)
            for form, metadata in (("png", {"Software": None}), ("svg", {"Date": None})):
                paths.append(folder / f"{name}.{form}")
                figure.savefig(paths[-1], dpi=200, metadata=metadata)
    return paths


def _list_styles(systems: tuple[str, ...]) -> Iterator[tuple[str, Style]]:
    for system, colour, marker in zip(systems, cycle(_COLOURS), cycle(_MARKERS), strict=False):
        yield system, {"color": colour, "marker": marker, "label": system}


def _draw_cost(axes: Axes, results: Results, metric: str) -> None:
    """A point with its interval for each system: in dollars where every price is known and above 0, else in tokens."""
    lines = {line.system: line for line in tabulate(results, columns=[metric]).lines}
    in_dollars = all(line.per_question["dollars"] for line in lines.values())
    costs = {name: _read_cost(line, in_dollars) for name, line in lines.items()}
    for system, style in _list_styles(results.systems):
        cell = lines[system].cells[metric]
        if cell.value is None:
            continue
        low, high = (cell.low, cell.high) if cell.low is not None and cell.high is not None else [cell.value] * 2
        errors = [[100 * max(0.0, cell.value - low)], [100 * max(0.0, high - cell.value)]]
        axes.errorbar([costs[system]], [100 * cell.value], yerr=errors, linestyle="none", capsize=3, **style)
    if min(costs.values()) > 0 and max(costs.values()) / min(costs.values()) >= _WIDE:
        axes.set_xscale("log")
    axes.xaxis.set_major_formatter("${x:,.4g}" if in_dollars else "{x:,.0f}")
    axes.set_xlabel("dollars per question" if in_dollars else "tokens per question, in and out")


def _read_cost(line: Line, in_dollars: bool) -> float:
    mean = line.per_question
    return float(mean["dollars"]) if in_dollars else float(mean["input_tokens"] + mean["output_tokens"])


def _draw_length(axes: Axes, results: Results, metric: str) -> None:
    """A line for each system over bins of length."""
    parts = split_results(results, LENGTH)
    means = [
        {line.system: line.cells[metric].value for line in tabulate(part, columns=[metric], resamples=1).lines}
        for part in parts.values()
    ]
    _draw_lines(axes, results, lambda system: [values.get(system) for values in means])
    axes.set_xticks(range(len(parts)), list(parts))
    axes.set_xlabel("characters of the documents asked over")


def _draw_lines(axes: Axes, results: Results, score: Callable[[str], Sequence[float | None]]) -> None:
    for system, style in _list_styles(results.systems):
        if scores := score(system):
            axes.plot(range(len(scores)), 100 * np.array(scores, dtype=np.float64), **style)


def _draw_cycles(axes: Axes, results: Results, metric: str) -> None:
    """The score if every loop had stopped after a number of cycles."""
    most = max(row.cycles for row in results.rows)
    _draw_lines(axes, results, lambda system: score_by_cycles(results.select([system]), metric, most))
    axes.set_xticks(range(most + 1))
    axes.set_xlabel("cycles allowed")


def score_by_cycles(results: Results, metric: str, most: int) -> list[float]:
    """The score of one system by the cycles allowed, 0 to `most`; empty for a metric that is not a mean.

    A question that was not answered by then counts as wrong.
    """
    column = score_rows(results.rows, metric, results.about)
    if column is None:
        return []
    cycles, has_gold = np.array([row.cycles for row in results.rows]), ~np.isnan(column)
    sums = [column[has_gold & (cycles <= limit)].sum() for limit in range(most + 1)]
    return [float(total) / max(has_gold.sum(), 1) for total in sums]
