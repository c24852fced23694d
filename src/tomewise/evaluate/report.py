"""Tables of results: JSON, CSV, Markdown, LaTeX, and tables for a terminal; and rows, also as one Parquet file."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from csv import DictWriter
from dataclasses import asdict
from io import StringIO
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment
from rich.markup import escape

from tomewise.errors import MissingDependency
from tomewise.evaluate.results import Results, score_row
from tomewise.evaluate.rows import Row, make_question_record
from tomewise.evaluate.table import Column, Entry, Grid, Line, Table, make_grids, write_notes

if TYPE_CHECKING:
    from rich.console import RenderableType

_LEADING = ("system", "n", "failed")
_PLAIN = "ranked_by resolved forced claimed support missing cycles error asked characters".split()
_NESTED = "quotes evidence events texts versions fallbacks".split()
_LATEX_SIGNS = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--", "·": r"$\cdot$", "†": r"$^{\dagger}$",
    "‡": r"$^{\ddagger}$", "§": r"\S{}", "<": r"$<$", ">": r"$>$", "|": r"$|$",
}  # fmt: skip


def make_json(table: Table) -> dict[str, Any]:
    """The table as one object.

    `experiment`, `dataset`, `model`, `embedder`, `judge` (null without judges), `retrieval_only`, `baseline`, `metrics`
    (names of the columns), `risk_of` (the metric of the risks), `refused` (by system, why it was left out), `notes`
    (what a reader must know) and `rows`.

    A row has `system`, `n`, `failed`, `ranked_by` (`retriever`, or `shown` where rankings are of what answers saw),
    every metric by its name (0 to 1, or null), `ci`, `p` and `p_holm` (by metric, where there is one), `cost` (sums:
    calls, of which `reused`, input_tokens, of which cached_tokens, output_tokens, of which reasoning_tokens, dollars,
    model_seconds, own_seconds), `per_question` (means, and `depth`), `fallbacks` (by kind), `risks` (by confidence:
    `level`, `coverage`, `risk`) and `build` (what its layers would cost if the system were alone, with `fallbacks` by
    layer and `notes`, or null).

    With slices, `slices` holds the rows of each slice by its name and value.
    """
    about = table.about
    record: dict[str, Any] = {
        "experiment": about.name,
        "dataset": about.dataset,
        "model": about.model,
        "embedder": about.embedder,
        "judge": about.judge_model if table.judged else None,
        "retrieval_only": about.retrieval_only,
        "baseline": table.baseline,
        "metrics": list(table.columns),
        "risk_of": table.risk_of,
        "rows": [_make_row(line) for line in table.lines],
        "refused": dict(table.refused),
        "notes": write_notes(table),
    }
    if table.slices:
        record["slices"] = {
            name: {value: [_make_row(line) for line in part.lines] for value, part in values.items()}
            for name, values in table.slices.items()
        }
    return record


def _make_row(line: Line) -> dict[str, Any]:
    cells = line.cells.items()
    return {
        "system": line.system,
        "n": line.n,
        "failed": line.failed,
        "ranked_by": line.ranked_by,
        **{name: cell.value for name, cell in cells},
        "ci": {name: [cell.low, cell.high] for name, cell in cells if cell.low is not None},
        "p": {name: cell.p for name, cell in cells if cell.p is not None},
        "p_holm": {name: cell.p_holm for name, cell in cells if cell.p_holm is not None},
        "cost": dict(line.cost),
        "per_question": dict(line.per_question),
        "fallbacks": dict(line.fallbacks),
        "risks": [asdict(risk) for risk in line.risks],
        "build": dict(line.build) if line.build else None,
    }


def write_csv(table: Table) -> str:
    """CSV for spreadsheets, a line for each system: scores from 0 to 1, intervals, p, means of costs.

    The lines of each slice follow. The first two columns name the slice and its value; they are empty for the whole.
    """
    parts = [("", "", table)]
    parts += [(name, value, part) for name, values in table.slices.items() for value, part in values.items()]
    rows = [
        {"slice": name, "value": value, **_flatten(_make_row(line))}
        for name, value, part in parts
        for line in part.lines
    ]
    headings = dict.fromkeys(heading for row in rows for heading in row)
    text = StringIO()
    writer = DictWriter(text, headings, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _flatten(row: dict[str, Any]) -> dict[str, Any]:
    """The row without nesting: each number inside a mapping or list has a name such as `p_holm.em`."""
    flat = {name: value for name, value in row.items() if not isinstance(value, dict | list)}
    for metric, (low, high) in row["ci"].items():
        flat |= {f"low.{metric}": low, f"high.{metric}": high}
    for risk in row["risks"]:
        flat |= {f"{name}.{risk['level']}": risk[name] for name in ("coverage", "risk")}
    for name in ("p", "p_holm", "per_question", "fallbacks", "build"):
        parts = (row[name] or {}).items()
        flat |= {f"{name}.{part}": value for part, value in parts if not isinstance(value, dict | list)}
    return flat


# ---------------------------------------------------------------- rows


def list_records(results: Results) -> list[dict[str, Any]]:
    """One record a row: the question, the answer, the scores (`score:NAME`) and the costs.

    Nested values (evidence, events, cost by role) are JSON text.
    """
    about = results.about
    names = (*about.metrics, *about.judges)
    return [_make_record(row, names, score_row(row, about)) for row in results.rows]


def _make_record(row: Row, columns: Sequence[str], scores: Mapping[str, float | None]) -> dict[str, Any]:
    item, prediction, cost = row.item, row.prediction, dict(row.cost)
    roles = cost.pop("roles", {})
    return {
        "key": row.key,
        "system": row.system,
        **make_question_record(item),
        "supporting": list(item.supporting),
        "answer": prediction.answer,
        "choice": prediction.choice,
        "ranked": [passage.document for passage in prediction.ranked],
        "shown": [passage.document for passage in prediction.shown],
        **{name: getattr(row, name) for name in _PLAIN},
        **{f"score:{name}": scores.get(name) for name in columns},
        **cost,
        "roles": json.dumps(roles),
        "slices": json.dumps(dict(item.slices)),
        **{name: json.dumps(getattr(row, name)) for name in _NESTED},
    }


def write_parquet(results: Results, path: Path) -> None:
    """Write a line for each row, see `list_records`. Raises MissingDependency without pyarrow."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise MissingDependency("writing Parquet needs pyarrow: pip install 'tomewise[eval]'") from error
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pyarrow.Table.from_pylist(list_records(results)), path)


