"""What a notebook shows: HTML of tables, and bars while something is under way.

Every text is escaped: documents and models may hold HTML. Colours are those of the notebook.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tomewise.types import Progress

_PAUSE = 0.1  # seconds between two pictures of the bars


def write_table(headings: Sequence[str], rows: Iterable[Sequence[object]], title: str = "") -> str:
    """A table of plain texts."""
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "".join(f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>" for row in rows)
    caption = f"<caption>{escape(title)}</caption>" if title else ""
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


# ---------------------------------------------------------------- bars


@contextmanager
def show_bars(on_progress: Callable[[Progress], None] | None) -> Iterator[Callable[[Progress], None]]:
    """The function that progress is reported to: the given one, else bars below the cell of a notebook, else nothing.

    The bars go away at the end.
    """
    display = None if on_progress else _find_display()
    if display is None:
        # The lambda is a frame of ours between a part and the caller's function, see `plugins.find_fault`.
        yield (lambda progress: on_progress(progress)) if on_progress else (lambda _: None)
        return
    bars = _Bars(display)
    try:
        yield bars.report
    finally:
        bars.close()


class _Bars:
    """A bar for each label, drawn anew at most ten times a second."""

    def __init__(self, display: Callable[..., Any]) -> None:
        self._handle = display(_make_html("<small>…</small>"), display_id=True)
        self._progress: dict[str, Progress] = {}
        self._began: dict[str, float] = {}
        self._drawn = 0.0
        self._note = ""

    def report(self, progress: Progress) -> None:
        """Show how far the work is."""
        now = time.monotonic()
        self._note = progress.note
        if not progress.note:
            self._progress[progress.label] = progress
        self._began.setdefault(progress.label, now)
        if now - self._drawn >= _PAUSE or progress.done == progress.total:
            self._drawn = now
            bars = "".join(self._write(each, now) for each in self._progress.values())
            self._handle.update(_make_html(f"{bars}<small>{escape(self._note)}</small>"))

    def close(self) -> None:
        """Take the bars away."""
        self._handle.update(_make_html(""))

    def _write(self, progress: Progress, now: float) -> str:
        count = f"{progress.done:,}" + (f" of {progress.total:,}" if progress.total else "")
        left = ""
        if 0 < progress.done < progress.total:
            seconds = (now - self._began[progress.label]) / progress.done * (progress.total - progress.done)
            left = f", {seconds:.0f} s left"
        extent = f' value="{progress.done}" max="{progress.total}"' if progress.total else ""
        return f"<div><progress{extent}></progress> <small>{escape(progress.label)}: {count}{left}</small></div>"


def _find_display() -> Callable[..., Any] | None:
    """The function that shows something in a notebook; None elsewhere, on the command line of IPython too."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if getattr(shell, "kernel", None) is None:
        return None
    display: Callable[..., Any] = import_module("IPython.display").display
    return display


def _make_html(text: str) -> Any:
    return import_module("IPython.display").HTML(text)
