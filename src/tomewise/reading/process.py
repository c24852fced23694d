"""Read files within bounds, in a process of its own.

Documents come from anywhere. Reading a file of a few kilobytes can use gigabytes of memory, take many minutes, or
crash the process. So a worker process, which we can kill at any time, reads every file that must be parsed. It limits
its own memory and the characters; the process that asks limits the seconds.

The messages to and from it are JSON, each on a line of its own: a request, null when its reader is loaded, the reply.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from itertools import accumulate, pairwise
from pathlib import Path
from queue import SimpleQueue
from typing import Any, BinaryIO, cast

from tomewise.errors import MissingDependency, ReadingError, UsageError, describe_fault
from tomewise.plugins import find_fault, list_names
from tomewise.reading.decode import EmptySource, find_codec, join_words, state_encoding, unify_newlines
from tomewise.reading.formats import SCAN, Reader, Scanned, load_reader
from tomewise.reading.metadata import cut_document
from tomewise.types import Document, Place
from tomewise.types.place import read_marks

_BYTES_PER_CHARACTER = 4  # at most, in every encoding that is read
_REPLY_BYTES_PER_CHARACTER = 6  # at most, as JSON writes it
_REPLY_OVERHEAD = 2**20  # bytes of a reply without its text
# What a source does that exceeds a bound.
LIMITS = {
    "seconds": "took longer than {:g} seconds to read",
    "memory": "takes more than {:,} MB of memory to read",
    "characters": "holds more than {:,} characters of text",
    "documents": "holds more than {:,} documents",
}
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
_WORKER_CODE = "import sys; sys.path[:] = sys.argv[1:]; from tomewise.reading.process import main; main()"
_STACK_BYTES = 128 * 2**20  # for nested elements: a page may nest 300 of them, and each needs several calls
_MAX_DEPTH = 20_000  # nested calls
_EXTRA_SECONDS = 30.0  # added to the limit on a file, for the case that the asking process has ended
_STATUS = Path("/proc/self/status")
_DATA = re.compile(rb"^VmData:\s+(\d+) kB", re.MULTILINE)


# ---------------------------------------------------------------- bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Limits on converting one file, since a few kilobytes can unpack to gigabytes of text, and its stated encoding.

    `seconds` is wall time. `memory` is in megabytes, added to what the reader uses before it opens the file.
    `characters` is the length of the text. `documents` are the messages of a mailbox or the rows of JSON Lines.
    `encoding` is that of a file of text that is not UTF-8; empty: what it declares, or a guess. Raises UsageError for a
    limit that is not positive and for an unknown encoding.
    """

    seconds: float = 300.0  # a PDF takes some milliseconds a page
    memory: int = 1024
    characters: int = 50_000_000
    documents: int = 100_000  # each takes a few milliseconds to store, however short it is
    encoding: str = ""

    def __post_init__(self) -> None:
        for name in LIMITS:
            value = getattr(self, name)
            if not 0 < value < float("inf"):
                raise UsageError(f"read_{name} is {value!r}: give a number above 0")
        if self.encoding and find_codec(self.encoding) is None:
            raise UsageError(f"the encoding {self.encoding!r} is unknown: name one such as cp1252 or utf-16")

    @property
    def bytes(self) -> int:
        """The most bytes that plain text of so many characters can have."""
        return _BYTES_PER_CHARACTER * self.characters

    @property
    def reply_bytes(self) -> int:
        """The most bytes that a reply of the reader process has."""
        return _REPLY_BYTES_PER_CHARACTER * self.characters + _REPLY_OVERHEAD

    @classmethod
    def of(cls, **limits: Any) -> Bounds:
        """Bounds by their names, in which None means the default."""
        return cls(**{name: value for name, value in limits.items() if value is not None})


class Exceeded(Exception):
    """A file exceeds a bound, whose name is the argument."""


def open_within(path: Path, bounds: Bounds) -> BinaryIO:
    """Open a file of plain text. Raises `ReadingError` if it has more bytes than the bounds allow."""
    if path.stat().st_size > bounds.bytes:
        raise make_bound_error(path, bounds, "characters")
    return path.open("rb")


def make_bound_error(name: Path | str, bounds: Bounds, bound: str, before: str = "") -> ReadingError:
    """The error for a source that exceeds the bound of this name. `before` says what happened."""
    excess = LIMITS[bound].format(getattr(bounds, bound))
    return ReadingError(f"{name} {before}{excess}: raise the setting `read_{bound}`, or leave it out")


