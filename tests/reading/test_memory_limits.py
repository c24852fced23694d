"""Limits on memory as other systems have them, with their calls put in place."""

from __future__ import annotations

import ctypes
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.patience import wait_until

from tomewise.errors import ReadingError
from tomewise.reading import process as reader_process
from tomewise.reading.process import (
    Bounds,
    DataLimit,
    JobLimit,
    MemoryLimit,
    ReaderProcess,
    choose_limit,
    measure_process,
    must_be_watched,
)


class Kernel:
    """The calls of kernel32 that a job object needs, and what they were given."""

    def __init__(self) -> None:
        self.limits: list[tuple[int, int]] = []
        self.sizes: set[int] = set()

        def take_limits(job: int, kind: int, limits: Any, size: int) -> int:
            assert (job, kind) == (7, 9)
            self.sizes.add(size)
            found = limits._obj
            self.limits.append((found.flags, found.process_memory))
            return 1

        def give_counters(process: int, counters: Any, size: int) -> int:
            assert (process, counters._obj.size) == (5, size)
            self.sizes.add(size)
            counters._obj.committed = 3 * 2**20
            return 1

        calls = {
            "CreateJobObjectW": lambda *_: 7,
            "GetCurrentProcess": lambda: 5,
            "AssignProcessToJobObject": lambda job, process: (job, process) == (7, 5),
            "SetInformationJobObject": take_limits,
            "K32GetProcessMemoryInfo": give_counters,
        }
        for name, work in calls.items():  # of functions, because their types are set
            setattr(self, name, lambda *given, work=work: work(*given))


def test_a_job_object_limits_what_a_process_commits() -> None:
    kernel = Kernel()
    limit = JobLimit(kernel)
    assert limit.count() == 3 * 2**20
    limit.set(64 * 2**20)
    limit.set(None)
    assert kernel.limits == [(0x100, 64 * 2**20), (0, 0)]
    if ctypes.sizeof(ctypes.c_void_p) == 8:
        assert kernel.sizes == {144, 72}, "as Windows lays them out"


def test_each_system_has_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "WinDLL", lambda name: Kernel(), raising=False)
    assert isinstance(choose_limit("linux"), DataLimit)
    assert isinstance(choose_limit("win32"), JobLimit)
    assert type(choose_limit("darwin")) is MemoryLimit
    assert [must_be_watched(platform) for platform in ("linux", "win32", "darwin")] == [False, False, True]


def test_without_timers_of_the_system_a_thread_ends_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[int] = []
    monkeypatch.setattr(reader_process, "signal", SimpleNamespace())
    monkeypatch.setattr(reader_process.os, "_exit", ended.append)
    with reader_process.end_after(60):
        pass
    assert ended == []
    with reader_process.end_after(0.01):
        wait_until(lambda: ended)
    assert ended == [1]


def test_a_process_that_cannot_limit_itself_is_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "a.html"
    page.write_text("<p>The rain fell.</p>" * 8_000)
    measured: list[int] = []

    def measure(process: int) -> int:
        measured.append(measure_process(process))
        return measured[-1]

    def watch(own_memory: int) -> None:
        monkeypatch.setattr(reader_process, "OWN_MEMORY", own_memory)

    monkeypatch.setattr(reader_process, "must_be_watched", lambda: True)
    monkeypatch.setattr(reader_process, "measure_process", measure)
    with ReaderProcess(Bounds(memory=512)) as process:
        watch(400 * 2**20)
        assert process.read(page, "html")[0].text
        watch(-512 * 2**20)
        with pytest.raises(ReadingError, match=r"takes more than 512 MB of memory to read: raise .*`read_memory`"):
            process.read(page, "html")
        watch(512 * 2**20)
        assert process.read(page, "html")[0].text
    assert max(measured) > 2**20
