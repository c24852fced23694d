"""The processes that read files, as Linux lists them."""

import os
from pathlib import Path

LISTED = Path("/proc/self/status").exists()


def list_readers(parent: int | None = None) -> list[int]:
    """The reader processes that a process has, this one if none is named."""
    found = [path for path in Path("/proc").glob("[0-9]*") if _find_parent(path) == (parent or os.getpid())]
    return [int(path.name) for path in found if _is_reader(path)]


def _find_parent(process: Path) -> int:
    try:
        return int((process / "stat").read_text().rsplit(")", 1)[1].split()[1])
    except OSError:  # it has just ended
        return 0


def _is_reader(process: Path) -> bool:
    try:
        return b"tomewise.reading.process" in (process / "cmdline").read_bytes()
    except OSError:
        return False
