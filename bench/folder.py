"""What is read of a folder with node_modules, builds and ignored logs, and how long it takes to find out.

    python bench/folder.py

It makes 40 notes, 12,000 files of packages, 2,000 pages of a build and 2,000 logs. A .gitignore leaves out all but
the notes.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time

from tomewise.reading.folder import FolderRules, Skipped, list_files
from tomewise.reading.formats import list_suffixes
from tomewise.tome.tome import Tome

RUNS = 3


def make(root: Path) -> None:
    """Make the folder."""
    files = {
        f"docs/part{n % 4}/note{n}.md": f"# Note {n}\n\n" + "The rain fell on the harbour. " * 40 for n in range(40)
    }
    files |= {f"node_modules/package{n % 300}/lib/f{n}.js": "export const a = 1;\n" for n in range(12_000)}
    files |= {f"build/out{n % 20}/page{n}.html": "<p>built</p>" for n in range(2_000)}
    files |= {f"logs/day{n}.log": "a line\n" for n in range(2_000)}
    for name, text in {**files, ".gitignore": "node_modules/\n/build/\n*.log\n"}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def main() -> None:
    """Print what is listed with and without the ignored files, and the time of `tome add`."""
    with TemporaryDirectory() as place:
        root = Path(place) / "project"
        make(root)
        for ignored in (False, True):
            seconds = []
            for _ in range(RUNS):
                start = perf_counter()
                entries = list(list_files(root, list_suffixes(), FolderRules(ignored=ignored)))
                seconds.append(perf_counter() - start)
            skipped = sum(isinstance(entry, Skipped) for entry in entries)
            what = "with ignored files" if ignored else "without them"
            print(f"{what}: {len(entries) - skipped:,} files, {skipped:,} skipped, {min(seconds):.2f} s")
        with Tome.open(Path(place) / "a.tome", embedder="hash") as tome:
            start = process_time()
            report = tome.add(root)
            print(f"add: {len(report.added)} documents, {process_time() - start:.2f} s of processor time")


if __name__ == "__main__":
    main()
