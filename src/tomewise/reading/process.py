"""Files read within bounds, in a process of their own.

Documents come from anywhere. A few kilobytes of them can take gigabytes, minutes, or the whole process with them, so
that whatever has to be parsed is read by a process that can be ended at any time.
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

_STARTING = 120.0  # seconds to start Python and import a reader, which takes one or two
_CHARACTER_BYTES = 6  # bytes that a character takes at most in a reply
_OTHER_BYTES = 2**20  # bytes of a reply beyond its text
# Not `-m`, nor a start in which the current folder stands among the places to import from: it may be a stranger's.
_MAIN = "import sys; sys.path[:] = sys.argv[2:]; from tomewise.reading.worker import main; main(int(sys.argv[1]))"


class ReaderProcess:
    """Reads files within bounds: one process serves many files in turn.

    It is started by the first file and replaced after one that it could not survive. Use it as a context: at the end,
    or at `close` from another thread, the process is killed, also while it reads.
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

        Raises `ReadingError` for a file that its reader refuses or that passes a bound, `MissingDependency` when the
        reader's libraries are not installed.
        """
        with self._busy:
            if self._closed:
                raise ReadingError(f"{path} was not read: reading was stopped")
            try:
                reply = self._ask(path, format)
            except BaseException:  # an interrupt as well: the reply that is under way belongs to no later file
                self._end()
                raise
            if reply.failure not in ("", "refused", "missing"):
                self._end()
        if reply.failure:
            raise self._error(path, reply)
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
            if self._worker and not self._worker.runs():  # ended from outside since the last file
                self._end()
            self._worker = worker = self._worker or _Worker()
            worker.send(Request(str(path), format, self._bounds))
            worker.receive(_STARTING, 0)
        except (EOFError, OSError) as error:
            reason = "it took too long" if isinstance(error, TimeoutError) else str(error) or "it ended"
            raise ReadingError(f"{path} was not read, for the process that reads did not start: {reason}") from None
        try:
            return Reply.decode(
                worker.receive(self._bounds.seconds, _CHARACTER_BYTES * self._bounds.characters + _OTHER_BYTES)
            )
        except TimeoutError:
            raise self._beyond(path, f"took longer than {self._bounds.seconds:g} seconds to read", "seconds") from None
        except (EOFError, OSError):
            end = self._end()
            raise ReadingError(f"{path} crashed its reader ({end}): repair it, or leave it out") from None

    def _end(self) -> str:
        worker, self._worker = self._worker, None
        return worker.end() if worker else ""

    def _error(self, path: Path, reply: Reply) -> ReadingError | MissingDependency:
        match reply.failure:
            case "missing":
                return MissingDependency(reply.message)
            case "memory":
                return self._beyond(path, f"takes more than {self._bounds.memory:,} MB of memory to read", "memory")
            case "characters":
                limit = f"{self._bounds.characters:,}"
                return self._beyond(path, f"holds more than {limit} characters of text", "characters")
            case "error":
                return ReadingError(f"{path} could not be read ({reply.message}): repair it, or leave it out")
        return ReadingError(reply.message)

    def _beyond(self, path: Path, what: str, bound: str) -> ReadingError:
        return ReadingError(f"{path} {what}: raise the setting `read_{bound}`, or leave it out")


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
                start_new_session=True,  # Ctrl-C is for us, who kill it then
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
        """The next message. Raises TimeoutError, after which the process is dead, and EOFError when it ended."""
        late = Event()

        def give_up() -> None:
            late.set()
            self.kill()

        timer = Timer(seconds, give_up)
        timer.daemon = True
        timer.start()
        try:
            return self._connection.recv_bytes(size)
        except (EOFError, OSError):
            if late.is_set():
                raise TimeoutError from None
            raise
        finally:
            timer.cancel()

    def runs(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        self._process.kill()

    def end(self) -> str:
        """Kill the process unless it ended by itself, and say how it ended."""
        self._connection.close()
        try:
            code = self._process.wait(0.2)  # a process that has just crashed
        except subprocess.TimeoutExpired:
            self.kill()
            code = self._process.wait()
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"
