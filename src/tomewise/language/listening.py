"""Hear a reply while it is written.

Whoever wants to hear sets a listener around an ask, and a model that streams looks it up. It is a context variable and
no argument of `ask`: the wrappers between the two (cache, budget, a model per role, ...) stay as they are, a model that
does not stream need not know of it, and a reply from the cache is simply not heard.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tomewise.types import In, Out, Role


class Listener(Protocol):
    """Hears the text of replies. The output that `ask` returns in the end counts, whatever was heard before."""

    def begin(self) -> None:
        """A reply begins. Any text of an earlier one (a failed attempt, a reply that must be repaired) is void."""

    def hear(self, text: str) -> None:
        """The next piece of the reply's text, as the model wrote it."""


_listening: ContextVar[tuple[str, Listener] | None] = ContextVar("tomewise_listening", default=None)


@contextmanager
def listen(role: Role[In, Out], listener: Listener) -> Iterator[None]:
    """Let `listener` hear the replies for this role that are written inside, also in tasks that are started there."""
    token = _listening.set((role.name, listener))
    try:
        yield
    finally:
        _listening.reset(token)


def find_listener(role: Role[In, Out]) -> Listener | None:
    """Who listens to the replies for this role, if anybody does."""
    name, listener = _listening.get() or ("", None)
    return listener if name == role.name else None
