"""Report the progress of steps that have no `report`: an estimate, or a computation in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from threading import get_ident

from tomewise.run import change_run, current_run
from tomewise.types import Progress, Report


@contextmanager
def watch_steps(report: Report) -> Iterator[None]:
    """Report the steps inside this context, also those of threads that start inside; all from this event loop."""
    loop, loop_thread = asyncio.get_running_loop(), get_ident()

    def tell(progress: Progress) -> None:
        if get_ident() == loop_thread:
            report(progress)
        else:
            loop.call_soon_threadsafe(report, progress)

    with change_run(on_progress=tell):
        yield


def report_step(label: str, done: int, total: int) -> None:
    """Report the progress of a step, if `watch_steps` is active."""
    current_run().on_progress(Progress(label=label, done=done, total=total))
