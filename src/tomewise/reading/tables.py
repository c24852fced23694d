"""Read CSV and TSV by rows: each row is a paragraph that names its columns."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, time
from decimal import Decimal
from itertools import chain, islice
from pathlib import Path
from typing import TypeAlias

from tomewise.reading.decode import decode_text, join_words
from tomewise.reading.metadata import HEADING
from tomewise.reading.places import Marks, join_marked, make_document
from tomewise.reading.process import make_damage_error
from tomewise.types import Document, Place

Row: TypeAlias = tuple[int, Sequence[str]]  # its number from 1, and its cells

_DELIMITERS = ",;\t|"
_SAMPLE = 20_000  # characters to guess the delimiter from


def read_table(path: Path) -> tuple[Document]:
    """The rows of a CSV or TSV file; the first is the header if no cell of it is empty, a number or repeated.

    Rows are counted as spreadsheets count them, with the header. Raises `ReadingError` if it is not text.
    """
    text = decode_text(path.read_bytes(), str(path))
    csv.field_size_limit(sys.maxsize)
    delimiter = "\t" if path.suffix.lower() == ".tsv" else _guess_delimiter(text[:_SAMPLE])
    try:
        rows = list(enumerate(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), start=1))
    except csv.Error as error:
        raise make_damage_error(path, error) from error
    lines, marks = join_rows(rows)
    return make_document(path, lines, marks=marks)


def join_rows(rows: Iterable[Row], chapter: tuple[str, ...] = (), start: int = 0) -> tuple[str, Marks]:
    """The rows as paragraphs, and the mark of each. `start` is where this text begins in its document."""
    written = ((line, Place(row=number, chapter=chapter)) for number, line in _write_rows(rows))
    return join_marked(written, start=start)


def join_sheets(sheets: Iterable[tuple[str, Iterable[Row]]]) -> tuple[str, Marks]:
    """The sheets of a workbook, each with its name as its heading and its chapter; empty ones are left out."""
    parts: list[str] = []
    marks: list[tuple[int, Place]] = []
    start = 0
    for title, lines in sheets:
        name = join_words(title)
        heading = f"# {name}\n\n"
        text, rows = join_rows(lines, (name,), start + len(heading))
        if text:
            parts.append(heading + text)
            marks += [(start, Place(chapter=(name,), row=rows[0][1].row)), *rows[1:]]
            start += len(heading) + len(text) + 2
    return "\n\n".join(parts), tuple(marks)


def write_value(value: object) -> str:
    """The value of a cell as people write it: a whole number without a point, a day without a time."""
    if isinstance(value, float | Decimal) and value % 1 == 0:
        return str(int(value))
    if isinstance(value, datetime) and value.time() == time():
        return value.date().isoformat()
    return str(value)


def write_grid(rows: Iterable[Sequence[str]]) -> str:
    """The rows of a table in the midst of a text, a line each."""
    return "\n".join(f"| {' | '.join(map(join_words, cells))} |" for cells in rows)


def _write_rows(rows: Iterable[Row]) -> Iterator[tuple[int, str]]:
    """The number and the text of each row that is not empty."""
    filled = ((number, list(map(join_words, cells))) for number, cells in rows if any(map(str.strip, cells)))
    rows = list(islice(filled, 2))
    header = None
    if len(rows) == 2 and _is_header(rows[0][1]):  # a header alone is all that the file says
        header = [name[:HEADING] for name in rows.pop(0)[1]]  # it is written into each row
    for number, cells in chain(rows, filled):
        yield number, _write_row(cells, header)


def _write_row(cells: Sequence[str], header: Sequence[str] | None) -> str:
    if header is None:
        return " | ".join(cell for cell in cells if cell)
    names = [*header, *(f"column {number}" for number in range(len(header) + 1, len(cells) + 1))]
    return "; ".join(f"{name}: {cell}" for name, cell in zip(names, cells, strict=False) if cell)


def _is_header(cells: Sequence[str]) -> bool:
    names = [cell for cell in cells if cell]
    is_filled = bool(names) and all(cells[: len(names)])  # a trailing delimiter makes a cell without a name
    return is_filled and len(set(names)) == len(names) and not any(map(_is_number, names))


def _is_number(cell: str) -> bool:
    try:
        float(cell.replace(",", "."))
    except ValueError:
        return False
    return True


def _guess_delimiter(sample: str) -> str:
    first = next((line for line in sample.splitlines() if line.strip()), "")
    outside = "".join(first.split('"')[::2])  # without the cells in quotation marks
    return max(_DELIMITERS, key=outside.count)
