"""The worker process that converts files: it runs readers within bounds on memory and characters.

The process that started it (`reading.process`) limits the seconds, and may kill this process at any time.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import accumulate, pairwise
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from tomewise.errors import MissingDependency, ReadingError, TomewiseError
from tomewise.plugins import find_fault, find_plugin
from tomewise.reading.bounds import describe_fault, make_bound_error
from tomewise.reading.decode import unify_newlines
from tomewise.reading.formats import SCAN, Reader, Scanned, load_reader
from tomewise.reading.lengths import cut_document
from tomewise.reading.memory_limits import FileMemory, choose_limit
from tomewise.reading.messages import LONGEST_REQUEST, Channel, Reply, Request, find_longest_reply
from tomewise.types import Document, Place

_STACK_BYTES = 128 * 2**20  # for nested elements: a page may nest 300 of them, and each needs several calls
_MAX_DEPTH = 20_000  # nested calls
_EXTRA_SECONDS = 30.0  # added to the limit on a file, for the case that the asking process has ended


class _Exceeded(Exception):
    """A file exceeds a bound."""


def main() -> None:
    """Serve the requests that arrive at standard input until its other end is closed; replies go to standard output.

    What libraries read and write there goes nowhere.
    """
    if hasattr(signal, "SIGALRM"):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
    connection = Channel(os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb"))
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1):
        os.dup2(nowhere, number)
    requests: SimpleQueue[Request] = SimpleQueue()
    sys.setrecursionlimit(_MAX_DEPTH)
    threading.stack_size(_STACK_BYTES)
    threading.Thread(target=_serve, args=(connection, requests), daemon=True).start()
    try:  # this thread receives requests, and so notices when the asking process ends
        while True:
            requests.put(Request.decode(connection.receive(LONGEST_REQUEST)))
    except (EOFError, OSError):
        os._exit(0)


def _serve(connection: Channel, requests: SimpleQueue[Request]) -> None:
    memory = FileMemory(choose_limit())
    try:
        while True:
            _serve_one(connection, requests.get(), memory)
    finally:  # the process that asks must not wait for a reply that never comes
        os._exit(1)


def _serve_one(connection: Channel, request: Request, memory: FileMemory) -> None:
    try:
        with memory.exclude():
            reader: Reader | MissingDependency = load_reader(request.format)
    except MissingDependency as error:
        reader = error
    connection.send(b"")  # the limit on seconds starts here
    try:
        found = _make_reply(request, reader, memory)
    except Scanned as error:
        found = _read_scan(request, memory) or Reply(failure="refused", message=str(error))
    reply = found.encode()
    if len(reply) > find_longest_reply(request.bounds):  # by its marks and metadata
        reply = Reply(
            failure="ended", message=str(make_bound_error(request.path, request.bounds, "characters"))
        ).encode()
    connection.send(reply)


def _read_scan(request: Request, memory: FileMemory) -> Reply | None:
    """The reply of a reader of scans that a package brings; None without one."""
    try:
        with memory.exclude():
            reader = find_plugin("readers", SCAN)
    except TomewiseError as error:
        return Reply(failure="missing", message=str(error))
    return _make_reply(request, reader, memory) if callable(reader) else None


def _make_reply(request: Request, reader: Reader | MissingDependency, memory: FileMemory) -> Reply:
    if isinstance(reader, MissingDependency):
        return Reply(failure="missing", message=str(reader))
    try:
        with end_after(request.bounds.seconds + _EXTRA_SECONDS), memory.limit(request.bounds.memory):
            return Reply(documents=_read(reader, request))
    except Scanned:
        raise
    except ReadingError as error:
        return Reply(failure="refused", message=str(error))
    except _Exceeded as error:
        return Reply(failure="ended", message=str(error))
    except MemoryError:
        return Reply(failure="ended", message=str(make_bound_error(request.path, request.bounds, "memory")))
    except Exception as error:  # noqa: BLE001 - whatever error a file causes, the next files are read
        what = describe_fault(error)
        what = f"{fault.part} failed: {what}" if (fault := find_fault(error)) else what
        message = f"{request.path} could not be read ({what}): repair it, or leave it out"
        return Reply(failure="ended", message=message)


def _read(reader: Reader, request: Request) -> tuple[Document, ...]:
    documents: list[Document] = []
    left = request.bounds.characters
    for document in reader(Path(request.path)):
        left -= len(document.text) + len(document.title)
        if left < 0:
            raise _Exceeded(make_bound_error(request.path, request.bounds, "characters"))
        if len(documents) == request.bounds.documents:
            raise _Exceeded(make_bound_error(request.path, request.bounds, "documents"))
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
