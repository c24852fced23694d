"""What a notebook shows: HTML of tables and answers, and bars while something is under way.

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

from tomewise.outgoing import answer_models
from tomewise.place import describe_source

if TYPE_CHECKING:
    from tomewise.types import Answer, Citation, Progress

_AROUND = 120  # characters to show on either side of a quotation
_PAUSE = 0.1  # seconds between two pictures of the bars


def write_answer(answer: Answer) -> str:
    """The answer, and each quotation in its place: marked within the text around it."""
    if not answer.resolved:
        missing = answer.missing or "the evidence does not say"
        return f"<div><p><b>Not answered:</b> {escape(missing)}</p>{_write_origin(answer)}</div>"
    choice = f"{escape(answer.choice)}. " if answer.choice else ""
    notes = [f"Missing: {answer.missing}" if answer.missing else "", *answer_models.Answer.of(answer).list_remarks()]
    lines = "".join(f"<p>{escape(note)}</p>" for note in notes if note)
    quotations = "".join(f"<li>{_write_citation(citation, answer)}</li>" for citation in answer.citations)
    listed = f"<ol>{quotations}</ol>" if quotations else ""
    return f"<div><p><b>{choice}{escape(answer.text)}</b></p>{lines}{listed}{_write_origin(answer)}</div>"


def write_table(headings: Sequence[str], rows: Iterable[Sequence[object]], title: str = "") -> str:
    """A table of plain texts."""
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "".join(f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>" for row in rows)
    caption = f"<caption>{escape(title)}</caption>" if title else ""
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _write_citation(citation: Citation, answer: Answer) -> str:
    where = escape(describe_source(citation))
    before, after = _find_surroundings(citation, answer)
    return f"{escape(before)}<mark>{escape(citation.quote)}</mark>{escape(after)} <small>{where}</small>"


def _find_surroundings(citation: Citation, answer: Answer) -> tuple[str, str]:
    """What stands before and after the quotation in the passage that it is from, if the answer holds its text."""
    for piece in answer.evidence:
        if piece.node == citation.passage and citation.quote in piece.text:
            before, _, after = piece.text.partition(citation.quote)
            start = before if len(before) <= _AROUND else f"…{before[-_AROUND:]}"
            end = after if len(after) <= _AROUND else f"{after[:_AROUND]}…"
            return start, end
    return "", ""


def _write_origin(answer: Answer) -> str:
    total = answer.usage.total
    calls = f"{total.calls} call{'' if total.calls == 1 else 's'}"
    return f"<p><small>{escape(' · '.join(filter(None, (answer.system, answer.model, calls))))}</small></p>"


# ---------------------------------------------------------------- bars


@contextmanager
def show_bars(on_progress: Callable[[Progress], None] | None) -> Iterator[Callable[[Progress], None]]:
    """The function that progress is reported to: the given one, else bars below the cell of a notebook, else nothing.

    The bars go away at the end.
    """
    display = None if on_progress else _find_display()
    if display is None:
        yield on_progress or (lambda _: None)
        return
    bars = _Bars(display)
    try:
        yield bars.report
    finally:
        bars.close()


class _Bars:
    """A bar for each label, drawn anew at most ten times a second."""

    def __init__(self, display: Callable[..., Any]) -> None:
        self._handle = display(_html("<small>…</small>"), display_id=True)
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
            self._handle.update(_html(f"{bars}<small>{escape(self._note)}</small>"))

    def close(self) -> None:
        """Take the bars away."""
        self._handle.update(_html(""))

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


def _html(text: str) -> Any:
    return import_module("IPython.display").HTML(text)