# ---------------------------------------------------------------- on a terminal


def make_rich_tables(table: Table, width: int) -> list[RenderableType]:
    """What to print on a terminal of `width` columns; a table that is too wide is split into several."""
    from rich.text import Text

    parts = [part for grid in make_grids(table) for part in _split_to_width(grid, width)]
    return [*map(_make_rich_table, parts), Text("\n".join(write_notes(table)), style="dim")]


def _split_to_width(grid: Grid, width: int) -> list[Grid]:
    """Split the grid: each part repeats the leading columns, which name the system, and holds as many more as fit."""
    leading = tuple(takewhile(lambda column: column[0] in _LEADING, grid.columns))
    width_of_part = width - sum(min(_measure_width(column), width // 3) + 2 for column in leading)
    parts: list[list[Column]] = [[]]
    free = width_of_part
    for column in grid.columns[len(leading) :]:
        column_width = _measure_width(column) + 2
        if parts[-1] and column_width > free:
            parts.append([])
            free = width_of_part
        parts[-1].append(column)
        free -= column_width
    return [Grid("" if number else grid.title, (*leading, *part)) for number, part in enumerate(parts)]


def _measure_width(column: Column) -> int:
    heading, cells = column
    return max(len(heading), *(max(len(cell.text + cell.mark), len(cell.interval)) for cell in cells))


def _make_rich_table(grid: Grid) -> RenderableType:
    from rich.table import Table as RichTable

    rich_table = RichTable(
        title=escape(grid.title) or None, title_justify="left", box=None, pad_edge=False, title_style="bold"
    )
    for number, heading in enumerate(grid.headings):
        rich_table.add_column(escape(heading), justify="right" if number else "left", overflow="fold")
    for row in grid.rows:
        rich_table.add_row(*map(_mark_up, row))
    return rich_table


def _mark_up(entry: Entry) -> str:
    text = escape(entry.text)
    return (
        (f"[bold]{text}[/bold]" if entry.best else text)
        + entry.mark
        + (f"\n[dim]{entry.interval}[/dim]" if entry.interval else "")
    )


# ---------------------------------------------------------------- Markdown and LaTeX

_MARKDOWN = """\
<% for grid in grids %>
**<<grid.title>>**

|<% for heading in grid.headings %> <<heading>> |<% endfor %>

| ---<% for _ in grid.headings[1:] %> | ---:<% endfor %> |
<% for row in grid.rows %>
|<% for cell in row %> <% if cell.best %>**<<cell.text>>**<% else %><<cell.text>><% endif %><<cell.mark>>
<%- if cell.interval %> (<<cell.interval>>)<% endif %> |<% endfor %>

<% endfor %>

<% endfor %>
<% for note in notes %>
- <<note>>
<% endfor %>
"""
_LATEX = r"""% needs \usepackage{booktabs}
<% for grid in grids %>
\begin{table}[t]
\centering
\caption{<<grid.title>>.<% if loop.first %> <<" ".join(notes)>><% endif %>}
\label{tab:<<label>>-<<loop.index>>}
\begin{tabular}{l<<"r" * (grid.headings|length - 1)>>}
\toprule
<% for heading in grid.headings %><<heading>><% if not loop.last %> & <% endif %><% endfor %> \\
\midrule
<% for row in grid.rows %>
<% for cell in row %><% if cell.best %>\textbf{<<cell.text>>}<% else %><<cell.text>><% endif %><<cell.mark>>
<%- if cell.interval %> {\scriptsize (<<cell.interval>>)}<% endif %><% if not loop.last %> & <% endif %><% endfor %> \\
<% endfor %>
\bottomrule
\end{tabular}
\end{table}
<% if not loop.last %>

<% endif %>
<% endfor %>
"""


def write_markdown(table: Table) -> str:
    """The tables in GitHub's Markdown, and the notes as a list."""
    return _fill_in(_MARKDOWN, table, lambda text: re.sub(r"([\\`*_{}\[\]<>|])", r"\\\1", text))


def write_latex(table: Table) -> str:
    r"""`table` environments for the package booktabs; the notes end the caption of the first."""
    return _fill_in(_LATEX, table, lambda text: "".join(_LATEX_SIGNS.get(sign, sign) for sign in text))


def _fill_in(template: str, table: Table, escape: Callable[[str], str]) -> str:
    """A template with the tables and the notes in it, every text of them escaped."""
    environment = Environment(
        block_start_string="<%",
        block_end_string="%>",
        variable_start_string="<<",
        variable_end_string=">>",
        trim_blocks=True,
        keep_trailing_newline=True,
        finalize=lambda value: escape(str(value)),
    )
    label = re.sub("[^A-Za-z0-9-]", "-", table.about.name)
    return environment.from_string(template).render(grids=make_grids(table), notes=write_notes(table), label=label)
