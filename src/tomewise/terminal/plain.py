"""Text of documents on a terminal. A module of its own, since what prints whole answers takes long to import."""

from __future__ import annotations

from rich import markup

_CONTROLS = dict.fromkeys((*range(9), *range(11, 32), *range(127, 160)), 65533)


def escape(text: str) -> str:
    """Text of a document for the terminal: its markup and control characters have no effect."""
    return markup.escape(neutralise(text))


def neutralise(text: str) -> str:
    """Text whose control characters have no effect."""
    return text.translate(_CONTROLS)


def name_document(document: str) -> str:
    """The short name of a document without a title: the last part of a path, but an address as it is."""
    return document if "://" in document else document.rsplit("/", 1)[-1]
