"""Read PDF and DOCX as Markdown-like text; needs the extra `documents`."""

from __future__ import annotations

import re
from pathlib import Path

import mammoth  # noqa: F401 - without these two the converters fail only when they are used
import pdfplumber  # noqa: F401
from markitdown import DocumentConverter, StreamInfo
from markitdown.converters import DocxConverter, PdfConverter
from pdfminer.pdfpage import PDFPage

from tomewise.errors import ReadingError
from tomewise.reading.places import Marks, mark_headings
from tomewise.types import Document, Place

_TRAILING = re.compile(r"[ \t\r\f\v]+$", re.MULTILINE)
_PAGE_END = "\f"
_WORD = re.compile(r"\S+")
_BLANK_LINES = re.compile(r"\n{3,}")


def read_pdf(path: Path) -> tuple[Document]:
    """The document in a PDF file. Raises `ReadingError` if it cannot be converted."""
    markdown, title = _convert(path, ".pdf", PdfConverter())
    text = _clean(markdown)
    return (Document(id=str(path), text=text, title=title, source=str(path), marks=_mark_pages(path, markdown, text)),)


def read_docx(path: Path) -> tuple[Document]:
    """The document in a DOCX file. Raises `ReadingError` if it cannot be converted."""
    markdown, title = _convert(path, ".docx", DocxConverter())
    text = _clean(markdown)
    return (Document(id=str(path), text=text, title=title, source=str(path), marks=mark_headings(text)),)


def _convert(path: Path, suffix: str, converter: DocumentConverter) -> tuple[str, str]:
    """The Markdown and the title of a file."""
    with path.open("rb") as stream:
        try:
            result = converter.convert(stream, StreamInfo(extension=suffix))
        except MemoryError:
            raise
        except Exception as error:
            reason = " ".join(str(error).split())[:200] or type(error).__name__
            raise ReadingError(f"{path} could not be converted: {reason}; save it as text or repair it") from error
    return result.markdown, (result.title or "").strip()


def _clean(markdown: str) -> str:
    return _BLANK_LINES.sub("\n\n", _TRAILING.sub("", markdown))


def _mark_pages(path: Path, markdown: str, text: str) -> Marks:
    """The pages of a PDF file, of which the converter ends each one with a form feed. `text` is the cleaned Markdown.

    Empty if there is not one form feed for each page: the converter leaves them out of forms and tables.
    """
    pages = markdown.split(_PAGE_END)[:-1]
    if len(pages) != _count_pages(path):
        return ()
    # Cleaning removes only white space, so a page begins behind as many other characters as in the Markdown.
    sizes = [sum(map(len, page.split())) for page in pages]
    words = _WORD.finditer(text)
    marks: list[tuple[int, Place]] = []
    end = seen = before = 0
    for number, size in enumerate(sizes, start=1):
        while seen < before and (word := next(words, None)):
            seen, end = seen + len(word[0]), word.end()
        marks.append((end, Place(page=number)))
        before += size
    return tuple(marks)


def _count_pages(path: Path) -> int:
    with path.open("rb") as stream:
        return sum(1 for _ in PDFPage.get_pages(stream))
