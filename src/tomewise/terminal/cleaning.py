"""Text from others on its way to a terminal: no sequence that a terminal obeys, no direction that stays turned.

`run` of the program puts a `CleanStream` around the standard streams, so that whatever prints is safe: errors, file
names, warnings, logs, tracebacks. Rich writes colours itself: its consoles write past that stream, and `CleanConsole`
cleans the text of each segment instead. What goes to a pipe or a file is explained at `clean_streams`.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

# Embeddings, overrides and isolates turn the letters that follow until they are closed. They are left out in pairs too:
# a line that is wrapped, or a cell of a table, would open one and not close it. Marks of one letter's direction stay.
_TURNS = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))
_CONTROLS = (*range(9), *range(11, 32), *range(127, 160))
_CLEANED = {**dict.fromkeys(_CONTROLS, "\ufffd"), **dict.fromkeys(_TURNS, "")}
_UNSAFE = re.compile("[" + "".join(map(re.escape, map(chr, _CLEANED))) + "]")
_UNESCAPED = {sign: f"\\u{sign:04x}" for sign in (*range(127, 160), *_TURNS)}


def clean(text: str) -> str:
    """The text without control characters but newline and tab, and without what turns the direction of letters."""
    if _UNSAFE.search(text) is None:
        return text
    return text.replace("\r\n", "\n").translate(_CLEANED)


def clean_json(line: str) -> str:
    """JSON of the same meaning, with escapes for what `clean` would change; `json.dumps` writes the first 32 so."""
    return line.translate(_UNESCAPED) if _UNSAFE.search(line) else line


class CleanStream(io.TextIOBase):
    """A stream that cleans what is written. It has no `buffer`, which would lead past it."""

    def __init__(self, stream: TextIO) -> None:
        self.rich_proxied_file = stream  # the name under which Rich looks for the stream that takes its colours

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self.rich_proxied_file.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        return self.rich_proxied_file.errors

    def write(self, text: str) -> int:
        """Write the text, cleaned. Returns its length.

        What would begin its line anew, as the bars of libraries do, begins another: nothing is overwritten.
        """
        self.rich_proxied_file.write(clean(text.replace("\r\n", "\n").replace("\r", "\n")))
        return len(text)

    def flush(self) -> None:
        """Flush the stream below."""
        self.rich_proxied_file.flush()

    def isatty(self) -> bool:
        """Whether the stream below is a terminal."""
        return self.rich_proxied_file.isatty()

    def fileno(self) -> int:
        """The number of the stream below."""
        return self.rich_proxied_file.fileno()

    def writable(self) -> bool:
        """It can be written."""
        return True

    def close(self) -> None:
        """Nothing: the stream below belongs to the process."""


def find_raw(stream: TextIO) -> TextIO:
    """The stream below all that stand around it."""
    inner: Any = stream
    while (below := getattr(inner, "rich_proxied_file", None)) is not None:
        inner = below
    raw: TextIO = inner
    return raw


@contextmanager
def clean_streams() -> Iterator[None]:
    """Clean what is written inside: to standard error always, to standard output where it is a terminal.

    A pipe gets the text of a document (`tome show NAME`) as it is stored; JSON is clean by itself. What is written for
    people (answers, lists, messages) is clean there too: it goes through a `CleanConsole` or standard error.
    """
    before = sys.stdout, sys.stderr
    if sys.stdout.isatty():
        sys.stdout = _wrap(sys.stdout)
    sys.stderr = _wrap(sys.stderr)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def _wrap(stream: TextIO) -> TextIO:
    wrapped: Any = stream if isinstance(stream, CleanStream) else CleanStream(stream)
    return wrapped  # type: ignore[no-any-return]
