"""A disk that is full: a small file system in memory, or a process that may make no file longer.

The first needs the right to mount. The second is there wherever Linux is, and full for one process alone.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

if sys.platform == "linux":
    import resource
KINDS = ("mounted", "limited")
_BYTES = 3_000_000


class Disk:
    """A folder on a disk, which `fill` makes full."""

    def __init__(self, folder: Path, *, is_mounted: bool) -> None:
        self.folder = folder
        self._is_mounted = is_mounted
        self._filler = folder / "filler"
        self._room = 0

    def fill(self, process: int | None = None, *, room: int = 0) -> None:
        """Leave so many bytes of room, also to this process, which runs."""
        self._room = room
        if not self._is_mounted:
            if process is not None:
                limit(process, room)
            return
        with self._filler.open("wb", buffering=0) as filler:
            for size in (65_536, 4_096, 1):
                _write_until_full(filler.write, bytes(size))
            filler.truncate(filler.tell() - room)

    def prepare_process(self) -> None:
        """What a process that starts on the full disk does first."""
        if not self._is_mounted:
            limit(0, self._room)


@contextmanager
def make_disk(kind: str, folder: Path) -> Iterator[Disk]:
    """A disk of one of the KINDS. Skips the test where it cannot be had."""
    if sys.platform != "linux":
        pytest.skip("limits of other processes, and file systems in memory, are those of Linux")
    disk = Disk(folder, is_mounted=kind == "mounted")
    if kind == "limited":
        yield disk
        return
    mounting = ["mount", "-t", "tmpfs", "-o", f"size={_BYTES}", "tmpfs", str(folder)]
    mounted = subprocess.run(mounting, capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"no right to mount: {mounted.stderr.strip()}")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def limit(process: int, room: int = 0) -> None:
    """Let a process, 0 for this one, make no file longer than so many bytes."""
    _, most = resource.prlimit(process, resource.RLIMIT_FSIZE)
    resource.prlimit(process, resource.RLIMIT_FSIZE, (room, most))


def _write_until_full(write: Callable[[bytes], object], piece: bytes) -> None:
    try:
        while True:
            write(piece)
    except OSError:
        return
