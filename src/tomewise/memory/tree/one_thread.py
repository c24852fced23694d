"""Run the libraries below the clustering on one thread: faster for matrices this small, and the same sums each time."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from threading import Lock

numba_lock = Lock()  # Numba's workqueue layer aborts if two threads enter it


class _SharedLimit:
    """Holds BLAS to one thread from the first `enter` to the last `leave`."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._users = 0
        self._stack = ExitStack()

    def enter(self) -> None:
        import scipy.linalg  # noqa: F401  (brings a BLAS of its own, and only libraries that are loaded are limited)
        from threadpoolctl import threadpool_limits

        with self._lock:
            if not self._users:
                # threadpoolctl lets no other thread lift the limit than the one that set it. So neither may be that of
                # a caller: the first may end before the last.
                thread = self._stack.enter_context(ThreadPoolExecutor(1, "tomewise-blas"))
                limits = thread.submit(threadpool_limits, 1).result()
                self._stack.callback(lambda: thread.submit(limits.restore_original_limits).result())
            self._users += 1

    def leave(self) -> None:
        with self._lock:
            self._users -= 1
            if not self._users:
                self._stack.close()


_blas_limit = _SharedLimit()


@contextmanager
def use_one_blas_thread() -> Iterator[None]:
    """Run BLAS on one thread, which holds for the whole process, until the last of those who want it so has ended.

    Small matrices are many times slower on several threads (measured: 59 s instead of 3 s on two cores).
    """
    _blas_limit.enter()
    try:
        yield
    finally:
        _blas_limit.leave()
