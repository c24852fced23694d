"""The right to change a tome, which one has at a time."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from tomewise.errors import Locked

if TYPE_CHECKING:
    from tomewise.store.contract import Store

_Work: TypeAlias = tuple[int, str, str]  # by process too: a forked one does none of its parent's work

WRITER = "writer"  # the right to add, remove and build
_LONG = "build", "reembed"  # whose steps rest on each other, over many transactions
_GUARD = threading.Lock()
_WORKS: dict[_Work, str] = {}  # what this process does alone: a right does not say who has it


@contextmanager
def work_alone(store: Store, what: str) -> Iterator[None]:
    """Take the exclusive right to add, remove and build. Raises Locked at once if somebody else has it.

    `what` is a verb for the message, such as "build". Raises StoreError where the store can keep no right so long.
    """
    refusal = f"{store.address} is being written by another program: try to {what} again when it has finished"

    def refuse(current: str) -> str:
        return f"{store.address}: this program has another {current} under way: {what} when that has finished"

    with _note_work(store, WRITER, what, refuse), store.hold(WRITER, refusal, is_long=what in _LONG):
        yield


@contextmanager
def hold_session(store: Store, name: str) -> Iterator[None]:
    """Take the exclusive right to a session. Raises Locked at once if somebody else has it."""
    right = f"session {name}"
    refusal = f"the session {name!r} is answering another question: try again when it has finished"
    with _note_work(store, right, "question", lambda _: refusal), store.hold(right, refusal):
        yield


@contextmanager
def _note_work(store: Store, right: str, what: str, refuse: Callable[[str], str]) -> Iterator[None]:
    """Note what this process does with a right. Raises Locked if it does something with it already."""
    work = (os.getpid(), os.path.realpath(store.address), right)
    with _GUARD:
        if (current := _WORKS.get(work)) is not None:
            raise Locked(refuse(current))
        _WORKS[work] = what
    try:
        yield
    finally:
        with _GUARD:
            del _WORKS[work]
