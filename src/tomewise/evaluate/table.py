"""The table of an experiment: for each system a line of scores and costs, and grids of text for every format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TypeAlias

from tomewise.errors import UnknownName, UsageError
from tomewise.evaluate.design import About
from tomewise.evaluate.rows import JsonObject, RankedBy
from tomewise.language.choose_model import EXTRACTIVE
from tomewise.memory.schemata.network import describe_network
from tomewise.notebook_display import write_table
from tomewise.systems.efforts import OUR_NAMES
from tomewise.systems.registry import parse_variant
from tomewise.types.plain import describe_object

RESAMPLES = 10_000
_CLAIMS = ("full", "partly", "none")
LEVELS = (*_CLAIMS, *(f"forced, {claim}" for claim in _CLAIMS))  # of confidence, the surest first
_NOTHING = "–"
# The columns of costs: what they show of a question, and how.
_COSTS = {
    "calls": ("calls", "{:,.1f}"),
    "tokens in": ("input_tokens", "{:,.0f}"),
    "tokens out": ("output_tokens", "{:,.0f}"),
    "$": ("dollars", "{:.4f}"),
    "model s": ("model_seconds", "{:,.2f}"),
    "own s": ("own_seconds", "{:,.2f}"),
    "path": ("depth", "{:,.1f}"),
    "tokens cached": ("cached_tokens", "{:,.0f}"),
    "tokens reasoning": ("reasoning_tokens", "{:,.0f}"),
}
_RARE = ("cached_tokens", "reasoning_tokens")  # are shown where not all are 0
_MACHINERY = "machinery, not accuracy"
_SHOWN = "§"
_MARKS = ((0.01, "‡"), (0.05, "†"))


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
class Risk:
    """The answers at one level of confidence or a higher one.

    `coverage` is their share of all questions. `risk` is 1 minus their mean score, or None without such an answer.
    """

    level: str
    coverage: float
    risk: float | None


@dataclass(frozen=True, slots=True)
class Line:
    """One system: `n` questions; for `failed` of them the system or a judge failed.

    `cost` sums over its questions (calls, of which `reused`, input_tokens, output_tokens, cached_tokens,
    reasoning_tokens, dollars, model_seconds, own_seconds), and `per_question` is the mean of each and of `depth`, the
    longest chain of calls. An unknown price makes the dollars None. `fallbacks` counts by kind the steps that failed
    and fell back on something else. `risks` are of the table's `risk_of`. `build` is the cost of its layers alone.
    `ranked_by` is that of its rows.
    """

    system: str
    n: int
    failed: int
    cells: Mapping[str, Cell]
    cost: JsonObject
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


@dataclass(frozen=True, slots=True)
class Entry:
    """One cell: its text, its interval, its mark of significance, and whether it is the best of its column."""

    text: str
    interval: str = ""
    mark: str = ""
    best: bool = False


Column: TypeAlias = tuple[str, Sequence[Entry]]  # with its heading


@dataclass(frozen=True, slots=True)
class Grid:
    """Columns under a title, each with its heading. The first column names systems, the others hold numbers."""

    title: str
    columns: tuple[Column, ...]

    @property
    def headings(self) -> list[str]:
        """The headings of the columns."""
        return [heading for heading, _ in self.columns]

    @property
    def rows(self) -> list[tuple[Entry, ...]]:
        """The cells, a row for each system."""
        return list(zip(*(entries for _, entries in self.columns), strict=True))


def write_html(table: Table) -> str:
    """The tables as HTML, for notebooks, and the notes below them."""
    tables = [
        write_table(grid.headings, [[_write_html_entry(entry) for entry in row] for row in grid.rows], grid.title)
        for grid in make_grids(table)
    ]
    return "".join(tables) + "".join(f"<p><small>{escape(note)}</small></p>" for note in write_notes(table))


def _write_html_entry(entry: Entry) -> str:
    return entry.text + entry.mark + (f" [{entry.interval}]" if entry.interval else "")


def make_grids(table: Table) -> list[Grid]:
    """The grids of a table: scores, costs, risks where systems are unsure, then scores by slice."""
    about = table.about
    title = f"{about.dataset} · {about.model}" + _describe_kind(about)
    grids = [_make_scores(table, title), _make_costs(table, f"{title} · cost per question")]
    if _has_several_levels(table):
        grids.append(_make_risks(table, f"{title} · risk and coverage by {table.risk_of}"))
    for name, values in table.slices.items():
        grids += [_make_scores(part, f"{title} · {name}: {value}") for value, part in values.items()]
    return grids


def _describe_kind(about: About) -> str:
    if about.retrieval_only:
        return " · retrieval alone"
    kind = "short answers" if about.short_answers else "quotations"
    return f" · {kind}, {_MACHINERY}" if about.model == EXTRACTIVE else ""


def write_notes(table: Table) -> list[str]:
    """What a reader must know beside the numbers."""
    about = table.about
    texts = [
        f"Model {about.model}, embedder {about.embedder}. Scores are percentages; brackets hold 95 % intervals, from "
        f"{RESAMPLES:,} bootstrap resamples of the questions."
    ]
    if table.baseline:
        texts.append(
            f"† p < 0.05, ‡ p < 0.01 against {table.baseline}: paired bootstrap, two-sided, corrected after Holm "
            "for the systems of each column."
        )
    if table.ranked and (systems := [line.system for line in table.lines if line.ranked_by == "shown"]):
        texts.append(
            f"{_SHOWN} {', '.join(systems)}: without one retriever of its own, so {', '.join(table.ranked)} rank the "
            "passages of what the answering call was shown, by their cosine with the question."
        )
    if rules := describe_rules(table):
        texts.append(rules)
    if table.judged:
        texts.append(f"Judged by {about.judge_model}: {', '.join(table.judged)}.")
    if any(line.failed for line in table.lines):
        texts.append("Failed questions are scored wrong.")
    if not (about.force or about.retrieval_only):
        texts.append("Systems may decline a question; that is scored wrong.")
    if len({line.n for line in table.lines}) > 1:
        texts.append("Not every system was asked every question: n says how many.")
    if any(line.cost["calls"] for line in table.lines):
        texts.append("Seconds are wall time of questions asked side by side; path is the longest chain of model calls.")
    if any(line.cost["reused"] for line in table.lines):
        texts.append("Replies kept from earlier count as calls, with their tokens and money, but took no time here.")
    if _has_several_levels(table):
        texts.append(
            "Covered: the share of all questions with an answer at least that sure. Risk: 1 minus the mean score of "
            "these answers. Free answers are surer than forced ones; then full support is surer than partial or none."
        )
    line_notes = (note for line in table.lines for note in _note_line(line))
    refusals = (f"Left out: {system}, since {reason}." for system, reason in table.refused.items())
    return [*texts, *_note_machinery(table), *line_notes, *refusals]


def describe_rules(table: Table) -> str:
    """A warning where systems that show evidence by different rules answer in one table; empty where none do.

    Ours fuse what they find with the search of `hybrid`. Systems of papers, baselines and every RECALL+LOOP show what
    they find.
    """
    systems = [line.system for line in table.lines]
    fusing = [system for system in systems if _fuses(system)]
    others = [system for system in systems if system not in fusing]
    if table.about.retrieval_only or not fusing or not others:
        return ""
    return (
        f"Different rules in one table. Fused with the search of hybrid: {', '.join(fusing)}. What each found alone: "
        f"{', '.join(others)}. A part of their difference is due to that."
    )


def _fuses(system: str) -> bool:
    try:
        return parse_variant(system).system in (*OUR_NAMES, "explore")
    except (UnknownName, UsageError):  # a recipe that was passed as a function
        return False


def _note_machinery(table: Table) -> list[str]:
    """Say which rows do not measure a system, because the extractive model made them."""
    if table.about.model != EXTRACTIVE:
        return []
    if not table.about.retrieval_only:
        answers = "cuts short answers out of sentences" if table.about.short_answers else "quotes sentences"
        return [f"The extractive model {answers} by rule: its rows show {_MACHINERY}."]
    systems = [line.system for line in table.lines if line.build and line.build["calls"]]
    return [f"Layers by the extractive model, {_MACHINERY}: {', '.join(systems)}."] if systems else []


def _note_line(line: Line) -> Iterator[str]:
    """What a reader must know about one system: its build and its fallbacks."""
    build = line.build or {}
    if build.get("calls"):
        calls = f"{build['calls']:,} call{'' if build['calls'] == 1 else 's'}"
        cost = f"{calls}, {build['input_tokens']:,} tokens in, {build['output_tokens']:,} out"
        yield f"Built for {line.system}, as if alone: {cost}."
    for note in build.get("notes", ()):
        yield f"{line.system}: {note}."
    for layer, networks in build.get("networks", {}).items():
        yield f"{line.system}, {layer}: {describe_network(networks)}."
    if fallbacks := _read_fallbacks(line):
        counts = ", ".join(f"{name} {count:,}" for name, count in fallbacks.items())
        yield f"What {line.system} fell back on, by kind or layer: {counts}."


def _make_grid(title: str, lines: Sequence[Line], columns: Iterable[Column]) -> Grid:
    return Grid(title, (("system", [Entry(line.system) for line in lines]), *columns))


def _make_scores(table: Table, title: str) -> Grid:
    columns = [("n", [Entry(f"{line.n:,}") for line in table.lines])]
    if any(line.failed for line in table.lines):
        columns.append(("failed", [Entry(f"{line.failed:,}") for line in table.lines]))
    columns += [(column, _make_score_entries(table, column)) for column in table.columns]
    return _make_grid(title, table.lines, columns)


def _make_score_entries(table: Table, column: str) -> list[Entry]:
    """The scores of a column. A ranking of what an answer saw competes with no ranking of a retriever."""
    shown = {line.system for line in table.lines if column in table.ranked and line.ranked_by == "shown"}
    competing = [line.cells[column].value for line in table.lines if line.system not in shown]
    values = [value for value in competing if value is not None]
    differ = len(set(map(_format_percent, values))) > 1
    best = _format_percent(max(values)) if differ else None
    return [_format_score(line.cells[column], best, shown=line.system in shown) for line in table.lines]


def _format_score(cell: Cell, best: str | None, *, shown: bool) -> Entry:
    text, interval = _format_percent(cell.value), ""
    if cell.value is None:
        return Entry(text)
    if cell.low is not None:
        interval = f"{_format_percent(cell.low)}–{_format_percent(cell.high)}"
    mark = next((sign for limit, sign in _MARKS if cell.p_holm is not None and cell.p_holm < limit), "")
    return Entry(text, interval, mark + _SHOWN, False) if shown else Entry(text, interval, mark, text == best)


def _format_percent(value: float | None) -> str:
    return _NOTHING if value is None else f"{100 * value:.1f}"


def _make_costs(table: Table, title: str) -> Grid:
    columns = [
        (heading, [Entry(_format_cost(line.per_question[name], form)) for line in table.lines])
        for heading, (name, form) in _COSTS.items()
        if name not in _RARE or any(line.cost[name] for line in table.lines)
    ]
    counts = [sum(_read_fallbacks(line).values()) for line in table.lines]
    if any(map(_read_fallbacks, table.lines)):
        columns.append(("fallbacks", [Entry(f"{count:,}") for count in counts]))
    return _make_grid(title, table.lines, columns)


def _read_fallbacks(line: Line) -> dict[str, int]:
    """How many steps of a system fell back on something else: by kind over its questions, by layer in its build."""
    return {**line.fallbacks, **(line.build or {}).get("fallbacks", {})}


def _make_risks(table: Table, title: str) -> Grid:
    levels = _list_levels(table)
    lines = [line for line in table.lines if line.risks]
    columns = []
    for place, level in enumerate(LEVELS):
        if level in levels:
            risks = [line.risks[place] for line in lines]
            columns.append((f"covered: {level}", [Entry(_format_percent(risk.coverage)) for risk in risks]))
            columns.append((f"risk: {level}", [Entry(_format_percent(risk.risk)) for risk in risks]))
    return _make_grid(title, lines, columns)


def _list_levels(table: Table) -> list[str]:
    """The levels of confidence that at least one answer of a system has."""
    used = {
        risk.level
        for line in table.lines
        for before, risk in zip((0.0, *(risk.coverage for risk in line.risks)), line.risks, strict=False)
        if risk.coverage > before
    }
    return [level for level in LEVELS if level in used]


def _has_several_levels(table: Table) -> bool:
    """Whether the answers have several levels of confidence."""
    return len(_list_levels(table)) > 1


def _format_cost(value: float | None, form: str) -> str:
    return "unknown" if value is None else form.format(value)
