"""Read files within bounds, in a separate process.

Documents come from anywhere. Reading a file of a few kilobytes can use gigabytes of memory, take many minutes, or
crash the process. So a separate process, which we can kill at any time, reads every file that must be parsed.

The messages to and from it are JSON, each on a line of its own: a request, null when its reader is loaded, the reply.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from threading import Lock, Thread
from typing import Any, BinaryIO, cast

from tomewise.errors import MissingDependency, ReadingError
from tomewise.reading.bounds import Bounds, Exceeded, make_bound_error
from tomewise.types import Document
from tomewise.types.place import read_marks

_START_SECONDS = 120.0  # limit on starting Python and importing a reader; usually one or two seconds
_LOOK_SECONDS = 0.1  # between two looks at the memory of a process that must be watched
_ENDED = "the other end is closed, or sends too much"
OWN_MEMORY = 400 * 2**20  # bytes that it has before it opens a file, since its own count is not known
# So Ctrl-C reaches only this process, which then kills the worker.
_APART: dict[str, Any] = {
    "start_new_session": True,  # Windows passes over it
    "creationflags": getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),  # 0 but on Windows
}
_OUT_OF_MEMORY = frozenset({"SIGABRT", "SIGTRAP"})  # so libraries in C++ end when they get no memory
# Not `-m`: Python would then import from the current folder too, and a stranger may have written the files there.
_WORKER_CODE = "import sys; sys.path[:] = sys.argv[1:]; from tomewise.reading.worker import main; main()"


class ReaderProcess:
    """Reads files within bounds, one after the other, in one worker process.

    The first file starts the process. If a file crashes it or exceeds a bound, the next file starts a new one. Use this
    class as a context manager. The end of the context kills the process, and so does `close`, which another thread
    may call while the process reads.
    """

    def __init__(self, bounds: Bounds | None = None) -> None:
        self.bounds = bounds or Bounds()
        self._busy = Lock()
        self._closed = False
        self._worker: _Worker | None = None

    def __enter__(self) -> ReaderProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read(self, path: Path, format: str) -> tuple[Document, ...]:
        """The documents of the file at a resolved path.

        Raises `ReadingError` for a file that its reader refuses or that exceeds a bound, and `MissingDependency` if the
        reader's libraries are not installed.
        """
        with self._busy:
            if self._closed:
                raise ReadingError(f"{path} was not read: reading was stopped")
            try:
                reply = self._ask(path, format)
            except BaseException:  # even Ctrl-C: the worker may still send its reply, and the next file must not get it
                self._end_worker()
                raise
            if reply["failure"] == "ended":
                self._end_worker()
        if reply["failure"]:
            raise (MissingDependency if reply["failure"] == "missing" else ReadingError)(reply["message"])
        return tuple(Document(**{**fields, "marks": read_marks(fields["marks"])}) for fields in reply["documents"])

    def close(self) -> None:
        """Kill the process. If it is reading a file, the call of `read` raises `ReadingError`."""
        self._closed = True
        while not self._busy.acquire(timeout=0.05):
            if worker := self._worker:
                worker.process.kill()
        try:
            self._end_worker()
        finally:
            self._busy.release()

    def _ask(self, path: Path, format: str) -> dict[str, Any]:
        """The reply of the worker, see `reading.worker`."""
        try:
            if self._worker and self._worker.process.poll() is not None:  # it ended after the last file
                self._end_worker()
            self._worker = worker = self._worker or _Worker(self.bounds.reply_bytes)
            send(worker.incoming, {"path": str(path), "format": format, "bounds": asdict(self.bounds)})
            if failed := worker.receive(_START_SECONDS):  # else the worker starts to read
                return cast(dict[str, Any], failed)
        except (EOFError, OSError, Exceeded) as error:
            reason = "it took too long" if isinstance(error, Exceeded) else str(error) or "it ended"
            raise ReadingError(f"{path} was not read, because the reader process did not start: {reason}") from None
        try:
            return cast(dict[str, Any], worker.receive(self.bounds.seconds, self.bounds.memory * 2**20))
        except Exceeded as error:
            raise make_bound_error(path, self.bounds, str(error)) from None
        except (EOFError, OSError):
            exit_reason = self._end_worker()
            if exit_reason in _OUT_OF_MEMORY:
                before = f"crashed its reader ({exit_reason}), probably because it "
                raise make_bound_error(path, self.bounds, "memory", before) from None
            raise ReadingError(f"{path} crashed its reader ({exit_reason}): repair it, or leave it out") from None

    def _end_worker(self) -> str:
        """Returns how the process ended, or nothing if there was none."""
        worker, self._worker = self._worker, None
        return worker.end() if worker else ""


class _Worker:
    """The worker process, with a thread that reads its messages of at most `most_bytes` when they are asked for."""

    def __init__(self, most_bytes: int) -> None:
        paths = [path for path in sys.path if os.path.isabs(path)]
        self.process: subprocess.Popen[bytes] = subprocess.Popen(
            [sys.executable, "-P", "-c", _WORKER_CODE, *paths],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            **_APART,
        )
        self.incoming = cast(BinaryIO, self.process.stdin)
        self._outgoing = cast(BinaryIO, self.process.stdout)
        self._most_bytes = most_bytes
        self._listener: Thread | None = None

    def _listen(self) -> Future[bytes]:
        """The next line. A daemon thread waits for it, so that a program can end meanwhile."""
        arriving: Future[bytes] = Future()

        def read() -> None:
            try:
                arriving.set_result(self._outgoing.readline(self._most_bytes))
            except (OSError, ValueError) as error:
                arriving.set_exception(error)

        self._listener = Thread(target=read, daemon=True)
        self._listener.start()
        return arriving

    def receive(self, seconds: float, memory: int = 0) -> Any:
        """The next message.

        Raises Exceeded if it does not come within `seconds`, if it is too long, or if the process takes more than
        `memory` bytes, where the system leaves it to us to watch that. Raises EOFError if the process has ended.
        """
        is_watched = memory > 0 and must_be_watched()
        arriving = self._listen()
        ends = time.monotonic() + seconds
        while (left := ends - time.monotonic()) > 0:
            with suppress(TimeoutError):
                line = arriving.result(min(left, _LOOK_SECONDS) if is_watched else left)
                if line.endswith(b"\n"):
                    return json.loads(line)
                raise Exceeded("characters") if len(line) == self._most_bytes else EOFError(_ENDED)
            if is_watched and measure_process(self.process.pid) > memory + OWN_MEMORY:
                raise Exceeded("memory")
        raise Exceeded("seconds")

    def end(self) -> str:
        """Kill the process, unless it has ended by itself. Returns the signal or the exit code that ended it."""
        with suppress(OSError):  # what was not sent yet has no reader any more
            self.incoming.close()
        try:
            code = self.process.wait(0.2)  # a process that has just crashed needs a moment to end
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        if self._listener:
            self._listener.join()
        self._outgoing.close()
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def send(pipe: BinaryIO, message: object) -> None:
    """Send the line of a message. Raises OSError if the other end is closed."""
    pipe.write(json.dumps(message, ensure_ascii=False).encode() + b"\n")
    pipe.flush()


def must_be_watched(platform: str = sys.platform) -> bool:
    """Whether the process that asks watches the memory of a reader, since that cannot limit itself."""
    return platform not in ("linux", "win32")


def measure_process(process: int) -> int:
    """The bytes of memory that a process has, as `ps` says; 0 if it has ended."""
    ran = subprocess.run(["ps", "-o", "rss=", "-p", str(process)], capture_output=True, check=False)
    return int(ran.stdout) * 1024 if ran.stdout.strip().isdigit() else 0
