"""List the files of a folder, and the entries that are skipped."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_MAX_REASONS = 3  # in one error message


@dataclass(frozen=True, slots=True)
class Skipped:
    """An entry of a folder that was not read, and the reason."""

    path: Path
    reason: str


def list_files(folder: Path, suffixes: frozenset[str], *, follow: bool) -> Iterator[Path | Skipped]:
    """The files under a folder that have one of these suffixes, sorted by name, and the entries that are skipped.

    A link to a file outside the folder is skipped unless `follow` is set. Otherwise a folder from a stranger could make
    us read any file on this machine.
    """
    return _walk(folder, Path(os.path.realpath(folder)), suffixes, follow)


def summarise_reasons(skipped: Sequence[Skipped]) -> str:
    """The most frequent reasons why entries were skipped, each with its first example."""
    if not skipped:
        return "it is empty"
    counts = Counter(entry.reason for entry in skipped)
    examples = {entry.reason: entry.path.name for entry in reversed(skipped)}
    parts = [
        f"{examples[reason]}: {reason}" + (f" (and {count - 1:,} more)" if count > 1 else "")
        for reason, count in counts.most_common(_MAX_REASONS)
    ]
    return "; ".join(parts) + ("; ..." if len(counts) > _MAX_REASONS else "")


def _walk(folder: Path, root: Path, suffixes: frozenset[str], follow: bool) -> Iterator[Path | Skipped]:
    waiting = [iter([folder])]  # a list in place of recursion: folders may be nested 2,000 deep
    while waiting:
        entry = next(waiting[-1], None)
        if entry is None:
            waiting.pop()
        elif entry.name.startswith(".") and entry is not folder:
            yield Skipped(entry, "is hidden")
        elif os.path.isdir(entry):  # `entry.is_dir` raises an error if we may list its folder but not enter it
            if os.path.islink(entry) and entry is not folder:  # the link may lead back to this folder
                yield Skipped(entry, "is a link to a folder")
                continue
            try:
                waiting.append(iter(sorted(entry.iterdir())))
            except OSError as error:
                yield Skipped(entry, error.strerror or str(error))
        elif entry.suffix.lower() not in suffixes:
            yield Skipped(entry, f"has the unsupported suffix {entry.suffix!r}")
        elif not follow and os.path.islink(entry) and not _resolve_link(entry).is_relative_to(root):
            yield Skipped(entry, "is a link to a file outside of the folder: name that file, or give --follow")
        else:
            yield entry


def _resolve_link(link: Path) -> Path:
    return Path(os.path.realpath(link))  # `Path.resolve` raises an error if links point to each other in a circle
