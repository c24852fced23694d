"""The right to change a tome, which one has at a time."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, TypeAlias

from tomewise.errors import Locked

if TYPE_CHECKING:
    from tomewise.store.contract import Store

_Work: TypeAlias = tuple[int, str]  # by process too: a forked one does none of its parent's work

WRITER = "writer"  # the right to add, remove and build
_GUARD = threading.Lock()
_WORKS: dict[_Work, str] = {}  # what this process does alone: a right does not say who has it


@contextmanager
def work_alone(store: Store, what: str) -> Iterator[None]:
    """Take the exclusive right to add, remove and build. Raises Locked at once if somebody else has it.

    `what` is a verb for the message, such as "build".
    """
    work = (os.getpid(), os.path.realpath(store.address))
    with _GUARD:
        if (current := _WORKS.get(work)) is None:
            _WORKS[work] = what
    if current is not None:
        raise Locked(f"{store.address}: this program has another {current} under way: {what} when that has finished")
    refusal = f"{store.address} is being written by another program: try to {what} again when it has finished"
    try:
        with store.hold(WRITER, refusal):
            yield
    finally:
        with _GUARD:
            del _WORKS[work]


def hold_session(store: Store, name: str) -> AbstractContextManager[None]:
    """Take the exclusive right to a session. Raises Locked at once if somebody else has it."""
    refusal = f"the session {name!r} is answering another question: try again when it has finished"
    return store.hold(f"session {name}", refusal)
