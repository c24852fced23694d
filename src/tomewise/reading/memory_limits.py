"""How each system limits the memory of the reader process: Linux and Windows at each request, macOS from outside.

Linux counts private writable pages (RLIMIT_DATA) and not addresses, because libraries reserve many more addresses than
they use. Windows counts what a process may commit, by a job object. macOS enforces neither limit: there the asking
process watches how much memory the reader has, and kills it.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import POINTER, byref, c_uint32, c_void_p, sizeof
from pathlib import Path
from typing import Any

_STATUS = Path("/proc/self/status")
_DATA = re.compile(rb"^VmData:\s+(\d+) kB", re.MULTILINE)
_EXTENDED_LIMITS = 9  # JobObjectExtendedLimitInformation
_PROCESS_MEMORY = 0x100  # JOB_OBJECT_LIMIT_PROCESS_MEMORY


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


def must_be_watched(platform: str = sys.platform) -> bool:
    """Whether the process that asks watches the memory of a reader, since that cannot limit itself."""
    return platform not in ("linux", "win32")


def measure_process(process: int) -> int:
    """The bytes of memory that a process has, as `ps` says; 0 if it has ended."""
    ran = subprocess.run(["ps", "-o", "rss=", "-p", str(process)], capture_output=True, check=False)
    return int(ran.stdout) * 1024 if ran.stdout.strip().isdigit() else 0