def make_locked_error(path: Path) -> ReadingError:
    """The error for a file that is encrypted with a password."""
    return ReadingError(f"{path} needs a password, because it is encrypted: save a copy without it, or leave it out")


def make_damage_error(path: Path, reason: Exception | str, remedy: str = "repair it, or leave it out") -> ReadingError:
    """The error for a file that its reader cannot convert."""
    words = describe_error(reason) if isinstance(reason, Exception) else reason
    return ReadingError(f"{path} could not be converted: {words}; {remedy}")


def describe_error(error: Exception) -> str:
    """What an error says, in one short line; its type if it says nothing."""
    return join_words(str(error))[:200] or type(error).__name__


# ---------------------------------------------------------------- the process that asks


class ReaderProcess:
    """Reads files within bounds, one after the other, in one worker process.

    The first file starts the process. If a file crashes it or exceeds a bound, the next file starts a new one. Use this
    class as a context manager. The end of the context kills the process, and so does `close`, which another thread
    may call while the process reads.
    """

    def __init__(self, bounds: Bounds | None = None) -> None:
        self.bounds = bounds or Bounds()
        self._busy = threading.Lock()
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
            kind = {"missing": MissingDependency, "empty": EmptySource}.get(reply["failure"], ReadingError)
            raise kind(reply["message"])
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
        """The reply of the worker, see `_answer`."""
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
        self._listener: threading.Thread | None = None

    def _listen(self) -> Future[bytes]:
        """The next line. A daemon thread waits for it, so that a program can end meanwhile."""
        arriving: Future[bytes] = Future()

        def read() -> None:
            try:
                arriving.set_result(self._outgoing.readline(self._most_bytes))
            except (OSError, ValueError) as error:
                arriving.set_exception(error)

        self._listener = threading.Thread(target=read, daemon=True)
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
    return platform != "linux"


def measure_process(process: int, platform: str = sys.platform) -> int:
    """The bytes of memory that a process has, as `ps` says, or `tasklist` on Windows; 0 if it has ended."""
    command = ["ps", "-o", "rss=", "-p", str(process)]
    if platform == "win32":
        command = ["tasklist", "/nh", "/fo", "csv", "/fi", f"pid eq {process}"]
    listed = subprocess.run(command, capture_output=True, check=False).stdout  # the last of its fields is "12,345 K"
    kilobytes = bytes(each for each in listed.rpartition(b'",')[2] if each in b"0123456789")
    return int(kilobytes or 0) * 1024


# ---------------------------------------------------------------- the worker


def main() -> None:
    """Serve the requests that arrive at standard input until its other end is closed; replies go to standard output.

    What libraries read and write there goes nowhere.
    """
    if hasattr(signal, "SIGALRM"):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
    incoming, outgoing = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1):
        os.dup2(nowhere, number)
    requests: SimpleQueue[bytes] = SimpleQueue()
    sys.setrecursionlimit(_MAX_DEPTH)
    threading.stack_size(_STACK_BYTES)
    threading.Thread(target=_serve, args=(outgoing, requests), daemon=True).start()
    try:
        for line in incoming:  # this thread receives requests, and so notices when the asking process ends
            requests.put(line)
    finally:
        os._exit(0)


def _serve(outgoing: BinaryIO, requests: SimpleQueue[bytes]) -> None:
    memory = MemoryLimit()
    try:
        while True:
            request = json.loads(requests.get())
            bounds = Bounds(**request["bounds"])
            state_encoding(bounds.encoding)
            send(outgoing, _answer(outgoing, request["path"], request["format"], bounds, memory))
    finally:  # the process that asks must not wait for a reply that never comes
        os._exit(1)


