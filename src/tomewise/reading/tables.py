"""One model for the tables of all formats: spans on a grid, names above columns, rows that say them.

A CSV file, a sheet and a long table within a text become rows that name their columns: `Town: Holm; Steel: 4`. A short
table within a text becomes a grid of bars.
"""

from __future__ import annotations

import csv
import io
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, time
from decimal import Decimal
from itertools import chain, dropwhile, islice, pairwise, zip_longest
from pathlib import Path
from typing import NamedTuple, TypeAlias

from tomewise.reading.decode import decode, join_words
from tomewise.reading.headers import find_header
from tomewise.reading.metadata import HEADING
from tomewise.reading.places import Marks, join_marked, make_document
from tomewise.reading.process import make_damage_error
from tomewise.types import Document, Place

Row: TypeAlias = tuple[int, Sequence[str]]  # its number from 1, and its cells

BARE_FORMULA = "formula without value"  # a kind of what is left out


class Span(NamedTuple):
    """A cell that covers others: its row as numbered, its column from 0, and how many of each it covers."""

    row: int
    column: int
    height: int
    width: int


_DELIMITERS = ",;\t|"
_SAMPLE = 20_000  # characters to guess the delimiter from
_AHEAD = 50  # rows, in which the delimiter and the header are looked for
_MOST_HEADERS = 200  # times that a header is looked for behind an empty row of one sheet
_WIDEST = 30  # columns of a cell; a wider one, which only a bomb has, counts as one
_LONG = 15  # rows of a table within a text; the names of a longer one would be far from its last rows
_SEPARATOR = re.compile(r'\A"?sep=(.)"?[ \t]*(?:\n|\Z)', re.IGNORECASE)
_COMMA = re.compile(r",\S")  # in a list of names each has a blank behind it
_TYPED = re.compile(r"[-+(]?[$€£]? ?\d[\d.,:/ -]*(?:%|€)?\)?|[^\W\d_][^;|\t]*|")  # a cell of one kind, or none


def read_table(path: Path) -> tuple[Document]:
    """The rows of a CSV or TSV file; `headers.find_header` says which of them name the columns.

    Rows are counted as spreadsheets count them, with the header. Raises `ReadingError` if it is not text.
    """
    text, metadata = decode(path.read_bytes(), str(path))
    csv.field_size_limit(sys.maxsize)
    delimiter = "\t" if path.suffix.lower() == ".tsv" and "\t" in text[:_SAMPLE] else _guess_delimiter(text)
    if stated := _SEPARATOR.match(text):
        delimiter, text = stated[1], text[stated.end() :]
    try:
        rows = list(enumerate(_parse(text, delimiter), start=1))
    except csv.Error as error:
        raise make_damage_error(path, error) from error
    lines, marks = join_rows(rows)
    return make_document(path, lines, metadata=metadata, marks=marks)


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


def write_grid(rows: Iterable[Row], spans: Iterable[Span] = (), heads: int | None = None) -> str:
    """The rows of a table in the midst of a text, a line each. `heads` of them are its header; None: to be found.

    A table of one column is a frame around its text, a paragraph a row.
    """
    laid = list(spread_spans(rows, spans))
    filled = list(_list_filled(laid))
    cells = [row for _, row in filled]
    width = max(map(len, cells), default=0)
    if width < 2:
        return "\n\n".join(cell.strip() for _, row in laid for cell in row if cell.strip())
    titles, found = find_header(filled[:_AHEAD])
    if heads is not None:
        titles, found = 0, heads
    names = _join_names(cells[titles : titles + found])
    body = cells[titles + found :]
    lines = [" ".join(filter(None, row)) for row in cells[:titles]]
    if found and len(body) > _LONG:
        return "\n".join([*lines, *(_write_row(row, _fill_names(names)) for row in body)])
    return "\n".join([*lines, *(_write_bars(row, width) for row in ([names] if found else []) + body)])


def lay_cells(rows: Iterable[Sequence[tuple[str, int, int]]]) -> tuple[list[Row], list[Span]]:
    """The rows of a table whose cells have a height and a width, with blanks for what those cover, and the spans."""
    laid: list[Row] = []
    spans: list[Span] = []
    covered: dict[int, int] = {}  # the last row in which a column is covered
    for number, cells in enumerate(rows, start=1):
        row: list[str] = []
        for text, height, width in cells:
            while covered.get(len(row), 0) >= number:
                row.append("")
            width = width if 1 < width <= _WIDEST else 1
            if height > 1 or width > 1:
                spans.append(Span(number, len(row), height, width))
                covered.update(dict.fromkeys(range(len(row), len(row) + width), number + height - 1))
            row += [text, *[""] * (width - 1)]
        laid.append((number, row))
    return laid, spans


