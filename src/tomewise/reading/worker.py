"""The worker process that converts files: it runs readers within bounds on memory and characters.

The process that started it (`reading.process`) limits the seconds, and may kill this process at any time.
"""

from __future__ import annotations

import os
import re
import resource
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import accumulate, pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue

from tomewise.errors import MissingDependency, ReadingError
from tomewise.plugins import find_fault
from tomewise.reading.decode import unify_newlines
from tomewise.reading.formats import Reader, load_reader
from tomewise.reading.lengths import cut_document
from tomewise.reading.messages import Failure, Reply, Request, find_longest_reply
from tomewise.types import Document, Place, Scalar

_STACK_BYTES = 128 * 2**20  # for nested elements: a page may nest 300 of them, and each needs several calls
_MAX_DEPTH = 20_000  # nested calls
_EXTRA_SECONDS = 30.0  # added to the limit on a file, for the case that the asking process has ended
_STATUS = Path("/proc/self/status")  # exists on Linux only
_DATA = re.compile(rb"^VmData:\s+(\d+) kB", re.MULTILINE)


class _TooLong(Exception):
    """The text of a file has more characters than allowed."""


def main(handle: int) -> None:
    """Serve the requests that arrive at this file descriptor until its other end is closed."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    connection: Connection[bytes, bytes] = Connection(handle)
    requests: SimpleQueue[Request] = SimpleQueue()
    sys.setrecursionlimit(_MAX_DEPTH)
    threading.stack_size(_STACK_BYTES)
    threading.Thread(target=_serve, args=(connection, requests), daemon=True).start()
    try:  # this thread receives requests, and so notices when the asking process ends
        while True:
            requests.put(Request.decode(connection.recv_bytes()))
    except (EOFError, OSError):
        os._exit(0)


def _serve(connection: Connection[bytes, bytes], requests: SimpleQueue[Request]) -> None:
    memory = _Memory()
    try:
        while True:
            _serve_one(connection, requests.get(), memory)
    finally:  # the process that asks must not wait for a reply that never comes
        os._exit(1)


def _serve_one(connection: Connection[bytes, bytes], request: Request, memory: _Memory) -> None:
    try:
        with memory.exclude():
            reader: Reader | MissingDependency = load_reader(request.format)
    except MissingDependency as error:
        reader = error
    connection.send_bytes(b"")  # the limit on seconds starts here
    reply = _make_reply(request, reader, memory).encode()
    if len(reply) > find_longest_reply(request.bounds):  # by its marks and metadata
        reply = Reply(failure="characters").encode()
    connection.send_bytes(reply)


def _make_reply(request: Request, reader: Reader | MissingDependency, memory: _Memory) -> Reply:
    if isinstance(reader, MissingDependency):
        return Reply(failure="missing", message=str(reader))
    signal.setitimer(signal.ITIMER_REAL, request.bounds.seconds + _EXTRA_SECONDS)
    try:
        with memory.limit(request.bounds.memory):
            return Reply(documents=_read(reader, request))
    except ReadingError as error:
        failure: tuple[Failure, str] = ("refused", str(error))
    except _TooLong:
        failure = ("characters", "")
    except MemoryError:
        failure = ("memory", "")
    except Exception as error:  # noqa: BLE001 - whatever error a file causes, the next files are read
        what = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        failure = ("error", f"{fault.part} failed: {what}" if (fault := find_fault(error)) else what)
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
        documents.append(_clean_document(cut_document(document)))
    return tuple(documents)


def _clean_document(document: Document) -> Document:
    """The document with a text that a store can hold, and its marks at the same places in that text."""
    starts = [start for start, _ in document.marks]
    pieces = [_clean_text(document.text[a:b]) for a, b in pairwise([0, *starts, len(document.text)])]
    lengths = accumulate(map(len, pieces))
    marks = tuple((start, _clean_place(place)) for start, (_, place) in zip(lengths, document.marks, strict=False))
    metadata = {_clean_text(name): _clean_value(value) for name, value in document.metadata.items()}
    return replace(document, text="".join(pieces), title=_clean_text(document.title), metadata=metadata, marks=marks)


def _clean_value(value: Scalar | Sequence[Scalar]) -> Scalar | Sequence[Scalar]:
    if isinstance(value, list | tuple):
        return [_clean_text(item) if isinstance(item, str) else item for item in value]
    return _clean_text(value) if isinstance(value, str) else value


def _clean_place(place: Place) -> Place:
    chapter = tuple(map(_clean_text, place.chapter))
    return replace(place, chapter=chapter, time=_clean_text(place.time), speaker=_clean_text(place.speaker))


def _clean_text(text: str) -> str:
    # Fonts without a proper character map give NUL and half surrogate pairs, which a store cannot hold.
    return unify_newlines(text.replace("\0", "")).encode("utf-8", "replace").decode()


class _Memory:
    """The memory of this process, and a limit on what readers may add to what was in use before they opened a file.

    It counts private writable pages (RLIMIT_DATA on Linux), not addresses, because libraries reserve many more
    addresses than they use. On other systems memory is not limited.
    """

    def __init__(self) -> None:
        self._base = _count_data_bytes()

    @contextmanager
    def exclude(self) -> Iterator[None]:
        """Memory that is taken inside this context, such as by imports, does not count for any file."""
        before = _count_data_bytes()
        yield
        self._base += _count_data_bytes() - before

    @contextmanager
    def limit(self, megabytes: int) -> Iterator[None]:
        """Let the code inside this context take so much memory; more raises MemoryError."""
        soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
        limit = self._base + megabytes * 2**20
        if self._base and (hard == resource.RLIM_INFINITY or limit < hard):
            resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _count_data_bytes() -> int:
    """The private writable memory of this process; 0 where the system does not say."""
    found = _DATA.search(_STATUS.read_bytes()) if _STATUS.exists() else None
    return int(found[1]) * 1024 if found else 0
