"""A reader of scanned PDF files: their text stands beside them, page by page, where a program for OCR has left it."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path

from tomewise.parts import Document, Place, ReadingError


def read_scan(path: Path) -> tuple[Document]:
    """The document of `NAME.pdf` with the text of `NAME.pdf.txt`, in which form feeds end the pages."""
    beside = path.with_name(path.name + ".txt")
    if not beside.exists():
        raise ReadingError(f"{path} is scanned: put its text beside it, as {beside.name}")
    pages = beside.read_text("utf-8").split("\f")
    starts = [0, *accumulate(len(page) + 2 for page in pages)]
    marks = tuple((start, Place(page=number)) for number, start in enumerate(starts[:-1], start=1))
    return (Document(id=str(path), text="\n\n".join(pages), source=str(path), marks=marks),)
