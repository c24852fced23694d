"""A table of what documents say: rows of cells that are statements with quotes, and figures computed over its columns.

What a row is, and its columns, are chosen by the user or a model. Code reads the values of the cells, joins rows whose
keys have the same values, and counts, adds and compares them.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from importlib.util import find_spec
from itertools import chain, product
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias, get_args

from tomewise.errors import MissingDependency, UsageError, count_noun, suggest
from tomewise.text.alignment import fold
from tomewise.text.stop_words import STOP
from tomewise.text.values import Key, find_values
from tomewise.types import Column, Cost, Coverage, Noun, Quote, Scope, Statement
from tomewise.types.place import describe_source
from tomewise.types.proof import PROVED, STRENGTHS, escape_markdown

_PLAIN_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")
_ARTICLE = re.compile(r"\b(?:the|an?)\s|\A\s*(?:The|An?)\s(?=\s*\w)")
_WRITTEN = re.compile(r"\d\.\d|\b0\d")
_UNIT_SIGN = re.compile(r"[¥₽₹₩₪¢]|\b[A-Z]{3}\b|\b[A-Z]{1,2}(?=\s*\Z|\s\s)")  # money unknown to `find_values`
_RATE = re.compile(r"\s(?:an?|per|each|every)\s(hour|day|week|month|quarter|year)\s*\Z")
_WEIGHT = re.compile(r"lbs?\b", re.IGNORECASE)
Figure: TypeAlias = Literal["count", "sum", "mean", "least", "greatest", "first", "last"]
_Key: TypeAlias = tuple[str | tuple[frozenset[Key], bool], ...]


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
    """Those of rows whose cell is not proved, or has not just one value of this kind."""
    reason: str = ""
    """Why it has none."""

    def __str__(self) -> str:
        value = f"{self.value:,.10g}" if isinstance(self.value, float | int) else self.value or "none"
        of = f" of {self.column}" if self.column else ""
        if self.reason:
            return f"{self.figure}{of}: none, since {self.reason}"
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
        """Whether every passage in scope was read for it, and no row was left out."""
        return self.coverage.all_read and not self.dropped_quotes

    def __str__(self) -> str:
        return f"{count_noun(len(self.rows), 'row')} from {self.coverage}"

    def compute(self, figure: Figure, column: str = "") -> Computed:
        """A figure over a column: count, sum, mean, least, greatest, first or last, with the rows it rests on.

        A count without a column is of the rows. "first" and "last" are by date in a column of dates, else in the order
        of the rows. A cell that is not proved, or has several values, is left out; different units give none. Raises
        UsageError for a figure or a column that is not there.
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
        column_cells = enumerate(row.cells[at] for row in self.rows)
        cells = {number: cell.text for number, cell in column_cells if cell.text and cell.support in PROVED}
        values: dict[int, Any] = cells
        units: set[str] = set()
        if figure in ("first", "last") and self.columns[at].kind == "date":
            dates = {number: date for number, text in cells.items() if (date := read_date(text))}
            has_years = any(year for year, _, _ in dates.values())  # without a year nobody knows what comes first
            values = {number: (date, cells[number]) for number, date in dates.items() if date[0] or not has_years}
        elif figure in ("sum", "mean", "least", "greatest"):
            amounts = {number: amount for number, text in cells.items() if (amount := read_amount(text))}
            values = {number: amount for number, (amount, _) in amounts.items()}
            units = {unit for _, unit in amounts.values()}
        names = " and in ".join(sorted(unit or "plain numbers" for unit in units))
        return Computed(
            figure=figure,
            column=self.columns[at].name,
            value=_compute(figure, values) if len(units) < 2 else None,
            unit="".join(units) if len(units) < 2 else "",
            rows=tuple(values),
            left_out=tuple(number for number in numbers if number not in values),
            reason=f"its cells are in {names}" if len(units) > 1 else "",
        )

    def find_column(self, name: str) -> int:
        """The number of a column, from 0. Raises UsageError."""
        names = [column.name for column in self.columns]
        for same in (name.__eq__, lambda each: each.casefold() == name.strip().casefold()):
            found = [number for number, each in enumerate(names) if same(each)]
            if len(found) == 1:
                return found[0]
        raise UsageError(f"the table has no column {name!a}: {suggest(name, names)}it has {', '.join(names)}")

    def to_markdown(self) -> str:
        """A table of Markdown with a footnote for each quote."""
        quotes = list(dict.fromkeys(chain.from_iterable(row.quotes for row in self.rows)))
        numbers = {quote: number for number, quote in enumerate(quotes, start=1)}

        def write(cell: Statement) -> str:
            marks = "".join(f"[^{numbers[quote]}]" for quote in cell.quotes)
            return f"{' '.join(escape_markdown(cell.text).split())}{marks}".replace("|", "\\|")

        lines = [[escape_markdown(column.name).replace("|", "\\|") for column in self.columns]]
        lines += [["---"] * len(self.columns)]
        lines += [[write(cell) for cell in row.cells] for row in self.rows]
        notes = [f"[^{number}]: {escape_markdown(str(quote))}" for quote, number in numbers.items()]
        return "\n".join([*(f"| {' | '.join(line)} |" for line in lines), "", *notes])

    def to_csv(self) -> str:
        """The texts of the cells as CSV, with the weakest support of each row, and its place."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(map(_escape_formula, [*(column.name for column in self.columns), "support", "source"]))
        for row in self.rows:
            support = min((cell.support for cell in row.cells if cell.text), key=STRENGTHS.index, default="none")
            source = describe_source(row.quotes[0]) if row.quotes else ""
            writer.writerow(map(_escape_formula, [*(cell.text for cell in row.cells), support, source]))
        return out.getvalue()

    def save(self, path: str | PathLike[str]) -> None:
        """Write it to a .csv, .md, .json or .parquet file. Raises UsageError, MissingDependency."""
        file = Path(path)
        check_table_file(file)
        written: dict[str, Callable[[], str]] = {
            ".csv": self.to_csv,
            ".md": self.to_markdown,
            ".json": lambda: json.dumps(self.to_dict(), ensure_ascii=False, indent=2),
        }
        if file.suffix == ".parquet":
            _write_parquet(self, file)
        else:
            file.write_text(written[file.suffix](), encoding="utf-8")


def check_table_file(file: Path) -> None:
    """Raise UsageError or MissingDependency for a file to which no table can be written."""
    if file.suffix not in (".csv", ".md", ".json", ".parquet"):
        raise UsageError(f"cannot write a table as {file.name!a}: end it with .csv, .md, .json or .parquet")
    if file.suffix == ".parquet" and not find_spec("pyarrow"):
        raise MissingDependency("writing Parquet needs pyarrow: pip install 'tomewise[eval]'")


def _write_parquet(table: Table, file: Path) -> None:
    """A column of texts for each column, and beside a number its amount and unit, and beside a date its ISO form."""
    import pyarrow
    from pyarrow import parquet

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
    return "-".join([f"{year:04}" if year else "-", *(f"{part:02}" for part in (month, day) if part)])


def _escape_formula(text: str) -> str:
    """A text that no spreadsheet takes for a formula."""
    return f"'{text}" if text[:1] in tuple("=+-@\t\r\n") and not _PLAIN_NUMBER.fullmatch(text) else text


# ---------------------------------------------------------------- values


def read_amount(text: str) -> tuple[float, str] | None:
    """The number of a text with its unit, that of which others are multiples, so that "2 km" is 2000 metre.

    None where there are several numbers, or figures that belong to none: "£2 to £3", "1/2", "3 lb 2 oz", "1e5".
    What is paid or done "a year" has that in its unit.
    """
    rate = _RATE.search(text)
    if rate and not _RATE.search(text, 0, rate.start()):
        amount = read_amount(text[: rate.start()])
        return amount and (amount[0], f"{amount[1]} a {rate[1]}".lstrip())
    values = [value for value in find_values(f"of {text}") if value.kind in ("number", "ordinal", "quantity", "time")]
    rest = f"of {text}"
    for value in reversed(values):
        rest = rest[: value.start] + " " + rest[value.end :]
    if len(values) != 1 or any(map(str.isdigit, rest)) or any(len(way) > 1 for way in values[0].readings):
        return None
    quantity = next((key for key in values[0].gives if key[0] == "quantity"), None)
    sign = _UNIT_SIGN.search(rest)
    if quantity and not sign:
        unit = "lb" if _WEIGHT.search(values[0].text) else str(quantity[2])
        return float(quantity[1]), unit
    numbers = sorted(float(key[1]) for key in values[0].gives if key[0] == "number")
    first = next((float(key[1]) for way in values[0].readings for key in way if key[0] in ("number", "loose")), None)
    if first is None and not numbers:
        return None
    unit = f"{sign[0].strip()}{values[0].text[:1] if quantity else ''}" if sign else ""
    return numbers[0] if first is None else first, unit


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
    an empty key stays alone, and so does one that says something else in another column.
    """
    joined: list[Row] = []
    holders: dict[object, list[int]] = {}
    for row in rows:
        texts = [row.cells[at].text for at in key]
        same = holders.setdefault(tuple(map(read_key, texts)) if any(texts) else len(joined), [])
        place = next((at for at in same if _agree(joined[at], row)), None)
        if place is None:
            same.append(len(joined))
            joined.append(row)
        else:
            joined[place] = _join(joined[place], row)
    return joined


