"""A table of results as people read it: headings and cells of text, the same in every format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tomewise.evaluate.paid import EXTRACTIVE
from tomewise.evaluate.results import About
from tomewise.evaluate.risk import LEVELS
from tomewise.evaluate.significance import RESAMPLES
from tomewise.evaluate.table import Cell, Line, Table

NOTHING = "–"
_COSTS = {
    "calls": "calls",
    "tokens in": "input_tokens",
    "tokens out": "output_tokens",
    "$": "cost",
    "model s": "model_seconds",
    "own s": "own_seconds",
    "path": "depth",
}
_TOLD_APART = {"tokens cached": "cached_tokens", "tokens reasoning": "reasoning_tokens"}  # where there are any
MACHINERY = "machinery, not accuracy"
_MARKS = ((0.01, "‡"), (0.05, "†"))


@dataclass(frozen=True, slots=True)
class Entry:
    """One cell: its text, the interval below it, the mark of significance, and whether it is the best of its column."""

    text: str
    interval: str = ""
    mark: str = ""
    best: bool = False


@dataclass(frozen=True, slots=True)
class Grid:
    """A titled block of cells; the first column names systems, and further columns hold numbers."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[Entry, ...], ...]


def grids(table: Table) -> list[Grid]:
    """Scores, costs, then scores by slice."""
    about = table.about
    title = f"{about.dataset} · {about.model}" + _kind(about)
    parts = [
        _scores(part, f"{title} · {name}: {value}")
        for name, values in table.slices.items()
        for value, part in values.items()
    ]
    risky = [_risks(table, f"{title} · risk and coverage by {table.risk_of}")] if _unsure(table) else []
    return [_scores(table, title), _costs(table, f"{title} · cost per question"), *risky, *parts]


def _kind(about: About) -> str:
    if about.retrieval_only:
        return " · retrieval alone"
    return f" · {MACHINERY}" if about.model == EXTRACTIVE else ""


def notes(table: Table) -> list[str]:
    """What a reader must know beside the numbers."""
    about = table.about
    said = [
        f"Model {about.model}, embedder {about.embedder}. Scores are percentages; brackets hold 95 % intervals, from "
        f"{RESAMPLES:,} bootstrap resamples of the questions."
    ]
    if table.baseline:
        said.append(
            f"† p < 0.05, ‡ p < 0.01 against {table.baseline}: paired bootstrap, two-sided, corrected after Holm "
            "for the systems of each column."
        )
    if table.judged:
        said.append(f"Judged by {about.judge_model}: {', '.join(table.judged)}.")
    if any(line.failed for line in table.lines):
        said.append("Failed questions are scored wrong.")
    if len({line.n for line in table.lines}) > 1:
        said.append("Not every system was asked every question: n says how many.")
    if any(line.usage["calls"] for line in table.lines):
        said.append("Seconds are wall time among questions side by side; path is the longest chain of model calls.")
    if any(line.usage["reused"] for line in table.lines):
        said.append("Replies kept from earlier count as calls, with their tokens and money, but took no time here.")
    if _unsure(table):
        said.append(
            "Covered: answers at least that sure, as a share of all questions; risk: how far these are from right. "
            "Answers given freely are surer than forced ones, then those that the evidence holds in full, partly, not."
        )
    return [*said, *_machinery(table), *(note for line in table.lines for note in _line_notes(line)), *_refused(table)]


def _machinery(table: Table) -> list[str]:
    """Says of which rows the figures are no measure of a system."""
    if table.about.model != EXTRACTIVE:
        return []
    if not table.about.retrieval_only:
        return [f"The extractive model quotes by rule: its rows show {MACHINERY}."]
    made = [line.system for line in table.lines if line.build and line.build["calls"]]
    return [f"Layers by the extractive model, {MACHINERY}: {', '.join(made)}."] if made else []


def _line_notes(line: Line) -> Iterator[str]:
    """What one system did that others may not have done."""
    build = line.build or {}
    if build.get("calls"):
        spent = f"{build['calls']:,} calls, {build['input_tokens']:,} tokens in, {build['output_tokens']:,} out"
        yield f"Built for {line.system}, as if alone: {spent}."
    for note in build.get("notes", ()):
        yield f"{line.system}: {note}."
    if fallen := _fallen(line):
        counts = ", ".join(f"{name} {count:,}" for name, count in fallen.items())
        yield f"What {line.system} fell back on, by kind or layer: {counts}."


