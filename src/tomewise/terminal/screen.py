"""How commands print: a console, a progress bar, JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from tomewise.types import Progress

_WIDE = 2000  # characters


def console(*, stderr: bool = False) -> Console:
    """A console of rich on standard output or standard error."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _WIDE  # programs and files get unwrapped lines
    return Console(stderr=stderr, soft_wrap=True, highlight=False, emoji=False, width=width)


@contextmanager
def show_progress() -> Iterator[Callable[[Progress], None]]:
    """A bar on the terminal for each label of the progress that is reported to the function."""
    from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    stderr_console = console(stderr=True)
    with Bars(*columns, console=stderr_console, transient=True, disable=not stderr_console.is_terminal) as bars:
        tasks: dict[str, Any] = {}

        def report(progress: Progress) -> None:
            if progress.label not in tasks:
                tasks[progress.label] = bars.add_task(progress.label)
            bars.update(tasks[progress.label], completed=progress.done, total=progress.total or None)

        yield report


@contextmanager
def show_status(text: str) -> Iterator[None]:
    """A spinner with a text while the work inside runs, on terminals alone."""
    with console(stderr=True).status(text) if sys.stderr.isatty() else nullcontext():
        yield


def print_json(data: object) -> None:
    """Print one line of JSON."""
    typer.echo(json.dumps(data, ensure_ascii=False))