def spread_spans(rows: Iterable[Row], spans: Iterable[Span]) -> Iterator[Row]:
    """The rows with the words of each spanning cell in all that it covers.

    The cell that stands alone in its row, from the first column on, is a title: it is not repeated.
    """
    begins: dict[int, list[Span]] = {}
    for span in spans:
        begins.setdefault(span.row, []).append(span)
    if not begins:
        yield from rows
        return
    open_spans: dict[int, tuple[Span, str]] = {}
    for number, given in rows:
        cells = list(given)
        is_title = bool(cells) and not any(map(str.strip, cells[1:]))
        for span in begins.get(number, ()):
            if span.column < len(cells) and not (is_title and span.column == 0 and span.height == 1):
                open_spans[span.column] = span, cells[span.column]
        for column, (span, words) in list(open_spans.items()):
            if number >= span.row + span.height:
                del open_spans[column]
                continue
            end = column + (span.width if span.width <= _WIDEST else 1)
            cells += [""] * (end - len(cells))
            cells[column:end] = [cell or words for cell in cells[column:end]]
        yield number, cells


def _list_filled(rows: Iterable[Row]) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not empty, each cell in one line, without empty cells at the end."""
    for number, cells in rows:
        row = list(map(join_words, cells))
        while row and not row[-1]:
            row.pop()
        if row:
            yield number, row


def _write_rows(rows: Iterable[Row]) -> Iterator[tuple[int, str]]:
    """The number and the text of each row that is not empty and names no columns. A header alone is a row.

    Behind an empty row there may be another header, or a note in one cell.
    """
    left = _list_filled(rows)
    names: list[str] = []
    before = -1
    looks = 0
    while row := next(left, None):
        number, cells = row
        if number > before + 1 and looks < _MOST_HEADERS:
            looks += 1
            ahead = [row, *islice(left, _AHEAD - 1)]
            left = chain(ahead, left)
            titles, heads = find_header(ahead)
            yield from ((number, _write_row(cells, ())) for number, cells in islice(left, titles))
            if heads:
                names, before = _fill_names(_join_names([cells for _, cells in islice(left, heads)])), -1
            if (row := next(left, None)) is None:
                return
            number, cells = row
        is_note = -1 < before < number - 1 and len(cells) == 1 < len(names)
        before = number
        yield number, _write_row(cells, () if is_note else names)


def _join_names(header: Sequence[Sequence[str]]) -> list[str]:
    """The names that the rows of a header give to the columns; a group names those without a name behind it too."""
    columns = [list(column) for column in zip_longest(*header, fillvalue="")]
    for left, column in pairwise(columns):
        if left[-1] and column[-1]:
            column[:-1] = [name or group for name, group in zip(column[:-1], left[:-1], strict=True)]
    return [" ".join(dict.fromkeys(filter(None, column)))[:HEADING] for column in columns]


def _fill_names(names: Sequence[str]) -> list[str]:
    """A name for each column: what has none is `column 2`, and what has the name of another `amount (2)`."""
    counts: Counter[str] = Counter()
    filled: list[str] = []
    for number, name in enumerate(names, start=1):
        name = name or f"column {number}"
        counts[name] += 1
        filled.append(name if counts[name] == 1 else f"{name} ({counts[name]})")
    return filled


def _write_row(cells: Sequence[str], names: Sequence[str]) -> str:
    if not names:
        return " | ".join(cells)
    every = [*names, *(f"column {number}" for number in range(len(names) + 1, len(cells) + 1))]
    return "; ".join(f"{name}: {cell}" for name, cell in zip(every, cells, strict=False) if cell)


def _write_bars(cells: Sequence[str], width: int) -> str:
    return f"| {' | '.join([*cells, *[''] * (width - len(cells))])} |"


def _parse(text: str, delimiter: str) -> Iterator[list[str]]:
    return csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=delimiter != "\t")


def _guess_delimiter(text: str) -> str:
    """The sign at which the first fifty rows agree best on how many cells they have, and of which kind.

    Where it cuts no more than half of the rows, the file is one column, and no comma within it cuts a row.
    """
    best, rating = "\x1f", (0.0, 0.0, 0)
    for delimiter in _DELIMITERS:
        rows = [row for row in islice(_parse(text[:_SAMPLE], delimiter), _AHEAD) if any(row)]
        if len(text) > _SAMPLE and 1 < len(rows) < _AHEAD:
            rows.pop()  # it may be cut
        rows = list(dropwhile(lambda row: len(row) == 1, rows))  # titles
        counts = Counter(map(len, rows))
        uncut = counts.pop(1, 0)
        if 2 * uncut >= len(rows) or (uncut and delimiter == "," and not _COMMA.search(text[:_SAMPLE])):
            continue
        width, shared = counts.most_common(1)[0]
        cells = [cell.strip()[:100] for row in rows for cell in row]
        typed = sum(_TYPED.fullmatch(cell) is not None for cell in cells) / len(cells)
        if (agreed := (round(shared / len(rows), 1), typed, width)) > rating:
            best, rating = delimiter, agreed
    return best
