"""What a terminal shows while a command works: how long, how far, the answer as it is written, and what went wrong.

It stands on standard error, and goes away when the work ends, fails or is interrupted. The first line comes at once:
open it before anything that takes long, imports included. Elsewhere than on a terminal it is one line a minute.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event as Ending
from threading import Thread
from typing import TYPE_CHECKING, Any

from tomewise.errors import describe_seconds
from tomewise.terminal.cleaning import clean, clean_streams
from tomewise.terminal.screen import console, print_message

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live

    from tomewise.types import Event, Progress

_FRAMES = 8  # a second
_BETWEEN_LINES = 60.0  # seconds, elsewhere than on a terminal
_NOTICE_SECONDS = 30.0  # how long a notice is shown
_DESCRIPTION = 30  # characters
_BAR = 20  # characters
_AROUND = 6  # lines of the terminal that are left free around a growing answer

_shown: list[Live] = []


class Work:
    """Shows one piece of work, on a console or as a line now and then. Threads may call it."""

    def __init__(self, label: str, out: Console | None) -> None:
        self.is_shown = out is not None
        self._label = clean(label)
        self._began = time.monotonic()
        self._out = out
        self._tasks: dict[str, Any] = {}
        self._steps: dict[str, str] = {}
        self._answer = ""
        self._notice = ""
        self._notice_ends = 0.0
        if out is not None:
            self._spinner, self._bars = _make_parts(out)

    def report(self, progress: Progress) -> None:
        """Show how far the work is: a bar for each label."""
        if progress.note:  # it comes as a log record too, which `notice` shows
            return
        if not self.is_shown:
            most = f" of {progress.total:,}" if progress.total else ""
            self._steps[progress.label] = f"{progress.label} {progress.done:,}{most}"
            return
        if progress.label not in self._tasks:
            self._tasks[progress.label] = self._bars.add_task(progress.label)
        self._bars.update(self._tasks[progress.label], completed=progress.done, total=progress.total or None)

    def hear(self, event: Event) -> None:
        """Show the parts of an answer."""
        from tomewise.events import is_event

        if is_event(event, "answer_part"):
            text = event.detail["text"]
            self._answer = text if event.detail["replace"] else self._answer + text

    def notice(self, text: str, seconds: float = _NOTICE_SECONDS) -> None:
        """Show one line for a while, such as that a request is tried again."""
        self._notice = text
        self._notice_ends = time.monotonic() + seconds

    def console(self) -> Console:
        """Where to print meanwhile: above what is shown, if standard output is this terminal too."""
        return self._out if self._out is not None and sys.stdout.isatty() else console()

    def render(self) -> RenderableType:
        """What is shown now."""
        from rich.console import Group
        from rich.text import Text

        if self._out is None:
            return ""
        self._spinner.update(text=Text(self._name_time()))
        lines: list[RenderableType] = [self._spinner]
        if self._holds_notice():
            lines.append(Text(f"  {clean(self._notice)}", style="yellow"))
        if self._tasks:
            lines.append(self._bars)
        if self._answer:
            text = Text(clean(self._answer), style="bold")
            wrapped = text.wrap(self._out, self._out.width)
            lines += wrapped[-max(1, self._out.height - _AROUND) :]
        return Group(*lines)

    def tell(self, ending: Ending) -> None:
        """Print how far the work is now and then, until it ends."""
        while not ending.wait(_BETWEEN_LINES):
            notice = [self._notice] if self._holds_notice() else []
            print_message(" · ".join([self._name_time(), *self._steps.values(), *notice]))

    def _name_time(self) -> str:
        return f"{self._label} · {describe_seconds(time.monotonic() - self._began)}"

    def _holds_notice(self) -> bool:
        return bool(self._notice) and time.monotonic() < self._notice_ends


@contextmanager
def show_work(label: str) -> Iterator[Work]:
    """Show that a piece of work is under way, until what is inside ends."""
    if not sys.stderr.isatty():
        work, ending = Work(label, None), Ending()
        Thread(target=work.tell, args=(ending,), daemon=True).start()
        with _pass_notices(work):
            try:
                yield work
            finally:
                ending.set()
        return
    from rich.live import Live

    out = console(stderr=True)
    work = Work(label, out)
    # What Python prints meanwhile goes above the live lines, if it goes to a terminal, and else to its file.
    live = Live(
        get_renderable=work.render,
        console=out,
        refresh_per_second=_FRAMES,
        transient=True,
        redirect_stdout=sys.stdout.isatty(),
    )
    # What goes above the live lines is read by Rich, which would take sequences in it for its own: clean it before.
    with _pass_notices(work), live, clean_streams():
        _shown.append(live)
        try:
            yield work
        finally:
            _shown.remove(live)


@contextmanager
def pause_work() -> Iterator[None]:
    """Take away what is shown while what is inside asks a question."""
    for live in _shown:
        live.stop()
    yield
    for live in _shown:
        live.start()


def clear_screen() -> None:
    """Take away what is shown, for a process that ends without its tidying up."""
    for live in _shown:
        live.stop()


@contextmanager
def _pass_notices(work: Work) -> Iterator[None]:
    """Pass what Tomewise logs inside, such as retries, to the work."""
    logger = logging.getLogger("tomewise")
    handler = _Notices(work)
    before = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


class _Notices(logging.Handler):
    """Passes the message of each record on; a warning is printed at once elsewhere than on a terminal."""

    def __init__(self, work: Work) -> None:
        super().__init__()
        self._work = work

    def emit(self, record: logging.LogRecord) -> None:
        """Pass on one message, and for how long it holds: a wait until it ends."""
        self._work.notice(record.getMessage(), max(_NOTICE_SECONDS, getattr(record, "seconds", 0.0)))
        if not self._work.is_shown and record.levelno >= logging.WARNING:
            print_message(record.getMessage())


def _make_parts(out: Console) -> tuple[Any, Any]:
    """The spinner and the bars, in signs that the terminal can show."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    from rich.spinner import Spinner
    from rich.table import Column

    description = Column(no_wrap=True, overflow="ellipsis", max_width=_DESCRIPTION)
    columns = (
        TextColumn("  {task.description}", markup=False, table_column=description),
        BarColumn(_BAR),
        MofNCompleteColumn(),
        TimeRemainingColumn(compact=True),
        TextColumn("left"),
    )
    spinner = Spinner("dots" if out.encoding.startswith("utf") else "line", style="green")
    return spinner, Progress(*columns, console=out, auto_refresh=False)
