"""The formats that are converted to text, and the readers that convert them.

A reader is a function that takes the resolved path of a file and returns its documents. It raises `ReadingError` for a
file that it refuses. Only the reader process (`reading.process`) imports its module, so the module may import its
libraries at the top. To add a format, write such a function and add its lines to the two tables here; a package names
it in its entry points `tomewise.readers`, under the suffix without the dot. It cannot replace a reader of ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TypeAlias

from tomewise.errors import MissingDependency, UsageError
from tomewise.plugins import find_plugin, list_names
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


def find_format(suffix: str) -> str | None:
    """The format of files with this suffix; that of a plugin is its suffix. None for a suffix without a reader."""
    return FORMATS.get(suffix) or (suffix if suffix in list_outside_suffixes() else None)


def list_outside_suffixes() -> frozenset[str]:
    """The suffixes that plugins read."""
    return frozenset(f".{name}" for name in list_names("readers"))


def load_reader(format: str) -> Reader:
    """Import the reader of a format. Raises `MissingDependency` if its libraries or its package cannot be imported."""
    if format not in _READERS:
        return _load_outside_reader(format)
    module, _, name = _READERS[format].partition(":")
    try:
        reader: Reader = getattr(import_module(module), name)
    except ImportError:
        remedy = "pip install 'tomewise[documents]'"
        raise MissingDependency(f"reading {format.upper()} needs the extra `documents`: {remedy}") from None
    return reader


def _load_outside_reader(format: str) -> Reader:
    try:
        reader = find_plugin("readers", format.removeprefix("."))
    except UsageError as error:  # the reader process tells of a reader that is missing, and of no other error
        raise MissingDependency(str(error)) from error
    if not callable(reader):
        raise MissingDependency(
            f"the reader of {format} files is {reader!r}, not a function of a path: update its package"
        )
    return reader
