"""A table of what documents say: rows of cells that are statements with quotes, and figures computed over its columns.

What a row is, and its columns, are chosen by the user or a model. Code reads the values of the cells, joins rows whose
keys have the same values, and counts, adds and compares them.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias, get_args

from tomewise.errors import MissingDependency, UsageError, count_noun, suggest
from tomewise.text.alignment import fold
from tomewise.text.stop_words import STOP
from tomewise.text.values import Key, find_values
from tomewise.types import Cost, Coverage, Noun, Quote, Scope, Statement
from tomewise.types.place import describe_source
from tomewise.types.proof import STRENGTHS, escape_markdown

Kind: TypeAlias = Literal["text", "number", "date"]
Figure: TypeAlias = Literal["count", "sum", "mean", "least", "greatest", "first", "last"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column(Noun):
    """A column of a table."""

    name: str
    kind: Kind = "text"
    """What its cells are read as: a number may have a unit."""
    about: str = ""
    """What a cell says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row(Noun):
    """One thing that documents name. A cell of which they say nothing has no text."""

    cells: tuple[Statement, ...]
    """One for each column, in their order."""
    places: int = 1
    """How many places gave it, where rows with the same key are joined."""

    @property
    def quotes(self) -> tuple[Quote, ...]:
        """What shows it, each once."""
        return tuple(dict.fromkeys(chain.from_iterable(cell.quotes for cell in self.cells)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Computed(Noun):
    """A figure over a column."""

    figure: Figure
    column: str
    """Empty for a count of the rows."""
    value: float | str | None
    """A number, or the text of the first or last cell; None if no row has a value."""
    unit: str = ""
    rows: tuple[int, ...] = ()
    """The numbers of the rows that it rests on, from 0."""
    left_out: tuple[int, ...] = ()
    """Those of rows whose cell has no value of this kind."""

    def __str__(self) -> str:
        value = f"{self.value:,.10g}" if isinstance(self.value, float | int) else self.value or "none"
        of = f" of {self.column}" if self.column else ""
        out = f"; {count_noun(len(self.left_out), 'row')} without a value left out" if self.left_out else ""
        unit = f" {self.unit}" if self.unit else ""
        return f"{self.figure}{of}: {value}{unit} ({count_noun(len(self.rows), 'row')}{out})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table(Noun):
    """What was collected: one row for each thing, with what it rests on and how much was read for it."""

    computed: ClassVar[tuple[str, ...]] = ("all_read",)
    asked: str
    """What was asked for."""
    item: str
    """What a row is."""
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    """The columns by which two rows are the same thing."""
    rows: tuple[Row, ...]
    doubtful: tuple[tuple[int, int], ...] = ()
    """Pairs of rows that may be one thing, by their numbers from 0."""
    figures: tuple[Computed, ...] = ()
    coverage: Coverage = field(default_factory=Coverage)
    """How many passages are in scope, how many were read, and what was not."""
    dropped_quotes: int = 0
    """How many rows a model gave whose words stand in no passage."""
    within: Scope | None = None
    model: str = ""
    cost: Cost = field(default_factory=Cost)

    @property
    def all_read(self) -> bool:
        """Whether every passage in scope was read for it, and nothing was dropped."""
        return self.coverage.all_read

    def __str__(self) -> str:
        return f"{count_noun(len(self.rows), 'row')} from {self.coverage}"

    def compute(self, figure: Figure, column: str = "") -> Computed:
        """A figure over a column: count, sum, mean, least, greatest, first or last, with the rows it rests on.

        A count without a column is of the rows. "first" and "last" are by date in a column of dates, else in the order
        of the rows. Raises UnknownName for a column, and UsageError for a figure, or for different units.
        """
        if figure not in get_args(Figure):
            raise UsageError(f"{figure!r} is not a figure: take one of {', '.join(get_args(Figure))}")
        numbers = range(len(self.rows))
        if not column:
            if figure != "count":
                raise UsageError(
                    f"a {figure} needs a column: name one of {', '.join(each.name for each in self.columns)}"
                )
            return Computed(figure=figure, column="", value=len(self.rows), rows=tuple(numbers))
        at = self.find_column(column)
        cells = {number: self.rows[number].cells[at].text for number in numbers}
        if figure == "count" or (figure in ("first", "last") and self.columns[at].kind != "date"):
            values: dict[int, Any] = {number: text for number, text in cells.items() if text}
            unit = ""
        elif figure in ("first", "last"):
            values, unit = {n: (date, cells[n]) for n, text in cells.items() if (date := read_date(text))}, ""
        else:
            values, unit = _read_amounts(cells, column)
        return Computed(
            figure=figure,
            column=self.columns[at].name,
            value=_compute(figure, values),
            unit=unit,
            rows=tuple(values),
            left_out=tuple(number for number in numbers if number not in values),
        )

    def find_column(self, name: str) -> int:
        """The number of a column, from 0. Raises UsageError."""
        names = [column.name for column in self.columns]
        for number, each in enumerate(names):
            if fold(each).words == fold(name).words:
                return number
        raise UsageError(f"the table has no column {name!a}: {suggest(name, names)}it has {', '.join(names)}")

    def to_markdown(self) -> str:
        """A table of Markdown with a footnote for each quote."""
        quotes = list(dict.fromkeys(chain.from_iterable(row.quotes for row in self.rows)))
        numbers = {quote: number for number, quote in enumerate(quotes, start=1)}

        def write(cell: Statement) -> str:
            marks = "".join(f"[^{numbers[quote]}]" for quote in cell.quotes)
            return f"{' '.join(escape_markdown(cell.text).split())}{marks}".replace("|", "\\|")

        lines = [[column.name for column in self.columns], ["---"] * len(self.columns)]
        lines += [[write(cell) for cell in row.cells] for row in self.rows]
        notes = [f"[^{number}]: {escape_markdown(str(quote))}" for quote, number in numbers.items()]
        return "\n".join([*(f"| {' | '.join(line)} |" for line in lines), "", *notes])

    def to_csv(self) -> str:
        """The texts of the cells as CSV, with the place of each row."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([*(column.name for column in self.columns), "source"])
        for row in self.rows:
            source = describe_source(row.quotes[0]) if row.quotes else ""
            writer.writerow([*(_escape_formula(cell.text) for cell in row.cells), source])
        return out.getvalue()

    def save(self, path: str | PathLike[str]) -> None:
        """Write it to a .csv, .md, .json or .parquet file. Raises UsageError, MissingDependency."""
        file = Path(path)
        written: dict[str, Callable[[], str]] = {
            ".csv": self.to_csv,
            ".md": self.to_markdown,
            ".json": lambda: json.dumps(self.to_dict(), ensure_ascii=False, indent=2),
        }
        if file.suffix == ".parquet":
            _write_parquet(self, file)
        elif file.suffix in written:
            file.write_text(written[file.suffix](), encoding="utf-8")
        else:
            raise UsageError(f"cannot write a table as {file.name!a}: end it with .csv, .md, .json or .parquet")


def _write_parquet(table: Table, file: Path) -> None:
    """A column of texts for each column, and beside a number its amount and unit, and beside a date its ISO form."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise MissingDependency("writing Parquet needs pyarrow: pip install 'tomewise[eval]'") from error
    columns: dict[str, list[Any]] = {}
    for at, column in enumerate(table.columns):
        texts = [row.cells[at].text for row in table.rows]
        columns[column.name] = texts
        if column.kind == "number":
            amounts = [read_amount(text) for text in texts]
            columns[f"{column.name} (number)"] = [amount[0] if amount else None for amount in amounts]
            columns[f"{column.name} (unit)"] = [amount[1] if amount else None for amount in amounts]
        elif column.kind == "date":
            columns[f"{column.name} (date)"] = [_write_date(read_date(text)) for text in texts]
    columns["sources"] = [[str(quote) for quote in row.quotes] for row in table.rows]
    parquet.write_table(pyarrow.Table.from_pydict(columns), file)


def _write_date(date: tuple[int, int, int] | None) -> str | None:
    if date is None:
        return None
    year, month, day = date
    parts = [f"{year:04}" if year else "-", *([f"{month:02}"] if month else []), *([f"{day:02}"] if day else [])]
    return "-".join(parts)


def _escape_formula(text: str) -> str:
    """A text that no spreadsheet takes for a formula."""
    return f"'{text}" if text[:1] in ("=", "+", "@", "\t") or (text[:1] == "-" and read_amount(text) is None) else text


# ---------------------------------------------------------------- values


def read_amount(text: str) -> tuple[float, str] | None:
    """The first number of a text, with its unit: that of which others are multiples, so that "2 km" is 2000 metre."""
    for value in find_values(f"of {text}"):
        for reading in value.readings:
            for sort, *rest in reading:
                if sort == "quantity":
                    return float(rest[0]), str(rest[1])
                if sort == "number" and value.kind in ("number", "ordinal"):
                    return float(rest[0]), ""
        if value.kind == "number" and not any(value.readings):  # "one" and "two"
            return next(((float(number), "") for sort, number, *_ in value.gives if sort == "number"), None)
    return None


def read_date(text: str) -> tuple[int, int, int] | None:
    """The first date of a text as year, month and day; what it does not say is 0."""
    for value in find_values(f"of {text}"):
        keys = next(filter(None, value.readings), frozenset[Key]())
        year = next((int(key[1]) for key in keys if key[0] == "number" and 1000 <= float(key[1]) < 3000), 0)
        day = next((key for key in keys if key[0] == "day"), None)
        month = next((int(key[1]) for key in keys if key[0] == "month"), 0)
        if day or month or year:
            return (year, int(day[1]), int(day[2])) if day else (year, month, 0)
    return None


def _read_amounts(cells: Mapping[int, str], column: str) -> tuple[dict[int, float], str]:
    """The numbers of cells in one unit."""
    amounts = {number: amount for number, text in cells.items() if text and (amount := read_amount(text))}
    units = {unit for _, unit in amounts.values()} - {""}
    if len(units) > 1:
        raise UsageError(f"{column} is in {' and in '.join(sorted(units))}: figures of different units do not add up")
    return {number: amount for number, (amount, _) in amounts.items()}, "".join(units)


_COMPUTE: Mapping[str, Callable[[Sequence[Any]], float | str]] = {
    "count": len,
    "sum": sum,
    "mean": lambda values: sum(values) / len(values),
    "least": min,
    "greatest": max,
    "first": lambda values: min(values)[1] if isinstance(values[0], tuple) else values[0],
    "last": lambda values: max(values)[1] if isinstance(values[0], tuple) else values[-1],
}


def _compute(figure: Figure, values: Mapping[int, Any]) -> float | str | None:
    found = list(values.values())
    return _COMPUTE[figure](found) if found or figure in ("count", "sum") else None


# ---------------------------------------------------------------- the same thing


def join_rows(rows: Iterable[Row], key: Sequence[int]) -> list[Row]:
    """The rows, those with the same values in their key columns joined: numbers, dates and names in any spelling.

    The joined row has the cells of the first, what is empty there from a later one, and the quotes of all. A row with
    an empty key stays alone.
    """
    joined: dict[object, Row] = {}
    for number, row in enumerate(rows):
        texts = [row.cells[at].text for at in key]
        name: object = tuple(map(read_key, texts)) if any(texts) else number
        known = joined.get(name)
        joined[name] = _join(known, row) if known else row
    return list(joined.values())


def read_key(text: str) -> object:
    """What two texts that name the same share: all values and words, in whatever spelling, but small words."""
    values = find_values(f"of {text}")
    written, at = [], 0
    for value in sorted(values, key=lambda value: value.start):
        if value.kind in ("number", "ordinal", "date", "time", "quantity") and any(value.readings):
            written.append(f"of {text}"[at : value.start])
            at = value.end
    numbers = {next(filter(None, v.readings)) for v in values if v.kind not in ("name", "negation") and any(v.readings)}
    words = fold(" ".join([*written, f"of {text}"[at:]])).words[1:]
    return frozenset(numbers), tuple(word for word in words if word not in STOP) or tuple(words)


def find_likely(rows: Sequence[Row], key: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Pairs of rows whose keys differ but may name one thing: the words of one are among those of the other."""
    texts = [" ".join(row.cells[at].text for at in key) for row in rows]
    bags = [frozenset(word for word in fold(text).words if word not in STOP) for text in texts]
    holders: dict[str, list[int]] = {}
    for number, bag in enumerate(bags):
        for word in bag:
            holders.setdefault(word, []).append(number)
    for number, bag in enumerate(bags):
        if not bag:
            continue
        rarest = min(bag, key=lambda word: len(holders[word]))
        for wider in holders[rarest]:
            if wider != number and bag <= bags[wider] and (bag != bags[wider] or number < wider):
                yield min(number, wider), max(number, wider)


def join_same(rows: Sequence[Row], pairs: Iterable[tuple[int, int]]) -> tuple[list[Row], list[int]]:
    """The rows, those of these pairs joined; and for each row before, the number of the row that it is in now."""
    first = list(range(len(rows)))
    for pair in pairs:
        ends = sorted(_find_first(first, number) for number in pair)
        first[ends[1]] = ends[0]
    joined: dict[int, Row] = {}
    for number, row in enumerate(rows):
        root = _find_first(first, number)
        joined[root] = _join(joined[root], row) if root in joined else row
    places = {root: number for number, root in enumerate(joined)}
    return list(joined.values()), [places[_find_first(first, number)] for number in range(len(rows))]


def _find_first(first: Sequence[int], number: int) -> int:
    while first[number] != number:
        number = first[number]
    return number


def _join(row: Row, later: Row) -> Row:
    cells = tuple(map(_join_cells, row.cells, later.cells))
    return Row(cells=cells, places=row.places + later.places)


def _join_cells(cell: Statement, later: Statement) -> Statement:
    """The cell that says something, with the quotes of both where they say the same."""
    if not cell.text or not later.text:
        return cell if cell.text else later
    if read_key(cell.text) != read_key(later.text):
        return cell
    support = max(cell.support, later.support, key=STRENGTHS.index)
    return replace(cell, support=support, quotes=tuple(dict.fromkeys((*cell.quotes, *later.quotes))))
