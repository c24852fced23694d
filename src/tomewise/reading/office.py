"""Read PPTX as Markdown-like text; needs the extra `documents`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pptx

from tomewise.reading.decode import join_words
from tomewise.reading.office_package import open_package
from tomewise.reading.places import join_marked, make_document
from tomewise.reading.tables import Span, write_grid
from tomewise.types import Document, Place

_BREAKS = re.compile(r"[\v\n]+")  # PowerPoint writes a new line within a paragraph as a vertical tab


def read_pptx(path: Path) -> tuple[Document]:
    """The slides of a PPTX file with their tables and notes. Raises `ReadingError` if it is encrypted or damaged."""
    with open_package(path) as (file, title, origin):
        slides = [_read_slide(slide) for slide in pptx.Presentation(file).slides]
    text, marks = join_marked(
        (text, Place(slide=number, chapter=(heading,) if heading else ()))
        for number, (heading, text) in enumerate(slides, start=1)
        if text
    )
    return make_document(path, text, title, origin, marks)


def _read_slide(slide: Any) -> tuple[str, str]:
    """The heading of a slide, and its whole text."""
    placeholder = slide.shapes.title
    heading, title_id = "", None
    if placeholder is not None:
        heading, title_id = join_words(placeholder.text_frame.text), placeholder.shape_id
    parts = [f"# {heading}"] if heading else []
    parts += _list_texts(shape for shape in slide.shapes if shape.shape_id != title_id)
    if slide.has_notes_slide and (notes := slide.notes_slide.notes_text_frame) is not None and notes.text.strip():
        parts.append(f"Notes: {_BREAKS.sub(chr(10), notes.text).strip()}")
    return heading, "\n\n".join(parts)


def _list_texts(shapes: Iterable[Any]) -> Iterator[str]:
    for shape in shapes:
        if hasattr(shape, "shapes"):  # a group
            yield from _list_texts(shape.shapes)
        elif getattr(shape, "has_table", False):
            rows = list(enumerate((list(row.cells) for row in shape.table.rows), start=1))
            spans = [
                Span(number, column, cell.span_height, cell.span_width)
                for number, row in rows
                for column, cell in enumerate(row)
                if cell.is_merge_origin
            ]
            yield write_grid(((number, [cell.text for cell in row]) for number, row in rows), spans)
        elif getattr(shape, "has_text_frame", False):
            lines = [_BREAKS.sub(" ", paragraph.text).strip() for paragraph in shape.text_frame.paragraphs]
            lines = [line for line in lines if line]
            if len(lines) > 1 and not any(line.endswith((".", "!", "?", ":", "。")) for line in lines):
                lines = [f"- {line}" for line in lines]  # points, of which none goes on in the next line
            if lines:
                yield "\n".join(lines)
