"""Limits on memory as other systems have them, with their calls put in place."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.patience import wait_until

from tomewise.errors import ReadingError
from tomewise.reading import process as reader_process
from tomewise.reading.process import (
    Bounds,
    MemoryLimit,
    ReaderProcess,
    measure_process,
    must_be_watched,
)


def test_linux_limits_the_process_itself_and_others_are_watched() -> None:
    assert [must_be_watched(platform) for platform in ("linux", "win32", "darwin")] == [False, True, True]
    with MemoryLimit("darwin").limit(1):
        assert len(bytearray(50 * 2**20)) == 50 * 2**20


def test_windows_says_how_much_memory_a_process_has(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = b'"python.exe","42","Console","1","12,345 K"\r\n'

    def run(command: list[str], **_: object) -> SimpleNamespace:
        assert command[0] == "tasklist"
        return SimpleNamespace(stdout=listed if command[-1].endswith(" 42") else b"INFO: No tasks run 1.\r\n")

    monkeypatch.setattr(reader_process.subprocess, "run", run)
    assert measure_process(42, "win32") == 12_345 * 1024


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
