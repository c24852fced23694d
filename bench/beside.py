"""What it costs to write the header of a cache: in place, or under a temporary name that is renamed over the old one.

`python bench/beside.py [FOLDER]`. Both take turns in one folder beside a tome, with a file of rows that grows between,
as an `add` of one document does. Microseconds for one header, the least of five rounds and the median.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from tomewise.store.beside import FolderBeside

ROUNDS, TIMES = 5, 400
CONTENT = b"x" * 1024
ROWS = b"r" * 60_000  # vectors of 40 passages


def write_in_place(folder: FolderBeside) -> None:
    with folder.open("a.json", to_change=True) as file:
        file.write(CONTENT)


def write_renamed(folder: FolderBeside) -> None:
    with folder.write("a.json") as file:
        file.write(CONTENT)


def write_bare(folder: FolderBeside) -> None:
    """As before there were checks."""
    with open(folder.path / "a.json", "r+b", buffering=0) as file:
        file.write(CONTENT)


def time_one(write: Callable[[FolderBeside], None], folder: FolderBeside) -> tuple[float, float]:
    """Wall and processor microseconds of one header."""
    wall = processor = 0.0
    for _ in range(TIMES):
        with folder.open("a.rows", to_change=True) as file:
            file.write(ROWS)
        began, used = time.perf_counter(), time.process_time()
        write(folder)
        wall, processor = wall + time.perf_counter() - began, processor + time.process_time() - used
    return 1e6 * wall / TIMES, 1e6 * processor / TIMES


def main() -> None:
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as place:
        tome = Path(place) / "a.tome"
        tome.touch()
        folder = FolderBeside(tome, "-cache", r"a\.(json|rows)")
        folder.make()
        for name in ("a.json", "a.rows"):
            with folder.write(name):
                pass
        kinds = (write_bare, write_in_place, write_renamed)
        times = {kind: [] for kind in kinds}  # type: ignore[var-annotated]
        for _ in range(ROUNDS):
            for kind in kinds:
                times[kind].append(time_one(kind, folder))
        for kind, found in times.items():
            walls, processors = zip(*found, strict=True)
            print(
                f"{kind.__name__:15} wall {min(walls):7.1f} µs, median {median(walls):7.1f}; "
                f"processor {min(processors):6.1f}, median {median(processors):6.1f}"
            )


if __name__ == "__main__":
    main()
