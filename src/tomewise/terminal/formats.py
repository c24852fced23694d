"""The list of formats that `tome add --list-formats` prints."""

from __future__ import annotations

from dataclasses import asdict

from tomewise.reading.formats import Format, list_formats
from tomewise.terminal.plain import escape
from tomewise.terminal.screen import console, print_json


def print_formats(as_json: bool) -> None:
    """Print each format with its suffixes, the places that citations name, and what it needs."""
    formats = list_formats()
    if as_json:
        print_json([_describe(format) for format in formats])
        return
    from rich.table import Table

    table = Table("format", "files", "citations name", "needs", box=None, pad_edge=False)
    for format in formats:
        needs = f"tomewise[{format.extra}]" if format.reader else format.extra
        suffixes = " ".join(format.suffixes)
        table.add_row(
            escape(format.name), escape(suffixes), escape(format.places), escape(needs if format.extra else "")
        )
    console().print(table)


def _describe(format: Format) -> dict[str, object]:
    fields = asdict(format)
    del fields["reader"]
    return fields
