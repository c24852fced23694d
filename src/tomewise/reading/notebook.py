"""Read Jupyter notebooks by cells: prose as it is, code and its output in fences."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tomewise.errors import ReadingError
from tomewise.reading.decode import decode_text
from tomewise.reading.places import Marks, mark_headings
from tomewise.types import Document, Place

_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_TICKS = re.compile(r"`{3,}")


def read_notebook(path: Path) -> tuple[Document]:
    """The cells of a notebook, counted from 1. The title is the stated one, or else the first heading of level 1.

    Raises `ReadingError` for a file that is not a notebook of format 3 or 4.
    """
    notebook = _parse_notebook(path)
    metadata = notebook.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    language = _find_language(metadata)
    cells: list[tuple[int, int]] = []  # offset and number
    parts: list[str] = []
    start = 0
    for number, cell in enumerate(_list_cells(notebook), start=1):
        if text := "\n\n".join(_read_cell(cell, language)):
            cells.append((start, number))
            parts.append(text)
            start += len(text) + 2
    text = "\n\n".join(parts)
    headings = mark_headings(text)
    title = metadata.get("title") or next((place.chapter[0] for at, place in headings if text.startswith("# ", at)), "")
    marks = _join_marks(headings, cells)
    return (Document(id=str(path), text=text, title=" ".join(str(title).split()), source=str(path), marks=marks),)


def _parse_notebook(path: Path) -> Mapping[str, Any]:
    try:
        notebook = json.loads(decode_text(path.read_bytes(), str(path)))
    except (ValueError, RecursionError) as error:
        raise ReadingError(f"{path} is not a notebook, because it is not JSON ({error}): repair it") from error
    if not isinstance(notebook, dict) or not isinstance(notebook.get("cells", notebook.get("worksheets")), list):
        raise ReadingError(f"{path} is not a notebook, because it lists no cells: repair it, or leave it out")
    return notebook


def _list_cells(notebook: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The cells; format 3 keeps them in worksheets."""
    sheets = [notebook] if "cells" in notebook else notebook["worksheets"]
    lists = [sheet.get("cells") for sheet in sheets if isinstance(sheet, dict)]
    return [cell for cells in lists if isinstance(cells, list) for cell in cells if isinstance(cell, dict)]


def _find_language(metadata: Mapping[str, Any]) -> str:
    for field, name in (("language_info", "name"), ("kernelspec", "language")):
        fields = metadata.get(field)
        if isinstance(fields, dict) and isinstance(fields.get(name), str):
            return " ".join(fields[name].split())
    return ""


def _read_cell(cell: Mapping[str, Any], language: str) -> Iterator[str]:
    text = _join_lines(cell.get("source", cell.get("input"))).strip("\n")
    if cell.get("cell_type") != "code":
        if text.strip():
            yield text
        return
    if text.strip():
        yield _fence(text, language)
    outputs = cell.get("outputs")
    for output in outputs if isinstance(outputs, list) else ():
        if isinstance(output, dict) and (words := _read_output(output).strip()):
            yield _fence(words, "")


def _read_output(output: Mapping[str, Any]) -> str:
    if output.get("output_type") in ("error", "pyerr"):
        return f"{output.get('ename', '')}: {output.get('evalue', '')}"
    data = output.get("data")
    plain = data.get("text/plain") if isinstance(data, dict) else output.get("text")
    return _ANSI.sub("", _join_lines(plain))


def _join_lines(lines: object) -> str:
    """A text that a notebook may keep as a list of lines."""
    return "".join(map(str, lines)) if isinstance(lines, list) else lines if isinstance(lines, str) else ""


def _fence(text: str, language: str) -> str:
    longest = max((len(ticks) for ticks in _TICKS.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _join_marks(headings: Marks, cells: list[tuple[int, int]]) -> Marks:
    """A mark for each cell and for each heading, with both."""
    chapters = dict(headings)
    heading_starts, cell_starts = [at for at, _ in headings], [at for at, _ in cells]
    marks: list[tuple[int, Place]] = []
    for at in sorted({*heading_starts, *cell_starts}):
        heading = bisect_right(heading_starts, at) - 1
        place = chapters[heading_starts[heading]] if heading >= 0 else Place()
        marks.append((at, replace(place, cell=cells[bisect_right(cell_starts, at) - 1][1])))
    return tuple(marks)
