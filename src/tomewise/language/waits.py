"""Tell whoever watches a piece of work that a server asks to wait, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from tomewise.events import Waiting

_hear: ContextVar[Callable[[Waiting], None] | None] = ContextVar("tomewise_waits", default=None)


@contextmanager
def watch_waits(hear: Callable[[Waiting], None]) -> Iterator[None]:
    """Tell `hear` of each wait inside this context, also of tasks started inside; from their event loop."""
    token = _hear.set(hear)
    try:
        yield
    finally:
        _hear.reset(token)


def tell_wait(wait: Waiting) -> None:
    """Tell who watches, if somebody does."""
    if (hear := _hear.get()) is not None:
        hear(wait)
