"""The process that converts files: it runs readers within bounds on memory and characters.

The process that started it (`reading.process`) bounds the seconds, and may end this one at any time.
"""

from __future__ import annotations

import os
import re
import resource
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue

from tomewise.errors import MissingDependency, ReadingError
from tomewise.reading.decode import plain
from tomewise.reading.formats import Reader, load_reader
from tomewise.reading.messages import Failure, Reply, Request
from tomewise.types import Document

_STACK = 128 * 2**20  # bytes for nested elements: 300 of them are ordinary, and each takes several calls
_DEPTH = 20_000  # calls
_LATE = 30.0  # seconds after which a file is given up even if the process that asked is gone
_STATUS = Path("/proc/self/status")  # Linux alone
_DATA = re.compile(rb"^VmData:\s+(\d+) kB", re.MULTILINE)


class _TooLong(Exception):
    """The text of a file passed the bound on characters."""


def main(handle: int) -> None:
    """Serve requests from the connection with this file descriptor until its other end is closed."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    connection: Connection[bytes, bytes] = Connection(handle)
    requests: SimpleQueue[Request] = SimpleQueue()
    sys.setrecursionlimit(_DEPTH)
    threading.stack_size(_STACK)
    threading.Thread(target=_serve, args=(connection, requests), daemon=True).start()
    try:  # meanwhile this thread notices when the process that asks is gone
        while True:
            requests.put(Request.decode(connection.recv_bytes()))
    except (EOFError, OSError):
        os._exit(0)


def _serve(connection: Connection[bytes, bytes], requests: SimpleQueue[Request]) -> None:
    memory = _Memory()
    try:
        while True:
            _serve_one(connection, requests.get(), memory)
    finally:  # nobody must wait for a reply that will not come
        os._exit(1)


def _serve_one(connection: Connection[bytes, bytes], request: Request, memory: _Memory) -> None:
    try:
        with memory.uncounted():
            reader: Reader | MissingDependency = load_reader(request.format)
    except MissingDependency as error:
        reader = error
    connection.send_bytes(b"")  # from here on the seconds count
    connection.send_bytes(_reply(request, reader, memory).encode())


def _reply(request: Request, reader: Reader | MissingDependency, memory: _Memory) -> Reply:
    if isinstance(reader, MissingDependency):
        return Reply(failure="missing", message=str(reader))
    signal.setitimer(signal.ITIMER_REAL, request.bounds.seconds + _LATE)
    try:
        with memory.limited(request.bounds.memory):
            return Reply(documents=_read(reader, request))
    except ReadingError as error:
        failure: tuple[Failure, str] = ("refused", str(error))
    except _TooLong:
        failure = ("characters", "")
    except MemoryError:
        failure = ("memory", "")
    except Exception as error:  # noqa: BLE001 - a file must not end the folder, whatever its reader stumbles over
        failure = ("error", f"{type(error).__name__}: {' '.join(str(error).split())[:200]}")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return Reply(failure=failure[0], message=failure[1])


def _read(reader: Reader, request: Request) -> tuple[Document, ...]:
    documents: list[Document] = []
    left = request.bounds.characters
    for document in reader(Path(request.path)):
        left -= len(document.text) + len(document.title)
        if left < 0:
            raise _TooLong
        documents.append(replace(document, text=_clean(document.text), title=_clean(document.title)))
    return tuple(documents)


def _clean(text: str) -> str:
    # Fonts without a proper character map leave NUL and half surrogate pairs behind, which nothing can store.
    return plain(text.replace("\0", "")).encode("utf-8", "replace").decode()


class _Memory:
    """The memory of this process: readers may take so much beyond what was there before they opened a file.

    Counted are private writable pages (Linux, RLIMIT_DATA), not addresses: libraries reserve many more of these than
    they use. Elsewhere memory is not limited.
    """

    def __init__(self) -> None:
        self._base = _data_bytes()

    @contextmanager
    def uncounted(self) -> Iterator[None]:
        """What is taken here, such as by imports, counts for no file."""
        before = _data_bytes()
        yield
        self._base += _data_bytes() - before

    @contextmanager
    def limited(self, megabytes: int) -> Iterator[None]:
        """Let this much be taken. Raises MemoryError beyond."""
        soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
        wanted = self._base + megabytes * 2**20
        if self._base and (hard == resource.RLIM_INFINITY or wanted < hard):
            resource.setrlimit(resource.RLIMIT_DATA, (wanted, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _data_bytes() -> int:
    found = _DATA.search(_STATUS.read_bytes()) if _STATUS.exists() else None
    return int(found[1]) * 1024 if found else 0
