"""The thread in which plain methods run their asynchronous twins, also where another event loop is running."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import wait
from typing import Any, TypeVar

from tomewise.errors import UsageError

T = TypeVar("T")
_LOOK_SECONDS = 0.5  # between two looks for a signal
_STOP_SECONDS = 1.0  # how long `stop` waits for cancelled work
_END_SECONDS = 60.0  # how long cancelled work may take in all: its last thread must end before its locks are released


class LoopThread:
    """Runs coroutines for callers that are not asynchronous, also inside a running event loop (in a notebook).

    The first coroutine starts the thread, and `stop` ends it; a later coroutine starts a new thread.
    """

    def __init__(self) -> None:
        self._process = os.getpid()
        self._running: tuple[asyncio.AbstractEventLoop, threading.Thread] | None = None
        self._guard = threading.Lock()

    @property
    def runs(self) -> bool:
        """Whether there is a thread to stop."""
        return self._running is not None and os.getpid() == self._process

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run to the end and return the result; an interrupt cancels the work.

        Raises UsageError if the work itself calls this, because it would wait for its own end, and in a forked process,
        which does not have the thread.
        """
        if os.getpid() != self._process:
            work.close()
            raise UsageError("this process was forked from the one that opened the tome: open it again in this one")
        if self._running is not None and threading.current_thread() is self._running[1]:
            work.close()
            raise UsageError(
                "a callback cannot call a plain method of the tome that called it: store what it receives, "
                "and call the method afterwards"
            )
        future = asyncio.run_coroutine_threadsafe(work, self._start_loop())
        try:
            # A signal that comes just before the wait for a lock is not noticed before that ends: so it ends often.
            while not future.done():
                wait([future], _LOOK_SECONDS)
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def stop(self) -> None:
        """End the thread and cancel what still runs in it."""
        with self._guard:
            running, self._running = self._running, None
        if running is not None and os.getpid() == self._process:  # a forked process does not have the thread
            loop, thread = running
            loop.call_soon_threadsafe(loop.stop)
            thread.join(_STOP_SECONDS)

    def _start_loop(self) -> asyncio.AbstractEventLoop:
        """The running event loop; starts one if necessary."""
        with self._guard:
            if self._running is None:
                loop = asyncio.new_event_loop()
                thread = threading.Thread(target=_serve, args=(loop,), name="tomewise", daemon=True)
                self._running = (loop, thread)
                thread.start()
            return self._running[0]


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        _run_until_stopped(loop)
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        # Not `asyncio.Runner`: that would wait for threads that still compute.
        loop.run_until_complete(asyncio.wait(tasks, timeout=_END_SECONDS) if tasks else asyncio.sleep(0))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()


def _run_until_stopped(loop: asyncio.AbstractEventLoop) -> None:
    """Serve until `stop`. Without this an exit inside the work would end the loop, and its caller would wait forever.

    A callback exits so where it prints to a pipe that nobody reads any more: rich raises SystemExit. asyncio gives
    it to the task, and so to the caller, but also lets it leave the loop.
    """
    stopped = False
    while not stopped:
        with contextlib.suppress(SystemExit, KeyboardInterrupt):
            loop.run_forever()
            stopped = True