def _answer(outgoing: BinaryIO, path: str, format: str, bounds: Bounds, memory: MemoryLimit) -> dict[str, Any]:
    """The documents of a file, or a kind of failure: `missing`, `empty`, `refused`, or `ended`, and what to say of it.

    After a file that `ended` its reading, the worker is replaced.
    """
    problem: object
    try:
        with memory.exclude():
            reader = load_reader(format)
        send(outgoing, None)  # the limit on seconds starts here
        try:
            documents = _read(reader, path, bounds, memory)
        except Scanned:
            if SCAN not in list_names("readers"):
                raise
            with memory.exclude():
                reader = load_reader(SCAN)
            documents = _read(reader, path, bounds, memory)
        written = [{**document.to_dict(), "body": document.body} for document in documents]
        return {"documents": written, "failure": ""}
    except MissingDependency as error:
        failure, problem = "missing", error
    except Exceeded as error:
        failure, problem = "ended", make_bound_error(path, bounds, str(error))
    except EmptySource as error:
        failure, problem = "empty", error
    except ReadingError as error:
        failure, problem = "refused", error
    except MemoryError:
        failure, problem = "ended", make_bound_error(path, bounds, "memory")
    except Exception as error:  # noqa: BLE001 - whatever error a file causes, the next files are read
        what = describe_fault(error)
        what = f"{fault.part} failed: {what}" if (fault := find_fault(error)) else what
        failure, problem = "ended", f"{path} could not be read ({what}): repair it, or leave it out"
    return {"failure": failure, "message": str(problem)}


def _read(reader: Reader, path: str, bounds: Bounds, memory: MemoryLimit) -> tuple[Document, ...]:
    documents: list[Document] = []
    left = bounds.characters
    with end_after(bounds.seconds + _EXTRA_SECONDS), memory.limit(bounds.memory):
        for document in reader(Path(path)):
            left -= len(document.text) + len(document.title)
            if left < 0:
                raise Exceeded("characters")
            if len(documents) == bounds.documents:
                raise Exceeded("documents")
            documents.append(_clean_document(cut_document(document)))
    return tuple(documents)


def _clean_document(document: Document) -> Document:
    """The document with a text that a store can hold, and its marks at the same places in that text."""
    starts = [start for start, _ in document.marks]
    pieces = [_clean_text(document.text[a:b]) for a, b in pairwise([0, *starts, len(document.text)])]
    lengths = accumulate(map(len, pieces))
    marks = tuple((start, _clean_place(place)) for start, (_, place) in zip(lengths, document.marks, strict=False))
    metadata = {_clean_text(name): _clean_value(value) for name, value in document.metadata.items()}
    text, title, body = "".join(pieces), _clean_text(document.title), len(_clean_text(document.text[: document.body]))
    return replace(document, text=text, title=title, metadata=metadata, marks=marks, body=body)


def _clean_value(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return list(map(_clean_value, value))
    return _clean_text(value) if isinstance(value, str) else value


def _clean_place(place: Place) -> Place:
    chapter = tuple(map(_clean_text, place.chapter))
    return replace(place, chapter=chapter, time=_clean_text(place.time), speaker=_clean_text(place.speaker))


def _clean_text(text: str) -> str:
    # Fonts without a proper character map give NUL and half surrogate pairs, which a store cannot hold.
    return unify_newlines(text.replace("\0", "")).encode("utf-8", "replace").decode()


@contextmanager
def end_after(seconds: float) -> Iterator[None]:
    """End this process if the code inside takes longer, in case that the asking process has ended."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        return
    timer = threading.Timer(seconds, os._exit, [1])  # on Windows; code that never lets other threads run outlives it
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


# ---------------------------------------------------------------- memory

# Linux counts private writable pages (RLIMIT_DATA) and not addresses, because libraries reserve many more addresses
# than they use. Where a process cannot limit itself so, the asking process watches how much memory the reader has, and
# kills it.


class MemoryLimit:
    """A limit on what readers may add to the memory that this process had in use before they opened a file."""

    def __init__(self, platform: str = sys.platform) -> None:
        self._is_enforced = not must_be_watched(platform)
        self._base = self._count()

    def _count(self) -> int:
        """The private writable memory of this process; 0 where it does not limit itself."""
        found = _DATA.search(_STATUS.read_bytes()) if self._is_enforced else None
        return int(found[1]) * 1024 if found else 0

    @contextmanager
    def exclude(self) -> Iterator[None]:
        """Memory that is taken inside this context, such as by imports, does not count for any file."""
        before = self._count()
        yield
        self._base += self._count() - before

    @contextmanager
    def limit(self, megabytes: int) -> Iterator[None]:
        """Let the code inside this context take so much memory; more raises MemoryError. A lower limit stays."""
        if not self._is_enforced:
            yield
            return
        import resource  # late, since not every system has it

        soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
        most = self._base + megabytes * 2**20
        resource.setrlimit(resource.RLIMIT_DATA, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
