"""Time, memory and size of adding many documents in one `add`, with the hash embedder.

    python bench/many_documents.py [COUNT ...]

Without counts: 10,000 and 100,000, as files in a folder and as rows of JSON Lines. Each has some 300 characters of the
bundled story. Every case runs in a process of its own; watch the last column, which says what a document takes as the
number grows. `again` adds the same documents once more, unchanged.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter, process_time

from tomewise.sample import STORY
from tomewise.tome.tome import Tome

LENGTH = 300  # characters of a document
COUNTS = (10_000, 100_000)


def list_texts(count: int) -> list[str]:
    """Texts that differ, cut from the story one after the other."""
    story = " ".join(STORY.read_text().split())
    step = (len(story) - LENGTH) / count
    return [f"Document {number}. {story[int(number * step) :][:LENGTH]}" for number in range(count)]


def write_files(folder: Path, count: int) -> Path:
    source = folder / "files"
    for number, text in enumerate(list_texts(count)):
        path = source / f"{number // 1000:03}" / f"{number:06}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return source


def write_rows(folder: Path, count: int) -> Path:
    source = folder / "rows.jsonl"
    source.write_text(
        "".join(json.dumps({"id": str(number), "text": text}) + "\n" for number, text in enumerate(list_texts(count)))
    )
    return source


def measure(kind: str, count: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = write_files(folder, count) if kind == "files" else write_rows(folder, count)
        for word in ("added", "again"):
            started, begun = perf_counter(), process_time()
            with Tome.open(folder / "a.tome", embedder="hash") as tome:
                report = tome.add(source)
            used, passed = process_time() - begun, perf_counter() - started
            taken = len(report.added) or len(report.unchanged)
            assert taken == count, (taken, count)
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            size = (folder / "a.tome").stat().st_size / 2**20
            times = f"{used:6.1f} s of processor time, {passed:6.1f} s, {1e3 * used / count:.2f} ms a document"
            sizes = f"at most {memory:,} MB, tome of {size:.0f} MB, {size * 1024 / count:.1f} KB a document"
            print(f"{count:7,} {kind:5} {word}: {times}; {sizes}", flush=True)


def main() -> None:
    if len(sys.argv) == 3 and sys.argv[1] in ("files", "rows"):
        measure(sys.argv[1], int(sys.argv[2]))
        return
    for count in [int(word) for word in sys.argv[1:]] or COUNTS:
        for kind in ("rows", "files"):
            subprocess.run([sys.executable, __file__, kind, str(count)], check=True)


if __name__ == "__main__":
    main()
