"""JSON Lines corpora: one document per row."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tomewise.errors import ReadingError
from tomewise.reading.decode import plain
from tomewise.reading.transcripts import transcript_text
from tomewise.types import Document, DocumentId

_BOM = b"\xef\xbb\xbf"
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def rows(path: Path, source: str, prefix: str = "") -> Iterator[Document]:
    """The documents of a JSON Lines file in UTF-8, one row at a time; `source` is its absolute path.

    A row is `{id?, title?, text}` or has QMSum's `meeting_transcripts`. Its id becomes `<prefix>/<id>` where there is
    a prefix; a row without an id is named `<source>#<line number>`. Blank lines are passed over. Raises
    `ReadingError`, with the line, for any other row and for an id that was already used, also when the file has no
    row at all.
    """
    seen: dict[str, int] = {}
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            line = line.removeprefix(_BOM) if number == 1 else line
            if not line.strip():
                continue
            document = _document(line, source, number, prefix)
            first = seen.setdefault(document.id, number)
            if first != number:
                raise _error(source, number, f"the id {document.id!r} was used in line {first}", "make ids unique")
            yield document
    if not seen:
        raise ReadingError(f"{source} is empty or holds only white space: give a source with text, or leave it out")


def prefixed(prefix: str, id: DocumentId) -> DocumentId:
    """The id under the name that is to stand before it."""
    return f"{prefix}/{id}" if prefix else id


def _document(line: bytes, source: str, number: int, prefix: str) -> Document:
    row = _row(line, source, number)
    given = row.get("id")
    if given is not None and (isinstance(given, bool) or not isinstance(given, str | int) or not str(given).strip()):
        raise _error(source, number, f"`id` is {given!r}", "make it a string or a whole number, or leave it out")
    title = row.get("title") or ""
    if not isinstance(title, str):
        raise _error(source, number, f"`title` is {title!r}", "make it a string, or leave it out")
    text = (
        _meeting(row["meeting_transcripts"], source, number)
        if "meeting_transcripts" in row
        else _text(row, source, number)
    )
    document = Document(
        id=f"{source}#{number}" if given is None else prefixed(prefix, str(given)),
        text=plain(text),
        title=" ".join(title.split()),
        source=source,
    )
    for name in ("id", "title", "text"):
        _refuse_unstorable(name, getattr(document, name), source, number)
    return document


def _row(line: bytes, source: str, number: int) -> dict[str, Any]:
    try:
        row = json.loads(line.decode())
    except UnicodeDecodeError as error:
        raise _error(source, number, f"byte {error.start} is not UTF-8", "save the file as UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise _error(source, number, f"the row is not JSON ({error})", "write one JSON object per line") from None
    if not isinstance(row, dict):
        raise _error(source, number, f"the row is no object but {line[:40]!r}", "write one JSON object per line")
    return row


def _text(row: dict[str, Any], source: str, number: int) -> str:
    if "text" not in row:
        raise _error(source, number, "the row lacks the field `text`", "add it, or leave the row out")
    text = row["text"]
    if not isinstance(text, str) or not text.strip():
        raise _error(source, number, "the field `text` is no string or empty", "give it text, or leave the row out")
    return text


def _meeting(turns: object, source: str, number: int) -> str:
    if not isinstance(turns, list) or not turns:
        raise _error(source, number, "`meeting_transcripts` is no list or empty", "list its turns")
    for position, turn in enumerate(turns):
        for field in ("speaker", "content"):
            if not isinstance(turn, dict) or not isinstance(turn.get(field), str):
                raise _error(
                    source, number, f"turn {position} lacks the field `{field}`", "give every turn a string there"
                )
    return transcript_text(turns)[0]


def _refuse_unstorable(field: str, value: str, source: str, number: int) -> None:
    """JSON can spell characters that no text file can hold: NUL and half surrogate pairs."""
    found = _UNSTORABLE.search(value)
    if found:
        what = f"`{field}` holds the character {found[0]!a} at {found.start()}"
        raise _error(source, number, what, "replace it")


def _error(source: str, number: int, what: str, remedy: str) -> ReadingError:
    return ReadingError(f"{source}, line {number}: {what}: {remedy}")
