"""A question from standard input."""

from __future__ import annotations

import sys

from tomewise.errors import UsageError

_LONGEST = 1_000_000  # bytes


def read_question(question: str) -> str:
    """The question; for `-`, the text of standard input. Raises UsageError for a text that no question can be."""
    if question != "-":
        return question
    if sys.stdin is None:
        raise UsageError("standard input is closed: pipe the question into the command, or write it as an argument")
    raw = sys.stdin.buffer.read(_LONGEST + 1)
    if len(raw) > _LONGEST:
        raise UsageError(f"standard input has more than {_LONGEST:,} bytes: a question is shorter")
    return raw.decode("utf-8", errors="surrogateescape").strip()
