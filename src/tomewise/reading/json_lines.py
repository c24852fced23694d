"""Read JSON Lines corpora: one document per row."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO

from tomewise.errors import ReadingError
from tomewise.reading.decode import EmptySource, join_words, unify_newlines
from tomewise.reading.metadata import ID, UNSTORABLE, add_losses, cut_document, find_unstorable, select_plain
from tomewise.reading.places import Marks, join_turns
from tomewise.reading.process import Bounds, make_bound_error, open_within
from tomewise.types import Document, DocumentId

_BOM = b"\xef\xbb\xbf"
_KNOWN_FIELDS = frozenset({"id", "title", "text", "meeting_transcripts"})
_DEFAULTS = Bounds()
_LONGEST_LINE = 1 << 24  # bytes: a row is parsed in this process, into at most some 30 times as many


def read_rows(path: Path, source: str, prefix: str = "", bounds: Bounds = _DEFAULTS) -> Iterator[Document]:
    """The documents of a JSON Lines file in UTF-8, one row at a time; `source` is its absolute path.

    A row is `{id?, title?, text}` or has QMSum's `meeting_transcripts`. With a prefix, its id becomes `<prefix>/<id>`;
    a row without an id gets `<source>#<line number>`. Further fields that are plain values or lists of them are its
    metadata; others are counted. Blank lines are skipped. Raises `ReadingError` with the line number for any other row,
    for a repeated id and for a line of more than 16 MB, and also for a file without rows or with more than the bounds
    allow.
    """
    seen: dict[str, int] = {}
    with open_within(path, bounds) as file:
        for number, line in _read_lines(file, source, bounds):
            line = line.removeprefix(_BOM) if number == 1 else line
            if not line.strip():
                continue
            try:
                document = _parse_document(line, source, number, prefix)
                if (first := seen.setdefault(document.id, number)) != number:
                    raise ReadingError(f"the id {document.id!r} was used in line {first}: make ids unique")
            except ReadingError as error:
                raise ReadingError(f"{source}, line {number}: {error}") from None
            if len(seen) > bounds.documents:
                raise make_bound_error(source, bounds, "documents")
            yield document
    if not seen:
        raise EmptySource(f"{source} is empty or holds only white space: give a source with text, or leave it out")


def _read_lines(file: BinaryIO, source: str, bounds: Bounds) -> Iterator[tuple[int, bytes]]:
    left = bounds.bytes
    for number in count(1):
        line = file.readline(_LONGEST_LINE + 1)
        if len(line) > _LONGEST_LINE:
            raise ReadingError(
                f"{source}, line {number}: the line has more than {_LONGEST_LINE:,} bytes: make several rows of it, or "
                "save its text as a file"
            )
        left -= len(line)
        if left < 0:  # the file grows while it is read
            raise make_bound_error(source, bounds, "characters")
        if not line:
            return
        yield number, line


def add_prefix(prefix: str, id: DocumentId) -> DocumentId:
    """`<prefix>/<id>`, or the id alone if the prefix is empty."""
    return f"{prefix}/{id}" if prefix else id


def _parse_document(raw: bytes, source: str, number: int, prefix: str) -> Document:
    """The document of a line. Raises `ReadingError` with what is wrong with the line, and the remedy."""
    row = _parse_row(raw)
    id = row.get("id")
    if isinstance(id, str) and len(id) > ID:
        raise ReadingError(f"`id` has {len(id):,} characters: give it at most {ID:,}, or leave it out")
    if id is not None and (isinstance(id, bool) or not isinstance(id, str | int) or not str(id).strip()):
        raise ReadingError(f"`id` is {id!r}: make it a string or a whole number, or leave it out")
    title = row.get("title") or ""
    if not isinstance(title, str):
        raise ReadingError(f"`title` is {title!r}: make it a string, or leave it out")
    text, marks = (
        _parse_meeting(row["meeting_transcripts"])
        if "meeting_transcripts" in row
        else (unify_newlines(_parse_text(row)), ())
    )
    further = {name: value for name, value in row.items() if name not in _KNOWN_FIELDS and value is not None}
    fields = select_plain(further)
    document = Document(
        id=f"{source}#{number}" if id is None else add_prefix(prefix, str(id)),
        text=text,
        title=join_words(title),
        source=source,
        metadata=add_losses(fields, {"field": len(further) - len(fields)}),
        marks=marks,
    )
    document = cut_document(document)
    for name in ("id", "title", "text"):
        if found := UNSTORABLE.search(getattr(document, name)):  # JSON can spell it, but a text file cannot hold it
            raise ReadingError(f"`{name}` holds the character {found[0]!a} at {found.start()}: replace it")
    if field := find_unstorable(document.metadata):
        raise ReadingError(f"{field!a} holds a character that a text cannot hold: replace it")
    return document


def _parse_row(raw: bytes) -> dict[str, Any]:
    try:
        row = json.loads(raw.decode())
    except UnicodeDecodeError as error:
        raise ReadingError(f"byte {error.start} is not UTF-8: save the file as UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise ReadingError(f"the row is not JSON ({error}): write one JSON object per line") from None
    if not isinstance(row, dict):
        raise ReadingError(f"the row is not an object but {raw[:40]!r}: write one JSON object per line")
    return row


def _parse_text(row: dict[str, Any]) -> str:
    if "text" not in row:
        raise ReadingError("the row lacks the field `text`: add it, or leave the row out")
    text = row["text"]
    if not isinstance(text, str) or not text.strip():
        raise ReadingError("the field `text` is empty or not a string: give it text, or leave the row out")
    return text


def _parse_meeting(turns: object) -> tuple[str, Marks]:
    if not isinstance(turns, list) or not turns:
        raise ReadingError("`meeting_transcripts` is empty or not a list: list its turns")
    for position, turn in enumerate(turns):
        for field in ("speaker", "content"):
            if not isinstance(turn, dict) or not isinstance(turn.get(field), str):
                raise ReadingError(f"turn {position} lacks the field `{field}`: give every turn a string there")
    return join_turns(turns)
