"""How commands print: a console, and JSON for programs. `work` shows what happens meanwhile."""

from __future__ import annotations

import json
import os
import sys
import textwrap
from contextlib import suppress
from typing import TYPE_CHECKING

import typer

from tomewise.terminal.cleaning import clean, clean_json, find_raw

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_WIDE = 2000  # characters
_USUAL = 80  # columns of a terminal that does not say how many it has


def console(*, stderr: bool = False) -> Console:
    """A console of rich on standard output or standard error.

    On a terminal lines are wrapped between words. Programs and files get each line as it is.
    """
    from tomewise.terminal.clean_console import CleanConsole

    stream = find_raw(sys.stderr if stderr else sys.stdout)
    is_terminal = stream.isatty()
    width = None if is_terminal else _WIDE
    return CleanConsole(
        file=stream, stderr=stderr, soft_wrap=not is_terminal, highlight=False, emoji=False, width=width
    )


def escape(text: str) -> str:
    """Text of a document for the terminal: its markup has no effect. Clean already here, so that its width is known."""
    from rich import markup  # late, since every command waits for this file

    return markup.escape(clean(text))


def make_table(*headings: str) -> Table:
    """A table without lines, for people."""
    from rich.table import Table

    return Table(*headings, box=None, pad_edge=False, show_header=bool(headings))


def print_message(line: str) -> None:
    """Print one line of plain text on standard error, cleaned; on a terminal it is wrapped between words.

    Where nobody can read it, as in a log on a full disk, the work goes on.
    """
    line = clean(line)
    if sys.stderr.isatty():
        columns = os.get_terminal_size(sys.stderr.fileno()).columns or _USUAL
        line = textwrap.fill(line, columns, break_long_words=False, break_on_hyphens=False)
    with suppress(OSError):
        print(line, file=sys.stderr, flush=True)


def print_json(data: object) -> None:
    """Print one line of JSON: plain data, and nouns (see `types.plain`).

    What a terminal would obey is escaped in it, also for a pipe: it means the same.
    """
    from tomewise.types import write_plain  # late, since `--help` does without

    typer.echo(clean_json(json.dumps(write_plain(data), ensure_ascii=False)))
