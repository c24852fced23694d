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

from tomewise.place import describe_source
from tomewise.types.wording import list_remarks, summarize_lag

if TYPE_CHECKING:
    from tomewise.types import Answer, Progress, Quote

_PAUSE = 0.1  # seconds between two pictures of the bars
_AROUND = 120  # characters that are shown on either side of a quotation


def write_table(headings: Sequence[str], rows: Iterable[Sequence[object]], title: str = "") -> str:
    """A table of plain texts."""
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "".join(f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>" for row in rows)
    caption = f"<caption>{escape(title)}</caption>" if title else ""
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


# ---------------------------------------------------------------- an answer


def write_answer(answer: Answer) -> str:
    """The answer as HTML, with each quotation marked in the text around it."""
    remarks = "".join(f"<p>{escape(remark)}</p>" for remark in list_remarks(answer))
    quotes = [(statement, quote) for statement in answer.statements for quote in statement.quotes]
    lines = "".join(f"<li>{_write_quote(quote, statement.choice, answer)}</li>" for statement, quote in quotes)
    listed = f"<ol>{lines}</ol>" if quotes else ""
    lag = f"<p>{escape(summarize_lag(answer.lagging))}</p>" if answer.lagging else ""
    calls = f"{answer.cost.calls} call{'' if answer.cost.calls == 1 else 's'}"
    origin = f"<p><small>{escape(' · '.join(filter(None, (answer.system, answer.model, calls))))}</small></p>"
    if answer.only_quotes and quotes:
        return f"<div>{remarks}{listed}{lag}{origin}</div>"
    if not answer.resolved:
        missing = answer.missing or "the evidence does not say"
        return f"<div><p><b>Not answered:</b> {escape(missing)}</p>{lag}{origin}</div>"
    choice = f"{escape(answer.choice)}. " if answer.choice else ""
    missing = f"<p>Missing: {escape(answer.missing)}</p>" if answer.missing else ""
    return f"<div><p><b>{choice}{escape(answer.text)}</b></p>{missing}{remarks}{listed}{lag}{origin}</div>"


def _write_quote(quote: Quote, choice: str | None, answer: Answer) -> str:
    where = f"<small>{escape(describe_source(quote))}</small>"
    if not answer.only_quotes:
        before, after = _find_surroundings(quote, answer)
        return f"{escape(before)}<mark>{escape(quote.text)}</mark>{escape(after)} {where}"
    option = f" → {escape(choice)}" if choice else ""
    return f"{escape(quote.before)} <mark>{escape(quote.text)}</mark>{option} {escape(quote.after)} {where}"


def _find_surroundings(quote: Quote, answer: Answer) -> tuple[str, str]:
    """What stands before and after the quotation in the passage that it is from, if the answer holds its text."""
    for piece in answer.evidence:
        if piece.id == quote.passage and quote.text in piece.text:
            before, _, after = piece.text.partition(quote.text)
            start = before if len(before) <= _AROUND else f"…{before[-_AROUND:]}"
            end = after if len(after) <= _AROUND else f"{after[:_AROUND]}…"
            return start, end
    return "", ""


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
