"""The formats that are converted to text, and the readers that convert them.

A reader is a function that takes the resolved path of a file and returns its documents. It raises `ReadingError` for a
file that it refuses. Only the reader process (`reading.process`) imports its module, so the module may import its
libraries at the top. To add a format, write such a function and add its lines to the two tables here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TypeAlias

from tomewise.errors import MissingDependency
from tomewise.types import Document

Reader: TypeAlias = Callable[[Path], Iterable[Document]]

FORMATS: Mapping[str, str] = {  # by suffix
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".epub": "epub",
    ".pdf": "pdf",
    ".docx": "docx",
}
_READERS = {
    "html": "tomewise.reading.web:read_html",
    "epub": "tomewise.reading.epub:read_epub",
    "pdf": "tomewise.reading.office:read_pdf",
    "docx": "tomewise.reading.office:read_docx",
}


def load_reader(format: str) -> Reader:
    """Import the reader of a format. Raises `MissingDependency` if its libraries are not installed."""
    module, _, name = _READERS[format].partition(":")
    try:
        reader: Reader = getattr(import_module(module), name)
    except ImportError:
        remedy = "pip install 'tomewise[documents]'"
        raise MissingDependency(f"reading {format.upper()} needs the extra `documents`: {remedy}") from None
    return reader
