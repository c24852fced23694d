"""Read files within bounds, in a separate process.

Documents come from anywhere. A file of a few kilobytes can use gigabytes of memory, run for minutes, or crash its
process. So every file that must be parsed is read by a separate process that can be killed at any time.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from multiprocessing import Pipe
from pathlib import Path
from threading import Event, Lock, Timer
from typing import TYPE_CHECKING, Any

from tomewise.errors import MissingDependency, ReadingError
from tomewise.reading.bounds import Bounds
from tomewise.reading.messages import Reply, Request

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from tomewise.types import Document

_START_SECONDS = 120.0  # limit on starting Python and importing a reader; usually one or two seconds
_CHARACTER_BYTES = 6  # most bytes of a character in a reply
_OVERHEAD_BYTES = 2**20  # most bytes of a reply besides its text
# Not `-m`: it would put the current folder, which may come from a stranger, among the places to import from.
_MAIN = "import sys; sys.path[:] = sys.argv[2:]; from tomewise.reading.worker import main; main(int(sys.argv[1]))"


class ReaderProcess:
    """Reads files within bounds, one after the other, in one worker process.

    The first file starts the process; after a crash or a passed bound the next file starts a new one. Use this class
    as a context manager. Its end, or `close` from another thread, kills the process even while it reads.
    """

    def __init__(self, bounds: Bounds | None = None) -> None:
        self._bounds = bounds or Bounds()
        self._busy = Lock()
        self._closed = False
        self._worker: _Worker | None = None

    def __enter__(self) -> ReaderProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read(self, path: Path, format: str) -> tuple[Document, ...]:
        """The documents of the file at a resolved path.

        Raises `ReadingError` for a file that its reader refuses or that passes a bound, and `MissingDependency` if the
        reader's libraries are not installed.
        """
        with self._busy:
            if self._closed:
                raise ReadingError(f"{path} was not read: reading was stopped")
            try:
                reply = self._ask(path, format)
            except BaseException:  # also an interrupt: the next file must not receive the reply to this one
                self._end()
                raise
            if reply.failure not in ("", "refused", "missing"):
                self._end()
        if reply.failure:
            raise self._as_error(path, reply)
        return reply.documents

    def close(self) -> None:
        """Kill the process; a file that is being read raises `ReadingError`."""
        self._closed = True
        while not self._busy.acquire(timeout=0.05):
            if worker := self._worker:
                worker.kill()
        try:
            self._end()
        finally:
            self._busy.release()

    def _ask(self, path: Path, format: str) -> Reply:
        try:
            if self._worker and not self._worker.runs():  # something else ended it since the last file
                self._end()
            self._worker = worker = self._worker or _Worker()
            worker.send(Request(str(path), format, self._bounds))
            worker.receive(_START_SECONDS, 0)
        except (EOFError, OSError) as error:
            reason = "it took too long" if isinstance(error, TimeoutError) else str(error) or "it ended"
            raise ReadingError(f"{path} was not read, because the reader process did not start: {reason}") from None
        try:
            return Reply.decode(
                worker.receive(self._bounds.seconds, _CHARACTER_BYTES * self._bounds.characters + _OVERHEAD_BYTES)
            )
        except TimeoutError:
            reason = f"took longer than {self._bounds.seconds:g} seconds to read"
            raise self._bound_error(path, reason, "seconds") from None
        except (EOFError, OSError):
            end = self._end()
            raise ReadingError(f"{path} crashed its reader ({end}): repair it, or leave it out") from None

    def _end(self) -> str:
        worker, self._worker = self._worker, None
        return worker.end() if worker else ""

    def _as_error(self, path: Path, reply: Reply) -> ReadingError | MissingDependency:
        match reply.failure:
            case "missing":
                return MissingDependency(reply.message)
            case "memory":
                return self._bound_error(
                    path, f"takes more than {self._bounds.memory:,} MB of memory to read", "memory"
                )
            case "characters":
                limit = f"{self._bounds.characters:,}"
                return self._bound_error(path, f"holds more than {limit} characters of text", "characters")
            case "error":
                return ReadingError(f"{path} could not be read ({reply.message}): repair it, or leave it out")
        return ReadingError(reply.message)

    def _bound_error(self, path: Path, reason: str, bound: str) -> ReadingError:
        return ReadingError(f"{path} {reason}: raise the setting `read_{bound}`, or leave it out")


class _Worker:
    """The process, and the connection to it."""

    def __init__(self) -> None:
        ours, theirs = Pipe()
        paths = [place for place in sys.path if os.path.isabs(place)]
        try:
            self._process: subprocess.Popen[bytes] = subprocess.Popen(
                [sys.executable, "-P", "-c", _MAIN, str(theirs.fileno()), *paths],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # so Ctrl-C reaches only this process, which then kills the worker
            )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        self._connection: Connection[Any, Any] = ours

    def send(self, request: Request) -> None:
        self._connection.send_bytes(request.encode())

    def receive(self, seconds: float, size: int) -> bytes:
        """The next message. Raises TimeoutError after killing the process, and EOFError if the process has ended."""
        timed_out = Event()

        def give_up() -> None:
            timed_out.set()
            self.kill()

        timer = Timer(seconds, give_up)
        timer.daemon = True
        timer.start()
        try:
            return self._connection.recv_bytes(size)
        except (EOFError, OSError):
            if timed_out.is_set():
                raise TimeoutError from None
            raise
        finally:
            timer.cancel()

    def runs(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        self._process.kill()

    def end(self) -> str:
        """Kill the process unless it ended by itself. Returns how it ended: a signal or an exit code."""
        self._connection.close()
        try:
            code = self._process.wait(0.2)  # long enough for a process that has just crashed
        except subprocess.TimeoutExpired:
            self.kill()
            code = self._process.wait()
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"
