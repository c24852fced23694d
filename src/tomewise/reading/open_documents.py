"""Read ODT as Markdown-like text, and ODS by sheets and rows; needs the extra `documents`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import odfdo

from tomewise.reading.decode import join_words
from tomewise.reading.office_package import open_package
from tomewise.reading.places import make_document
from tomewise.reading.tables import BARE_FORMULA, Row, Span, join_sheets, spread_spans, write_grid, write_value
from tomewise.types import Document

_META = "meta.xml"
_DEEPEST = 6  # levels of headings in Markdown
_MOST_COLUMNS = 1 << 14
_MOST_ROWS = 1 << 20
# What holds text in blocks of its own. Tables of contents and other indices, tracked changes and forms are no text.
_HOLDERS = frozenset(
    "text:section text:numbered-paragraph draw:text-box draw:frame text:list-item text:list-header draw:g".split()
)
# Comments; notes, which follow their paragraph; and how a word is pronounced.
_ASIDE = frozenset("office:annotation office:annotation-end text:note text:ruby-text".split())


def read_odt(path: Path) -> tuple[Document]:
    """The document in an ODT file; before and behind it the headers and footers, each once.

    Raises `ReadingError` if it is encrypted or damaged.
    """
    with open_package(path, _META) as (_, title, origin):
        document = odfdo.Document(path)
        styles: Any = document.get_part("styles.xml")
        header, footer = (
            dict.fromkeys("\n\n".join(_list_blocks(each)) for each in styles.get_elements(f"//style:{name}"))
            for name in ("header", "footer")
        )
        text = "\n\n".join(filter(None, (*header, *_list_blocks(document.body), *footer)))
    return make_document(path, text, title, origin)


def read_ods(path: Path) -> tuple[Document]:
    """The sheets of an ODS file, each a chapter. Raises `ReadingError` if it is encrypted or damaged."""
    with open_package(path, _META) as (_, title, origin):
        tables: Any = odfdo.Document(path).body.get_elements("table:table")
        text, marks = join_sheets((table.name or "", _list_rows(table)) for table in tables)
        bare = "descendant::table:table-cell[@table:formula][not(@office:value-type)]"
        losses = {BARE_FORMULA: sum(len(table.get_elements(bare)) for table in tables)}
    return make_document(path, text, title, origin, marks, losses)


def _list_blocks(element: Any, indent: str = "") -> Iterator[str]:
    """The headings, paragraphs, lists and tables in an element, as Markdown."""
    for child in element.children:
        if child.tag == "text:h":
            if words := join_words(_read_text(child)):
                yield f"{'#' * min(int(child.level or 1), _DEEPEST)} {words}"
            yield from _list_inner_blocks(child)
        elif child.tag == "text:p":
            if words := _read_text(child).strip():
                yield words
            yield from _list_inner_blocks(child)
        elif child.tag == "text:list":
            if lines := list(_list_items(child, indent)):
                yield "\n".join(lines)
        elif child.tag == "table:table":
            if grid := write_grid(_list_rows(child)):
                yield grid
        elif child.tag in _HOLDERS:
            yield from _list_blocks(child, indent)


def _list_inner_blocks(element: Any) -> Iterator[str]:
    """What the text boxes and notes in a paragraph or a heading hold. Those in them are read with them."""
    for child in element.children:
        if child.tag in ("draw:text-box", "text:note-body"):
            yield from _list_blocks(child)
        elif child.tag != "office:annotation":
            yield from _list_inner_blocks(child)


def _list_items(element: Any, indent: str) -> Iterator[str]:
    for item in element.children:
        first = True
        for block in _list_blocks(item, indent + "  "):
            yield block if block.startswith(indent + "  - ") else f"{indent}{'- ' if first else '  '}{block}"
            first = False


def _read_text(element: Any) -> str:
    """The text of a paragraph, without comments, notes and text boxes in it."""
    parts = [element.text or ""]
    for child in element.children:
        if child.tag == "text:s":
            parts.append(" " * min(int(child.get_attribute("text:c") or 1), _MOST_COLUMNS))
        elif child.tag in ("text:tab", "text:line-break"):
            parts.append("\t" if child.tag == "text:tab" else "\n")
        elif child.tag not in _ASIDE and not child.tag.startswith("draw:"):
            parts.append(_read_text(child))
        parts.append(child.tail or "")
    return "".join(parts)


def _list_rows(table: Any) -> Iterator[Row]:
    """The rows of a table that have a value, with their numbers from 1, and the cells that span others in all those."""
    rows: list[Row] = []
    spans: list[Span] = []
    number = 1
    for row in table.get_elements("descendant::table:table-row"):
        cells = _list_cells(row, number, spans)
        repeated = int(row.get_attribute("table:number-rows-repeated") or 1)
        if any(cells):
            if number + repeated > _MOST_ROWS + 1:
                raise ValueError(f"a table has rows behind row {_MOST_ROWS:,}, the last one that a table can have")
            rows += ((number + at, cells) for at in range(repeated))
        number += repeated
    return spread_spans(rows, spans)


def _list_cells(row: Any, number: int, spans: list[Span]) -> list[str]:
    """The cells of the row with this number. Adds those that span others."""
    cells: list[str] = []
    blank = 0
    for cell in row.get_elements("table:table-cell | table:covered-table-cell"):
        repeated = min(int(cell.get_attribute("table:number-columns-repeated") or 1), _MOST_COLUMNS)
        height, width = (int(cell.get_attribute(f"table:number-{each}-spanned") or 1) for each in ("rows", "columns"))
        if height > 1 or width > 1:
            spans.append(Span(number, len(cells) + blank, height, width))
        if words := _write_cell(cell):
            cells += [""] * blank + [words] * repeated
            blank = 0
        else:
            blank += repeated
    return cells


def _write_cell(cell: Any) -> str:
    """What a cell shows; a date as XLSX has it, since each machine shows it its own way; a formula without a value."""
    if cell.get_attribute("office:value-type") == "date" and (value := cell.get_value()) is not None:
        return write_value(value)
    if words := "\n".join(_list_blocks(cell)):
        return words
    value = cell.get_value() if cell.get_attribute("office:value-type") == "float" else None
    formula = str(cell.get_attribute("table:formula") or "").partition("=")[2]
    return f"={formula}" if value is None and formula else "" if value is None else write_value(value)
