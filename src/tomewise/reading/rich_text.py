"""Read RTF as plain text; needs the extra `documents`."""

from __future__ import annotations

import re
from collections import Counter
from locale import windows_locale
from pathlib import Path

from striprtf.striprtf import rtf_to_text

from tomewise.errors import ReadingError
from tomewise.reading.metadata import describe_origin
from tomewise.reading.places import make_document
from tomewise.types import Document

_BEGINNING = r"{\rtf"
_INFO = 1 << 16  # characters at the beginning of a file in which its properties stand
_CODE_PAGE = re.compile(r"\\ansicpg\d{1,5}")
_LANGUAGE = re.compile(r"\\deflang(\d{1,6})")
_LOST = {"pic": "picture", "obj": "embedded object", "hea": "page header", "foo": "page footer", "ann": "comment"}
# What striprtf leaves out; of a picture in two forms one is counted.
_SKIPPED = re.compile(r"(?<!\\nonshppict\{)\\(?:pict|object|header[lrf]?|footer[lrf]?|annotation)(?![a-z])")
_NOTE = re.compile(r"\\\\|(\{(?:\\\*)?\\footnote(?![a-z]))|(\\par(?![a-z]))")
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_CREATED = re.compile(r"\{\\creatim\\yr(\d{4})\\mo(\d{1,2})\\dy(\d{1,2})(?:\\hr(\d{1,2})\\min(\d{1,2}))?")


def read_rtf(path: Path) -> tuple[Document]:
    """The text of an RTF file. Raises `ReadingError` if it is something else."""
    raw = path.read_bytes().decode("latin-1")  # RTF is ASCII; whatever else is in a file is escaped
    if not raw.startswith(_BEGINNING):
        raise ReadingError(f"{path} is not RTF, whatever its name says: save it in the format that its name states")
    head = raw[:_INFO]
    text = rtf_to_text(_move_notes(raw), errors="replace").strip()
    created = _CREATED.search(head)
    date = "{}-{:0>2}-{:0>2} {:0>2}:{:0>2}".format(*(part or "0" for part in created.groups())) if created else ""
    language = _LANGUAGE.search(head)
    origin = describe_origin(
        authors=[_read_property("author", head)],
        date=date,
        language=windows_locale.get(int(language[1]), "") if language else "",
    )
    losses = Counter(_LOST[found[0][1:4]] for found in _SKIPPED.finditer(raw))
    return make_document(path, text, _read_property("title", head), origin, (), losses)


def _read_property(name: str, head: str) -> str:
    """A text of the group `info`, which has escapes as the text of the file has."""
    found = re.search(rf"\{{\\{name}(?![a-z])", head)
    if found is None:
        return ""
    page = _CODE_PAGE.search(head)
    words = head[found.end() : _find_end(head, found.start())]
    return str(rtf_to_text(f"{_BEGINNING}1\\ansi{page[0] if page else ''}{{{words}}}", errors="replace")).strip()


def _move_notes(raw: str) -> str:
    """The file with each footnote as a paragraph behind the one that it belongs to; striprtf would leave it out."""
    parts: list[str] = []
    notes: list[str] = []
    at = 0
    for found in _NOTE.finditer(raw):
        if found.start() < at or not found.lastindex:
            continue
        parts.append(raw[at : found.start()])
        at = found.start()
        if found[1]:
            at = _find_end(raw, at)
            notes.append(f"\\par {{{raw[found.end() : at]}")
        else:
            parts += notes
            notes.clear()
    if notes:
        end = max(raw.rfind("}"), at)
        parts += [raw[at:end], *notes]
        at = end
    return "".join([*parts, raw[at:]])


def _find_end(raw: str, begin: int) -> int:
    """Where the group that begins here ends."""
    depth = 0
    for found in _BRACE.finditer(raw, begin):
        depth += {"{": 1, "}": -1}.get(found[0], 0)
        if depth == 0 and found[0] == "}":
            return found.end()
    return len(raw)
