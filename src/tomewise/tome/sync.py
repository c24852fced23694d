"""An event loop in a thread of its own, so that plain methods work wherever they are called from."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from tomewise.errors import UsageError

T = TypeVar("T")
_PATIENCE = 1.0  # seconds that work which was stopped may take to tidy up


class LoopThread:
    """Runs coroutines for callers that are not asynchronous, also inside a running event loop (a notebook).

    The thread begins with the first piece of work and ends with `stop`; work after that begins another.
    """

    def __init__(self) -> None:
        self._process = os.getpid()
        self._running: tuple[asyncio.AbstractEventLoop, threading.Thread] | None = None
        self._guard = threading.Lock()

    @property
    def used(self) -> bool:
        """Whether there is a thread to stop."""
        return self._running is not None and os.getpid() == self._process

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run to the end and return the result; an interrupt stops the work.

        Raises UsageError inside of the work itself, which would wait for its own end, and in a process that was forked
        off, where nobody would do the work.
        """
        if os.getpid() != self._process:
            work.close()
            raise UsageError("this process was forked from the one that opened the tome: open it anew in this one")
        if self._running is not None and threading.current_thread() is self._running[1]:
            work.close()
            raise UsageError("a callback cannot call a plain method of the tome that called it: note what it is told")
        future = asyncio.run_coroutine_threadsafe(work, self._loop())
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def stop(self) -> None:
        """End the thread; what is still running there is cancelled."""
        with self._guard:
            running, self._running = self._running, None
        if running is not None and os.getpid() == self._process:  # a fork has no such thread
            loop, thread = running
            loop.call_soon_threadsafe(loop.stop)
            thread.join(_PATIENCE)

    def _loop(self) -> asyncio.AbstractEventLoop:
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
        loop.run_forever()
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        # Threads that are still computing are not waited for, which is why this is no `asyncio.Runner`.
        loop.run_until_complete(asyncio.wait(left, timeout=_PATIENCE) if left else asyncio.sleep(0))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()
