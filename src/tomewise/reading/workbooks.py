"""Read XLSX by sheets and rows; needs the extra `documents`."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import openpyxl

from tomewise.reading.office_package import open_package
from tomewise.reading.places import make_document
from tomewise.reading.tables import Row, join_sheets, write_value
from tomewise.types import Document

_MOST_ROWS = 1 << 20


def read_xlsx(path: Path) -> tuple[Document]:
    """The sheets of a workbook, hidden ones too, each a chapter, with the values that its formulas had when it was
    saved.

    Raises `ReadingError` if it is encrypted or damaged.
    """
    with open_package(path) as (file, title, origin), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of styles that openpyxl does not know
        with closing(openpyxl.load_workbook(file, read_only=True, data_only=True)) as book:
            text, marks = join_sheets((sheet.title, _list_rows(sheet)) for sheet in book.worksheets)
    return make_document(path, text, title, origin, marks)


def _list_rows(sheet: Any) -> Iterator[Row]:
    sheet.reset_dimensions()  # a stated size may be wrong, and as large as a sheet can be
    for number, cells in enumerate(sheet.iter_rows(values_only=True), start=1):
        if number > _MOST_ROWS:
            raise ValueError(f"a sheet has rows behind row {_MOST_ROWS:,}, the last one that a sheet can have")
        if cells:
            yield number, ["" if value is None else write_value(value) for value in cells]
