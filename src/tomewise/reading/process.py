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
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any, BinaryIO, cast

from tomewise.errors import MissingDependency, ReadingError
from tomewise.reading.bounds import Bounds, make_bound_error
from tomewise.reading.memory_limits import measure_process, must_be_watched
from tomewise.types import Document
from tomewise.types.place import as_plain_data, read_plain_data

LONGEST_REQUEST = 1 << 20  # bytes
_FIELDS = ("id", "text", "title", "source", "metadata", "body")
_START_SECONDS = 120.0  # limit on starting Python and importing a reader; usually one or two seconds
_LOOK_SECONDS = 0.1  # between two looks at the memory of a process that must be watched
OWN_MEMORY = 400 * 2**20  # bytes that it has before it opens a file, since its own count is not known
# So Ctrl-C reaches only this process, which then kills the worker.
_NEW_GROUP = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)  # on Windows only
_APART: dict[str, Any] = {"creationflags": _NEW_GROUP} if _NEW_GROUP else {"start_new_session": True}
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
        return tuple(map(read_document, reply["documents"]))

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
            self._worker = worker = self._worker or _Worker()
            send(worker.incoming, encode({"path": str(path), "format": format, "bounds": asdict(self.bounds)}))
            worker.receive(_START_SECONDS, len(encode(None)))  # the worker starts to read
        except (EOFError, OSError) as error:
            reason = "it took too long" if isinstance(error, TimeoutError) else str(error) or "it ended"
            raise ReadingError(f"{path} was not read, because the reader process did not start: {reason}") from None
        try:
            reply = worker.receive(self.bounds.seconds, self.bounds.reply_bytes, self.bounds.memory * 2**20)
            return cast(dict[str, Any], json.loads(reply))
        except MemoryError:
            raise make_bound_error(path, self.bounds, "memory") from None
        except TimeoutError:
            raise make_bound_error(path, self.bounds, "seconds") from None
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
    """The worker process and its pipes."""

    def __init__(self) -> None:
        paths = [path for path in sys.path if os.path.isabs(path)]
        self.process: subprocess.Popen[bytes] = subprocess.Popen(
            [sys.executable, "-P", "-c", _WORKER_CODE, *paths],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            **_APART,
        )
        self.incoming = cast(BinaryIO, self.process.stdin)
        self.outgoing = cast(BinaryIO, self.process.stdout)

    def receive(self, seconds: float, size: int, memory: int = 0) -> bytes:
        """The next message, of at most `size` bytes.

        If it does not come within `seconds`, kills the process and raises TimeoutError; and MemoryError if the process
        takes more than `memory` bytes, where the system leaves it to us to watch that. Raises EOFError if the process
        has ended, or if the message is longer.
        """
        arrived = Event()
        reasons: list[type[Exception]] = []
        watch = Thread(target=self._watch, args=(seconds, memory, arrived, reasons), daemon=True)
        watch.start()
        try:
            return receive(self.outgoing, size)
        except (EOFError, OSError):
            if reasons:
                raise reasons[0] from None
            raise
        finally:
            arrived.set()
            watch.join()  # it may be about to kill the process; then the next file needs to see that it ended

    def _watch(self, seconds: float, memory: int, arrived: Event, reasons: list[type[Exception]]) -> None:
        """Kill the process when it takes too long or too much, unless the message has arrived before."""
        is_watched = memory > 0 and must_be_watched()
        ends = time.monotonic() + seconds
        while not arrived.wait(min(_LOOK_SECONDS, seconds) if is_watched else seconds):
            if time.monotonic() >= ends:
                reasons.append(TimeoutError)
            elif is_watched and measure_process(self.process.pid) > memory + OWN_MEMORY:
                reasons.append(MemoryError)
            else:
                continue
            if not arrived.is_set():
                self.process.kill()
                self.process.wait()
            return

    def end(self) -> str:
        """Kill the process, unless it has ended by itself. Returns the signal or the exit code that ended it."""
        with suppress(OSError):  # what was not sent yet has no reader any more
            self.incoming.close()
        self.outgoing.close()
        try:
            code = self.process.wait(0.2)  # a process that has just crashed needs a moment to end
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def encode(message: object) -> bytes:
    """The line of a message."""
    return json.dumps(message, ensure_ascii=False).encode() + b"\n"


def send(pipe: BinaryIO, line: bytes) -> None:
    """Send the line of a message. Raises OSError if the other end is closed."""
    pipe.write(line)
    pipe.flush()


def receive(pipe: BinaryIO, most_bytes: int) -> bytes:
    """The line of the next message. Raises EOFError if the other end is closed, or if the line is longer."""
    line = pipe.readline(most_bytes)
    if not line.endswith(b"\n"):
        raise EOFError("the other end is closed, or sends too much")
    return line


def write_document(document: Document) -> dict[str, Any]:
    """A document in a reply."""
    # Only what a mark says is written: a table has a mark for each row.
    marks = [(start, as_plain_data(place)) for start, place in document.marks]
    return {**{name: getattr(document, name) for name in _FIELDS}, "marks": marks}


def read_document(fields: dict[str, Any]) -> Document:
    """The inverse of `write_document`."""
    marks = tuple((start, read_plain_data(place)) for start, place in fields.pop("marks"))
    return Document(**fields, marks=marks)
