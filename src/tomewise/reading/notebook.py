"""Read Jupyter notebooks by cells: prose as it is, code and its output in fences."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tomewise.errors import ReadingError
from tomewise.reading.decode import decode, join_words
from tomewise.reading.places import Marks, join_marked, make_document, mark_headings
from tomewise.reading.web_pages import convert_html
from tomewise.types import Document, Place

_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_PLACEHOLDER = re.compile(r"<[^<>\n]{1,200}>|[\w.]{1,100}\([^()\n]{0,200}\)")
_OLD_KINDS = {"html": "text/html", "latex": "text/latex"}  # of format 3
_TICKS = re.compile(r"`{3,}")


def read_notebook(path: Path) -> tuple[Document]:
    """The cells of a notebook, counted from 1. The title is the stated one, or else the first heading of level 1.

    Raises `ReadingError` for a file that is not a notebook of format 3 or 4.
    """
    notebook = _parse_notebook(path)
    metadata = notebook.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    language = _find_language(metadata)
    texts = ("\n\n".join(_read_cell(cell, language)) for cell in _list_cells(notebook))
    text, cells = join_marked((text, Place(cell=number)) for number, text in enumerate(texts, start=1) if text)
    headings = mark_headings(text)
    title = metadata.get("title") or next((place.chapter[0] for at, place in headings if text.startswith("# ", at)), "")
    outputs = (output for cell in _list_cells(notebook) for output in _list_outputs(cell))
    data = [output.get("data") for output in outputs]
    losses = {"picture": sum(isinstance(each, dict) and "image/" in " ".join(each) for each in data)}
    return make_document(path, text, str(title), marks=_join_marks(headings, cells), losses=losses)


def _parse_notebook(path: Path) -> Mapping[str, Any]:
    try:
        notebook = json.loads(decode(path.read_bytes(), str(path))[0])
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
            return join_words(fields[name])
    return ""


def _read_cell(cell: Mapping[str, Any], language: str) -> Iterator[str]:
    text = _join_lines(cell.get("source", cell.get("input"))).strip("\n")
    if cell.get("cell_type") != "code":
        if text.strip():
            yield text
        return
    if text.strip():
        yield _fence(text, language)
    for output in _list_outputs(cell):
        if words := _read_output(output).strip():
            yield _fence(words, "")


def _list_outputs(cell: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    outputs = cell.get("outputs")
    return [output for output in outputs if isinstance(output, dict)] if isinstance(outputs, list) else []


def _read_output(output: Mapping[str, Any]) -> str:
    if output.get("output_type") in ("error", "pyerr"):
        return f"{output.get('ename', '')}: {output.get('evalue', '')}"
    data = output.get("data")
    if not isinstance(data, dict):
        data = {"text/plain": output.get("text"), **{_OLD_KINDS.get(name, ""): output[name] for name in output}}
    plain = _ANSI.sub("", _join_lines(data.get("text/plain")))
    rich = {kind: _join_lines(data.get(kind)) for kind in ("text/markdown", "text/html", "text/latex")}
    if rich["text/markdown"].strip():
        return rich["text/markdown"]
    if rich["text/html"] and (not _is_words(plain) or "<table" in rich["text/html"]):
        rich["text/html"] = convert_html(rich["text/html"], "an output").text
        return rich["text/html"] or plain
    return plain if _is_words(plain) else rich["text/latex"] or plain


def _is_words(plain: str) -> bool:
    """Whether the plain text of an output says anything: `<Figure size 640x480 with 1 Axes>` does not."""
    return bool(plain.strip()) and _PLACEHOLDER.fullmatch(plain.strip()) is None


def _join_lines(lines: object) -> str:
    """A text that a notebook may keep as a list of lines."""
    return "".join(map(str, lines)) if isinstance(lines, list) else lines if isinstance(lines, str) else ""


def _fence(text: str, language: str) -> str:
    longest = max((len(ticks) for ticks in _TICKS.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _join_marks(headings: Marks, cells: Marks) -> Marks:
    """A mark for each cell and for each heading, with both."""
    chapters, cells_by_start = dict(headings), dict(cells)
    marks: list[tuple[int, Place]] = []
    place, cell = Place(), Place()
    for at in sorted(chapters.keys() | cells_by_start.keys()):
        place, cell = chapters.get(at, place), cells_by_start.get(at, cell)
        marks.append((at, replace(place, cell=cell.cell)))
    return tuple(marks)
