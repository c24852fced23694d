"""Text of documents on a terminal. A module of its own, since what prints whole answers takes long to import."""

from __future__ import annotations

from rich import markup

from tomewise.terminal.cleaning import clean


def escape(text: str) -> str:
    """Text of a document for the terminal: its markup has no effect. Clean already here, so that its width is known."""
    return markup.escape(clean(text))


def count_noun(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