def _refused(table: Table) -> list[str]:
    return [f"Left out: {system}, since {reason}." for system, reason in table.refused.items()]


def _scores(table: Table, title: str) -> Grid:
    best = {column: _best(table, column) for column in table.columns}
    failed = any(line.failed for line in table.lines)

    def row(line: Line) -> Iterator[Entry]:
        yield Entry(line.system)
        yield Entry(f"{line.n:,}")
        if failed:
            yield Entry(f"{line.failed:,}")
        for column in table.columns:
            yield _score(line.cells[column], best[column])

    headings = ("system", "n", *["failed"] * failed, *table.columns)
    return Grid(title, headings, tuple(tuple(row(line)) for line in table.lines))


def _score(cell: Cell, best: str | None) -> Entry:
    if cell.value is None:
        return Entry(NOTHING)
    text = _percent(cell.value)
    between = f"{_percent(cell.low)}–{_percent(cell.high)}" if cell.low is not None and cell.high is not None else ""
    mark = next((sign for limit, sign in _MARKS if cell.p_holm is not None and cell.p_holm < limit), "")
    return Entry(text, between, mark, text == best)


def _best(table: Table, column: str) -> str | None:
    """What the best of a column reads; where all read the same there is none."""
    values = [value for line in table.lines if (value := line.cells[column].value) is not None]
    texts = {_percent(value) for value in values}
    return _percent(max(values)) if len(texts) > 1 else None


def _percent(value: float) -> str:
    return f"{100 * value:.1f}"


def _costs(table: Table, title: str) -> Grid:
    told = {name: key for name, key in _TOLD_APART.items() if any(line.usage[key] for line in table.lines)}
    columns = {**_COSTS, **told}
    fallen = any(map(_fallbacks, table.lines))

    def row(line: Line) -> Iterator[Entry]:
        yield Entry(line.system)
        yield from map(Entry, _spent(line.per_question, columns))
        if fallen:
            yield Entry(f"{_fallbacks(line):,}")

    headings = ("system", *columns, *["fallbacks"] * fallen)
    return Grid(title, headings, tuple(tuple(row(line)) for line in table.lines))


def _fallbacks(line: Line) -> int:
    """What took the place of steps that failed, over all questions of a system and in its layers."""
    return sum(_fallen(line).values())


def _fallen(line: Line) -> dict[str, int]:
    """The same by role or layer."""
    return {**line.fallbacks, **(line.build or {}).get("fallbacks", {})}


def _risks(table: Table, title: str) -> Grid:
    levels = _levels(table)

    def row(line: Line) -> Iterator[Entry]:
        yield Entry(line.system)
        for one in line.risks:
            if one.level in levels:
                yield Entry(_percent(one.coverage))
                yield Entry(NOTHING if one.risk is None else _percent(one.risk))

    headings = (heading for level in levels for heading in (f"covered: {level}", f"risk: {level}"))
    return Grid(title, ("system", *headings), tuple(tuple(row(line)) for line in table.lines if line.risks))


def _levels(table: Table) -> list[str]:
    """The levels of confidence at which some system answers a question more than at the level before."""
    found = dict.fromkeys(
        one.level
        for line in table.lines
        for before, one in zip((0.0, *(risk.coverage for risk in line.risks)), line.risks, strict=False)
        if one.coverage > before
    )
    return [level for level in LEVELS if level in found]


def _unsure(table: Table) -> bool:
    """Whether the systems are surer of some answers than of others."""
    return len(_levels(table)) > 1


def _spent(mean: Mapping[str, float | None], columns: Mapping[str, str]) -> Iterator[str]:
    for heading, name in columns.items():
        value = mean[name]
        if value is None:
            yield "unknown"
        elif heading == "$":
            yield f"{value:.4f}"
        elif heading.startswith("tokens"):
            yield f"{value:,.0f}"
        else:
            yield f"{value:,.2f}" if heading.endswith(" s") else f"{value:,.1f}"
