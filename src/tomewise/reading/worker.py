"""The worker process that converts files: it runs readers within bounds on memory and characters.

The process that started it (`reading.process`) limits the seconds, and may kill this process at any time.
"""

from __future__ import annotations

import json
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
from typing import Any, BinaryIO

from tomewise.errors import MissingDependency, ReadingError, describe_fault
from tomewise.plugins import find_fault, list_names
from tomewise.reading.bounds import Bounds, make_bound_error
from tomewise.reading.decode import unify_newlines
from tomewise.reading.formats import SCAN, Reader, Scanned, load_reader
from tomewise.reading.memory_limits import MemoryLimit, choose_limit
from tomewise.reading.metadata import cut_document
from tomewise.reading.process import LONGEST_REQUEST, encode, receive, send, write_document
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
    incoming, outgoing = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1):
        os.dup2(nowhere, number)
    requests: SimpleQueue[bytes] = SimpleQueue()
    sys.setrecursionlimit(_MAX_DEPTH)
    threading.stack_size(_STACK_BYTES)
    threading.Thread(target=_serve, args=(outgoing, requests), daemon=True).start()
    try:  # this thread receives requests, and so notices when the asking process ends
        while True:
            requests.put(receive(incoming, LONGEST_REQUEST))
    except (EOFError, OSError):
        os._exit(0)


def _serve(outgoing: BinaryIO, requests: SimpleQueue[bytes]) -> None:
    memory = choose_limit()
    try:
        while True:
            request = json.loads(requests.get())
            _serve_one(outgoing, request["path"], request["format"], Bounds(**request["bounds"]), memory)
    finally:  # the process that asks must not wait for a reply that never comes
        os._exit(1)


def _serve_one(outgoing: BinaryIO, path: str, format: str, bounds: Bounds, memory: MemoryLimit) -> None:
    """Send the documents of a file, or a kind of failure: `missing`, `refused`, or `ended`, and what to say of it.

    After a file that `ended` its reading, the worker is replaced.
    """
    reader: Reader | MissingDependency
    try:
        with memory.exclude():
            reader = load_reader(format)
    except MissingDependency as error:
        reader = error
    send(outgoing, encode(None))  # the limit on seconds starts here
    documents: tuple[Document, ...] = ()
    failure, problem = "", ""
    try:
        if isinstance(reader, MissingDependency):
            raise reader
        try:
            documents = _read(reader, path, bounds, memory)
        except Scanned:
            if SCAN not in list_names("readers"):
                raise
            with memory.exclude():
                reader = load_reader(SCAN)
            documents = _read(reader, path, bounds, memory)
    except MissingDependency as error:
        failure, problem = "missing", str(error)
    except ReadingError as error:
        failure, problem = "refused", str(error)
    except _Exceeded as error:
        failure, problem = "ended", str(error)
    except MemoryError:
        failure, problem = "ended", str(make_bound_error(path, bounds, "memory"))
    except Exception as error:  # noqa: BLE001 - whatever error a file causes, the next files are read
        what = describe_fault(error)
        what = f"{fault.part} failed: {what}" if (fault := find_fault(error)) else what
        failure, problem = "ended", f"{path} could not be read ({what}): repair it, or leave it out"
    reply = encode({"documents": list(map(write_document, documents)), "failure": failure, "message": problem})
    if len(reply) > bounds.reply_bytes:  # by its marks and metadata
        problem = str(make_bound_error(path, bounds, "characters"))
        reply = encode({"documents": (), "failure": "ended", "message": problem})
    send(outgoing, reply)


def _read(reader: Reader, path: str, bounds: Bounds, memory: MemoryLimit) -> tuple[Document, ...]:
    documents: list[Document] = []
    left = bounds.characters
    with end_after(bounds.seconds + _EXTRA_SECONDS), memory.limit(bounds.memory):
        for document in reader(Path(path)):
            left -= len(document.text) + len(document.title)
            if left < 0:
                raise _Exceeded(make_bound_error(path, bounds, "characters"))
            if len(documents) == bounds.documents:
                raise _Exceeded(make_bound_error(path, bounds, "documents"))
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
