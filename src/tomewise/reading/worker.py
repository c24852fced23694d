"""The worker process that converts files: it runs readers within bounds on memory and characters.

The process that started it (`reading.process`) limits the seconds, and may kill this process at any time.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import POINTER, byref, c_uint32, c_void_p, sizeof
from dataclasses import replace
from itertools import accumulate, pairwise
from pathlib import Path
from queue import SimpleQueue
from typing import Any, BinaryIO

from tomewise.errors import MissingDependency, ReadingError, describe_fault
from tomewise.plugins import find_fault, list_names
from tomewise.reading.bounds import Bounds, Exceeded, make_bound_error
from tomewise.reading.decode import state_encoding, unify_newlines
from tomewise.reading.formats import SCAN, Reader, Scanned, load_reader
from tomewise.reading.metadata import cut_document
from tomewise.reading.process import send
from tomewise.types import Document, Place

_STACK_BYTES = 128 * 2**20  # for nested elements: a page may nest 300 of them, and each needs several calls
_MAX_DEPTH = 20_000  # nested calls
_EXTRA_SECONDS = 30.0  # added to the limit on a file, for the case that the asking process has ended
_STATUS = Path("/proc/self/status")
_DATA = re.compile(rb"^VmData:\s+(\d+) kB", re.MULTILINE)
_EXTENDED_LIMITS = 9  # JobObjectExtendedLimitInformation
_PROCESS_MEMORY = 0x100  # JOB_OBJECT_LIMIT_PROCESS_MEMORY


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
    memory = choose_limit()
    try:
        while True:
            request = json.loads(requests.get())
            bounds = Bounds(**request["bounds"])
            state_encoding(bounds.encoding)
            send(outgoing, _answer(outgoing, request["path"], request["format"], bounds, memory))
    finally:  # the process that asks must not wait for a reply that never comes
        os._exit(1)


def _answer(outgoing: BinaryIO, path: str, format: str, bounds: Bounds, memory: MemoryLimit) -> dict[str, Any]:
    """The documents of a file, or a kind of failure: `missing`, `refused`, or `ended`, and what to say of it.

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
# than they use. Windows counts what a process may commit, by a job object. macOS enforces neither limit: there the
# asking process watches how much memory the reader has, and kills it (`reading.process`).


class MemoryLimit:
    """A limit on what readers may add to the memory that this process had in use before they opened a file.

    This one is for systems on which a process cannot limit itself.
    """

    def __init__(self) -> None:
        self._base = self.count()

    def count(self) -> int:
        """The bytes in use; 0 where the system does not say."""
        return 0

    def set(self, most: int | None) -> None:
        """Let no more than so many bytes be in use, or any number again. More of them raise MemoryError."""

    @contextmanager
    def exclude(self) -> Iterator[None]:
        """Memory that is taken inside this context, such as by imports, does not count for any file."""
        before = self.count()
        yield
        self._base += self.count() - before

    @contextmanager
    def limit(self, megabytes: int) -> Iterator[None]:
        """Let the code inside this context take so much memory; more raises MemoryError."""
        if self._base:
            self.set(self._base + megabytes * 2**20)
        try:
            yield
        finally:
            self.set(None)


class DataLimit(MemoryLimit):
    """RLIMIT_DATA, as Linux enforces it."""

    def __init__(self) -> None:
        import resource

        self._resource: Any = resource
        self._before = resource.getrlimit(resource.RLIMIT_DATA)
        super().__init__()

    def count(self) -> int:
        """The private writable memory of this process."""
        found = _DATA.search(_STATUS.read_bytes())
        return int(found[1]) * 1024 if found else 0

    def set(self, most: int | None) -> None:
        """A limit that is already lower stays."""
        soft, hard = self._before
        if most is not None and (hard == self._resource.RLIM_INFINITY or most < hard):
            soft = most
        self._resource.setrlimit(self._resource.RLIMIT_DATA, (soft, hard))


def _list_fields(words: str) -> list[tuple[str, Any]]:
    """The fields of a structure from `name type, name type`, with the types of `ctypes`."""
    return [(name, getattr(ctypes, kind)) for name, kind in map(str.split, words.split(","))]


class _JobLimits(ctypes.Structure):
    """JOBOBJECT_EXTENDED_LIMIT_INFORMATION."""

    _fields_ = _list_fields(
        "process_time c_int64, job_time c_int64, flags c_uint32, least_working_set c_size_t, most_working_set c_size_t,"
        "active_processes c_uint32, affinity c_size_t, priority c_uint32, scheduling c_uint32, reads c_uint64,"
        "writes c_uint64, others c_uint64, read_bytes c_uint64, written_bytes c_uint64, other_bytes c_uint64,"
        "process_memory c_size_t, job_memory c_size_t, peak_process_memory c_size_t, peak_job_memory c_size_t"
    )


class _MemoryCounters(ctypes.Structure):
    """PROCESS_MEMORY_COUNTERS."""

    _fields_ = _list_fields(
        "size c_uint32, faults c_uint32, peak_set c_size_t, set c_size_t, peak_paged c_size_t, paged c_size_t,"
        "peak_fixed c_size_t, fixed c_size_t, committed c_size_t, peak_committed c_size_t"
    )


class JobLimit(MemoryLimit):
    """A job object of Windows with this process in it. `kernel` are the calls of kernel32."""

    def __init__(self, kernel: Any) -> None:
        kernel.CreateJobObjectW.restype = kernel.GetCurrentProcess.restype = c_void_p
        kernel.AssignProcessToJobObject.argtypes = [c_void_p, c_void_p]
        kernel.SetInformationJobObject.argtypes = [c_void_p, c_uint32, c_void_p, c_uint32]
        kernel.K32GetProcessMemoryInfo.argtypes = [c_void_p, POINTER(_MemoryCounters), c_uint32]
        self._kernel = kernel
        self._job = kernel.CreateJobObjectW(None, None)
        if not self._job or not kernel.AssignProcessToJobObject(self._job, kernel.GetCurrentProcess()):
            raise OSError("the reader process cannot be limited: no job object")
        super().__init__()

    def count(self) -> int:
        """The memory that this process has committed."""
        counters = _MemoryCounters(size=sizeof(_MemoryCounters))
        process = self._kernel.GetCurrentProcess()
        found = self._kernel.K32GetProcessMemoryInfo(process, byref(counters), sizeof(counters))
        return int(counters.committed) if found else 0

    def set(self, most: int | None) -> None:
        """Limit what this process may commit."""
        limits = _JobLimits(flags=0 if most is None else _PROCESS_MEMORY, process_memory=most or 0)
        if not self._kernel.SetInformationJobObject(self._job, _EXTENDED_LIMITS, byref(limits), sizeof(limits)):
            raise OSError("the reader process cannot be limited: its job object takes no limit")


def choose_limit(platform: str = sys.platform) -> MemoryLimit:
    """The limit that this system has."""
    if platform == "win32":
        return JobLimit(ctypes.WinDLL("kernel32"))  # type: ignore[attr-defined]
    return DataLimit() if platform == "linux" else MemoryLimit()
