"""Tell whoever watches a piece of work that a server asks to wait, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

WAITING = "waiting"  # the name of the event


@dataclass(frozen=True, slots=True)
class Wait:
    """A wait before a request is tried again, in seconds. `asked` is how long the server asks to wait."""

    seconds: float
    asked: float
    reason: str

    def __str__(self) -> str:
        return f"waiting {self.seconds:.0f} s, since the server asks for {self.asked:.0f} s: {self.reason}"


_hear: ContextVar[Callable[[Wait], None] | None] = ContextVar("tomewise_waits", default=None)


@contextmanager
def watch_waits(hear: Callable[[Wait], None]) -> Iterator[None]:
    """Tell `hear` of each wait inside this context, also of tasks started inside; from their event loop."""
    token = _hear.set(hear)
    try:
        yield
    finally:
        _hear.reset(token)


def tell_wait(wait: Wait) -> None:
    """Tell who watches, if somebody does."""
    if (hear := _hear.get()) is not None:
        hear(wait)
