"""The formats of files that are read, and the readers that convert them.

A reader is a function that takes the resolved path of a file and returns its documents. It raises `ReadingError` for a
file that it refuses. Only the reader process (`reading.process`) imports its module, so the module may import its
libraries at the top. To add a format, write such a function and add one line to the table; a package names it in its
entry points `tomewise.readers`, under the suffix without the dot. It cannot replace a reader of ours. Under the name
`scan` it brings the text of a scanned PDF, which its own reader refuses as `Scanned`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TypeAlias

from tomewise.errors import MissingDependency, ReadingError, UsageError
from tomewise.plugins import find_plugin, list_names, list_plugins
from tomewise.types import Document

Reader: TypeAlias = Callable[[Path], Iterable[Document]]


SCAN = "scan"  # the name of a plugin that reads scans


class Scanned(ReadingError):
    """All pages of a file are images without text."""


@dataclass(frozen=True, slots=True)
class Format:
    """A format of files.

    `reader` is `module:function`, or empty for a format that `reading.read` reads without the reader process. `places`
    says what a citation from such a file names. `extra` is the extra of Tomewise that its reader needs.
    """

    name: str
    suffixes: tuple[str, ...]
    reader: str
    places: str
    extra: str = ""


TEXT, MARKDOWN, CODE, CORPUS = "text", "markdown", "code", "jsonl"  # read without the reader process
_TEXT_SUFFIXES = ".txt .text .rst .org .tex .log"
_CODE_SUFFIXES = (
    ".py .pyi .js .mjs .jsx .ts .tsx .java .kt .scala .c .h .cc .cpp .hpp .cs .go .rs .swift .rb .php .pl .lua .r .jl "
    ".m .hs .ml .clj .ex .exs .erl .sh .bash .ps1 .sql .css .toml .ini .cfg"
)
_TABLE = f"""
pdf      | .pdf              | pdf:read_pdf            | page, chapter of the outline | documents
docx     | .docx             | word:read_docx          | chapter                      |
pptx     | .pptx             | office:read_pptx        | slide                        | documents
xlsx     | .xlsx .xlsm       | workbooks:read_xlsx     | sheet, row                   | documents
odt      | .odt              | open_documents:read_odt | chapter                      | documents
ods      | .ods              | open_documents:read_ods | sheet, row                   | documents
rtf      | .rtf              | rich_text:read_rtf      |                              | documents
epub     | .epub             | epub:read_epub          | chapter                      |
html     | .html .htm .xhtml | web_pages:read_html     | chapter                      |
markdown | .md .markdown     |                         | chapter                      |
captions | .srt .vtt         | captions:read_captions  | time, speaker                |
table    | .csv .tsv         | tables:read_table       | row                          |
notebook | .ipynb            | notebook:read_notebook  | chapter, cell                |
json     | .json             | json_files:read_json    | row, time, speaker           |
yaml     | .yaml .yml        | json_files:read_yaml    |                              |
mail     | .eml              | mail:read_eml           | date, sender                 |
mailbox  | .mbox             | mail:read_mbox          | date, sender                 |
jsonl    | .jsonl .ndjson    |                         | speaker of a meeting         |
text     | {_TEXT_SUFFIXES}  |                         | time, speaker                |
code     | {_CODE_SUFFIXES}  |                         |                              |
"""


def _read_row(row: str) -> Format:
    name, suffixes, reader, places, extra = (cell.strip() for cell in row.split("|"))
    return Format(name, tuple(suffixes.split()), reader, places, extra)


FORMATS: tuple[Format, ...] = tuple(map(_read_row, _TABLE.strip().splitlines()))
_BY_SUFFIX = {suffix: each.name for each in FORMATS for suffix in each.suffixes}


def find_format(suffix: str) -> str:
    """The name of the format of files with this suffix; that of plain text for a suffix without one."""
    if suffix in _BY_SUFFIX:
        return _BY_SUFFIX[suffix]
    return suffix if suffix in list_suffixes() else TEXT


def list_suffixes() -> frozenset[str]:
    """The suffixes of files that are read in a folder: ours, and those that plugins read."""
    return frozenset(_BY_SUFFIX).union(f".{name}" for name in list_names("readers") if name != SCAN)


def list_formats() -> list[Format]:
    """All formats, with those of plugins, whose packages are named as the extra."""
    outside = (
        Format(plugin.name, () if plugin.name == SCAN else (f".{plugin.name}",), "", "", plugin.package)
        for plugin in list_plugins("readers")
        if f".{plugin.name}" not in _BY_SUFFIX
    )
    return [*FORMATS, *outside]


def load_reader(name: str) -> Reader:
    """Import the reader of a format. Raises `MissingDependency` if its libraries or its package cannot be imported."""
    format = next((each for each in FORMATS if each.name == name), None)
    if format is None:
        return _load_outside_reader(name)
    module, _, function = format.reader.partition(":")
    try:
        reader: Reader = getattr(import_module(f"tomewise.reading.{module}"), function)
    except ImportError:
        remedy = f"pip install 'tomewise[{format.extra}]'"
        raise MissingDependency(f"reading {name.upper()} needs the extra `{format.extra}`: {remedy}") from None
    return reader


def _load_outside_reader(suffix: str) -> Reader:
    try:
        reader = find_plugin("readers", suffix.removeprefix("."))
    except UsageError as error:  # the reader process tells of a reader that is missing, and of no other error
        raise MissingDependency(str(error)) from error
    if not callable(reader):
        raise MissingDependency(
            f"the reader of {suffix} files is {reader!r}, not a function of a path: update its package"
        )
    return reader
