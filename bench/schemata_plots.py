"""Draw the two figures of `docs/systems/cam.md` from the tables of RESULTS.md: `python bench/schemata_plots.py`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HERE = Path(__file__).resolve().parent
FIGURES = HERE.parent / "docs" / "systems"
BATCHES = "| batch | calls | s | calls of a rebuild |"  # how the tables begin
OVERLAP = "| graph | clusters | offline and truth |"


def read_table(start: str) -> list[list[str]]:
    """The cells of the table of RESULTS.md that begins so, the heading first."""
    lines = iter((HERE / "RESULTS.md").read_text(encoding="utf-8").splitlines())
    rows = [next(line for line in lines if line.startswith(start))]
    next(lines)  # the rule below the heading
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append(line)
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def read_number(cell: str) -> float:
    return float(re.sub(r"[^0-9.].*$", "", cell.replace(",", "")) or "nan")


def draw_batches(axes: Axes) -> None:
    rows = read_table(BATCHES)[1:]
    sizes = [read_number(row[0]) for row in rows]
    for column, label, marker in ((1, "the batch", "o"), (3, "a rebuild", "s"), (6, "one by one", "^")):
        axes.plot(sizes, [read_number(row[column]) for row in rows], marker=marker, label=label)
    axes.set(xscale="log", yscale="log", xlabel="passages of a batch into 5,119", ylabel="calls of the model")


def draw_overlap(axes: Axes) -> None:
    heading, *rows = read_table(OVERLAP)
    columns = [place for place, cell in enumerate(heading) if cell.startswith("batches of")]
    sizes = [float(heading[place].rsplit(" ", 1)[1]) for place in columns]
    for row, marker in zip(rows, "os^Dv", strict=False):
        axes.plot(sizes, [float(row[place].split(",")[0]) for place in columns], marker=marker, label=row[0])
    axes.set(xscale="log", ylim=(0, 1.02), xlabel="vertices of a batch", ylabel="omega index, online beside offline")


def main() -> None:
    with matplotlib.rc_context({"svg.hashsalt": "tomewise", "font.size": 10}):
        for name, draw in (("cam-batches", draw_batches), ("cam-overlap", draw_overlap)):
            figure = Figure(figsize=(6.4, 4.2), layout="constrained")
            axes = figure.add_subplot()
            draw(axes)
            axes.spines[["top", "right"]].set_visible(False)
            axes.grid(axis="y", alpha=0.3)
            figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=8)
            figure.savefig(FIGURES / f"{name}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
