"""Read XLSX by sheets and rows, each cell as it is shown; needs the extra `documents`."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

import openpyxl
from openpyxl.worksheet._reader import FORMULA_TAG, WorkSheetParser

from tomewise.reading.office_package import open_package
from tomewise.reading.places import make_document
from tomewise.reading.tables import BARE_FORMULA, Row, Span, join_sheets, spread_spans, write_value
from tomewise.types import Document

_MOST_ROWS = 1 << 20
_MOST_COLUMNS = 1 << 14
_FIRST_OWN = 164  # number of a format that a workbook adds
# The parts of a number format: quoted and escaped signs, what pads or hides, colours and currencies, digits.
_PART = re.compile(
    r'"([^"]{0,50})"|\\(.)|[_*].|\[\$([^\]-]{0,20})[^\]]{0,20}\]|\[[^\]]{0,40}\]|([0#?](?:[0#?,.]{0,40}[0#?])?)(,{0,6})|'
    r"(E[+-]0{1,9})|(.)"
)
_DATES = {
    "yyyy": "%Y", "yy": "%y", "mmmm": "%B", "mmm": "%b", "mm": "%m", "dddd": "%A", "ddd": "%a", "dd": "%d",
    "hh": "%H", "nn": "%M", "ss": "%S", "am/pm": "%p",
}  # fmt: skip
_MINUTES = re.compile(r"(?<=h:)mm?|(?<=hh\.)mm?|mm?(?=:s)")  # the same letter as months
_DATE_PART = re.compile(r'"[^"]{0,50}"|\\.|\[[^\]]{0,40}\]|am/pm|y{2,4}|m{1,4}|d{1,4}|h{1,2}|n{1,2}|s{1,2}|.')
_LOCAL = frozenset({"General", "mm-dd-yy", "m/d/yyyy", "m/d/yy h:mm"})  # each machine shows these its own way


def read_xlsx(path: Path) -> tuple[Document]:
    """The sheets of a workbook, hidden ones too, each a chapter, with the values that its formulas had when it was
    saved.

    A formula without a value is written itself, and counted as left out. A program that asks
    for calculation at opening may write 0 for each, so there a 0 does not count. Raises `ReadingError` if the file is
    encrypted or damaged.
    """
    with open_package(path) as (file, title, origin), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of styles that openpyxl does not know
        with closing(openpyxl.load_workbook(file, read_only=True, data_only=True)) as book:
            losses = Counter[str]()
            text, marks = join_sheets((sheet.title, _list_rows(sheet, losses)) for sheet in book.worksheets)
    return make_document(path, text, title, origin, marks, losses)


def _list_rows(sheet: Any, losses: Counter[str]) -> Iterator[Row]:
    """The rows of a sheet, from its XML: openpyxl gives either formulas or values, and no merged cells in passing."""
    book, rows = sheet.parent, list[Row]()
    with sheet._get_source() as source:
        parser = _Parser(
            source,
            sheet._shared_strings,
            data_only=True,
            epoch=book.epoch,
            date_formats=book._date_formats,
            timedelta_formats=book._timedelta_formats,
        )
        parser.is_uncalculated = bool(book.calculation.fullCalcOnLoad)
        for number, cells in parser.parse():
            if number > _MOST_ROWS:
                raise ValueError(f"a sheet has rows behind row {_MOST_ROWS:,}, the last one that a sheet can have")
            row: list[str] = []
            for cell in cells:
                if (value := cell["value"]) is not None and cell["column"] <= _MOST_COLUMNS:
                    row += [""] * (cell["column"] - len(row))
                    shown = value if isinstance(value, str) else show_value(value, _find_format(book, cell["style_id"]))
                    row[cell["column"] - 1] = shown
            if row:
                rows.append((number, row))
    losses[BARE_FORMULA] += parser.formulas
    merged = parser.merged_cells.mergeCell if parser.merged_cells else ()
    spans = (
        Span(top, left - 1, bottom - top + 1, right - left + 1)
        for left, top, right, bottom in (each.bounds for each in merged)
    )
    return spread_spans(rows, spans)


def _find_format(book: Any, style: int) -> str:
    number = book._cell_styles[style].numFmtId
    if number >= _FIRST_OWN:
        return str(book._number_formats[number - _FIRST_OWN])
    return str(openpyxl.styles.numbers.BUILTIN_FORMATS.get(number, "General"))


class _Parser(WorkSheetParser):  # type: ignore[misc]  # openpyxl has no types
    """Gives the formula of a cell in place of a value that nobody calculated."""

    formulas = 0
    is_uncalculated = False

    def parse_cell(self, element: Any) -> dict[str, Any]:
        cell: dict[str, Any] = super().parse_cell(element)
        if element.find(FORMULA_TAG) is not None:
            formula = self.parse_formula(element)  # always: others may share it
            is_missing = cell["value"] is None and cell["data_type"] != "str"  # else it is an empty text
            if is_missing or (self.is_uncalculated and cell["value"] == 0):
                self.formulas += 1
                text = formula if isinstance(formula, str) else getattr(formula, "text", None)
                cell["value"] = text if text and text != "=" else "=?"
        return cell


def show_value(value: object, format: str) -> str:
    """A value as a number format of Excel shows it; the value itself in a format that is not known here."""
    if isinstance(value, bool) or not isinstance(value, int | float | date | time):
        return write_value(value)
    if isinstance(value, date | time):
        return write_value(value) if format in _LOCAL else _show_date(value, format)
    sections = format[:200].split(";")
    at = 1 if value < 0 and len(sections) > 1 else 2 if value == 0 and len(sections) > 2 else 0
    section = sections[at]
    if "General" in section or "@" in section or "/" in section:
        return write_value(value)
    return _show_number(abs(value) if at == 1 else value, section) or write_value(value)


def _show_number(value: float, section: str) -> str:
    parts = list(_PART.finditer(section))
    digits = [part for part in parts if part[4]]
    if not digits:
        return "".join(part[1] or part[2] or part[3] or part[7] or "" for part in parts).strip()
    number = abs(value) * 100 ** sum(part[7] == "%" for part in parts) / 1000 ** len(digits[-1][5])
    pattern = "".join(part[4] for part in digits)
    whole, _, decimals = pattern.partition(".")
    if power := next((part[6] for part in parts if part[6]), ""):
        mantissa, _, exponent = f"{number:.{len(decimals)}E}".partition("E")
        shown = [f"{mantissa}E{int(exponent):+0{len(power) - 1}d}"]
    else:
        rounded = f"{number:,.{len(decimals)}f}" if "," in whole else f"{number:.{len(decimals)}f}"
        least = decimals.rstrip("#?")
        if len(least) < len(decimals):
            kept = rounded.rstrip("0")
            point = rounded.index(".")
            rounded = kept if len(kept) > point + len(least) + 1 else rounded[: point + 1 + len(least)]
            rounded = rounded.rstrip(".")
        filled = len(whole.replace(",", "").lstrip("#?")) + (len(rounded) - rounded.find(".") if "." in rounded else 0)
        rounded = rounded.zfill(filled)
        shown = []  # the digits of a format such as 000-00-0000 are shared from its end
        for part in reversed(digits[1:] if len(digits) > 1 and not decimals else []):
            shown.insert(0, rounded[-len(part[4]) :])
            rounded = rounded[: -len(part[4])]
        shown.insert(0, rounded)
    words = []
    for part in parts:
        if part[4]:
            words.append(shown.pop(0) if shown else "")
        elif not part[6]:
            words.append(part[1] or part[2] or part[3] or part[7] or "")
    text = "".join(words).strip()
    return f"-{text}" if value < 0 and any(sign in "123456789" for sign in text) else text


def _show_date(value: date | time, format: str) -> str:
    """A date in the order and with the names of a format; its time too, unless that is midnight."""
    codes = {**_DATES, "hh": "%I" if "am/pm" in format.lower() else "%H"}
    if isinstance(value, date) and not (isinstance(value, datetime) and value.time() != time()):
        codes = {**codes, "hh": "", "nn": "", "ss": "", "am/pm": ""}
    shown: list[str] = []
    for part in _DATE_PART.findall(_MINUTES.sub(lambda found: "n" * len(found[0]), format.lower().split(";")[0])):
        if (code := codes.get(part)) is not None:
            shown.append(value.strftime(code))
        elif (code := codes.get(part * 2)) is not None:
            shown.append(value.strftime(code).lstrip("0") or ("0" if code else ""))
        elif part[0] != "[":
            shown.append(part.strip('"') if part[0] != "\\" else part[1:])
    return "".join(shown).strip(" :,.") or write_value(value)