def _agree(row: Row, later: Row) -> bool:
    pairs = zip(row.cells, later.cells, strict=True)
    return all(not cell.text or not same.text or read_key(cell.text) == read_key(same.text) for cell, same in pairs)


def read_key(text: str) -> _Key:
    """What two texts that name the same share: their values, in whatever spelling, and their words, in order.

    Articles do not count. A number with a point, with zeros before it, or as a clock time is what is written.
    """
    whole = f"of {text}"
    parts: list[str | tuple[frozenset[Key], bool]] = []
    at = 3
    for value in find_values(whole):
        reading = next(filter(None, value.readings), None)
        if value.kind in ("name", "negation") or reading is None or value.start < at:
            continue
        parts += _list_words(whole[at : value.start])
        is_written = value.kind == "time" or (value.kind == "number" and _WRITTEN.search(value.text))
        parts.append(value.text if is_written else (reading, bool(_WEIGHT.search(value.text))))
        at = value.end
    return (*parts, *_list_words(whole[at:])) or tuple(fold(text).words)


def _list_words(text: str) -> list[str]:
    return fold(_ARTICLE.sub(" ", text)).words


def find_likely(rows: Sequence[Row], key: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Pairs of rows whose keys differ but may name one thing: the words and values of one are among the other's."""
    keys = [tuple(read_key(row.cells[at].text) for at in key) for row in rows]
    bags = [frozenset(chain.from_iterable(map(_list_parts, texts))) for texts in keys]
    holders: dict[object, list[int]] = {}
    for number, bag in enumerate(bags):
        for part in bag:
            holders.setdefault(part, []).append(number)
    for number, bag in enumerate(bags):
        if not bag:
            continue
        rarest = min(bag, key=lambda part: len(holders[part]))
        for wider in holders[rarest]:
            is_once = bag != bags[wider] or number < wider
            if wider != number and bag <= bags[wider] and is_once and keys[number] != keys[wider]:
                yield min(number, wider), max(number, wider)


def _list_parts(text: _Key) -> Iterator[object]:
    """The words of a key that say something, and what its values are made of: a date has its day and its year."""
    for part in text:
        if isinstance(part, tuple):
            yield from part[0]
        elif part not in STOP:
            yield part


def join_same(rows: Sequence[Row], pairs: Iterable[tuple[int, int]]) -> tuple[list[Row], list[int]]:
    """The rows, those of these pairs joined; and for each row before, the number of the row that it is in now.

    Of a group every two must be a pair: if Ada Marsh and Marsh are one, and Marsh and Tom Marsh, not all three are.
    """
    same = {frozenset(pair) for pair in pairs}
    groups: list[list[int]] = [[number] for number in range(len(rows))]
    for first, second in sorted(map(sorted, same)):
        group, later = groups[first], groups[second]
        if group is not later and all(frozenset(each) in same for each in product(group, later)):
            group += later
            for number in later:
                groups[number] = group
    firsts = sorted({group[0] for group in groups})
    joined = [reduce(_join, (rows[number] for number in groups[first])) for first in firsts]
    return joined, [firsts.index(group[0]) for group in groups]


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
