"""Read PDF and DOCX as Markdown-like text; needs the extra `documents`."""

from __future__ import annotations

import re
from pathlib import Path

import mammoth  # noqa: F401 - without these two the converters fail only when they are used
import pdfplumber  # noqa: F401
from markitdown import DocumentConverter, StreamInfo
from markitdown.converters import DocxConverter, PdfConverter

from tomewise.errors import ReadingError
from tomewise.types import Document

_TRAILING = re.compile(r"[ \t\r\f\v]+$", re.MULTILINE)
_BLANK_LINES = re.compile(r"\n{3,}")


def read_pdf(path: Path) -> tuple[Document]:
    """The document in a PDF file. Raises `ReadingError` if it cannot be converted."""
    return (_convert(path, ".pdf", PdfConverter()),)


def read_docx(path: Path) -> tuple[Document]:
    """The document in a DOCX file. Raises `ReadingError` if it cannot be converted."""
    return (_convert(path, ".docx", DocxConverter()),)


def _convert(path: Path, suffix: str, converter: DocumentConverter) -> Document:
    with path.open("rb") as stream:
        try:
            result = converter.convert(stream, StreamInfo(extension=suffix))
        except MemoryError:
            raise
        except Exception as error:
            reason = " ".join(str(error).split())[:200] or type(error).__name__
            raise ReadingError(f"{path} could not be converted: {reason}; save it as text or repair it") from error
    text = _BLANK_LINES.sub("\n\n", _TRAILING.sub("", result.markdown))
    return Document(id=str(path), text=text, title=(result.title or "").strip(), source=str(path))
