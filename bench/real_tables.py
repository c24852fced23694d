"""Real tables, written by the usual libraries, read back cell by cell.

    python bench/real_tables.py FOLDER...             # the first hundred tables of the CSV files below the folders

Each file's first row names its columns. Its first 300 rows are read as they are, and again from what pandas writes of
them: CSV with semicolons, XLSX by openpyxl and by XlsxWriter (where that is installed), HTML. A cell counts as kept if
its row says it under the name of its column. Seconds are those of the processor. Needs pandas and
openpyxl.
"""

from __future__ import annotations

import argparse
import csv
import random
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas

from tomewise.reading.formats import find_format, load_reader

TABLES = 100
ROWS = 300


def list_tables(folders: list[Path]) -> Iterator[tuple[str, str]]:
    """The name and the first rows of each CSV file, in an order of chance that is always the same."""
    paths = sorted(path for folder in folders for path in folder.rglob("*.csv"))
    random.Random(1).shuffle(paths)
    for path in paths:
        try:
            lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
            rows = list(csv.reader(lines[: ROWS + 1], strict=True))
        except (UnicodeDecodeError, csv.Error):
            continue
        if len(rows) > 3 and len(rows[0]) > 1 and {len(row) for row in rows} == {len(rows[0])}:
            yield path.name, "".join(lines[: ROWS + 1])


def name_columns(names: list[str]) -> list[str]:
    """The names as the reader makes them unique."""
    filled = [" ".join(name.split()) or f"column {number}" for number, name in enumerate(names, start=1)]
    counts = [filled[: at + 1].count(name) for at, name in enumerate(filled)]
    return [name if count == 1 else f"{name} ({count})" for name, count in zip(filled, counts, strict=True)]


def count_cells(text: str, names: list[str], rows: list[list[str]]) -> tuple[int, int]:
    """How many cells that are not empty are kept, and how many there are."""
    lines = [line for line in text.split("\n") if line and not line.startswith("# ")]
    if lines and lines[0].startswith("| "):  # a grid
        cells = [zip(names, line[2:-2].split(" | "), strict=False) for line in lines[1:]]
        lines = ["; ".join(f"{name}: {cell}" for name, cell in row) for row in cells]
    kept = whole = 0
    for number, row in enumerate(rows):
        line = f"; {lines[number]}; " if number < len(lines) else ""
        for name, cell in zip(names, row, strict=True):
            if words := " ".join(cell.split()):
                whole += 1
                kept += f"; {name}: {words}; " in line
    return kept, whole


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    writers: dict[str, tuple[str, Callable[[Any, Path], object]]] = {
        "CSV as it is": ("a.csv", lambda frame, path: None),
        "CSV, semicolons": ("b.csv", lambda frame, path: frame.to_csv(path, index=False, sep=";")),
        "XLSX, openpyxl": ("c.xlsx", lambda frame, path: frame.to_excel(path, index=False, engine="openpyxl")),
        "XLSX, XlsxWriter": ("d.xlsx", lambda frame, path: frame.to_excel(path, index=False, engine="xlsxwriter")),
        "HTML, pandas": ("e.html", lambda frame, path: frame.to_html(path, index=False)),
    }
    if not find_spec("xlsxwriter"):
        del writers["XLSX, XlsxWriter"]
    results = {kind: [0, 0, 0, 0.0] for kind in writers}  # cells kept, cells, tables kept whole, seconds
    tables = 0
    with TemporaryDirectory() as folder:
        for name, text in list_tables(parser.parse_args().folders):
            header, *rows = csv.reader(text.splitlines(keepends=True))
            frame = pandas.DataFrame(rows, columns=header)
            tables += 1
            for kind, (file, write) in writers.items():
                path = Path(folder) / file
                path.write_text(text) if file == "a.csv" else write(frame, path)
                started = time.process_time()
                (document,) = load_reader(find_format(path.suffix))(path)
                result = results[kind]
                result[3] += time.process_time() - started
                kept, whole = count_cells(document.text, name_columns(header), rows)
                if kept < whole:
                    print(f"{kind}: {name}: {kept:,} of {whole:,}; {document.text[:150]!r}")
                result[0], result[1], result[2] = result[0] + kept, result[1] + whole, result[2] + (kept == whole)
            if tables == TABLES:
                break
    print(f"\n{tables} tables\n\n| file | cells kept | of | tables whole | seconds |\n| --- | --- | --- | --- | --- |")
    for kind, (kept, whole, tables_kept, seconds) in results.items():
        print(f"| {kind} | {kept:,} | {whole:,} | {tables_kept} | {seconds:.1f} |")


if __name__ == "__main__":
    main()
