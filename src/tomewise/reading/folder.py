"""The files of a folder, and what in it is not read."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_NAMED = 3  # reasons that an error gives


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something in a folder that was not read, and why."""

    path: Path
    reason: str


def list_files(folder: Path, suffixes: frozenset[str], *, follow: bool) -> Iterator[Path | Skipped]:
    """The files of these suffixes under a folder, in order of their names, and what is passed over on the way.

    A link to a file outside of the folder is passed over unless `follow`: whoever packed a folder must not choose
    which other files of this machine are read.
    """
    return _walk(folder, Path(os.path.realpath(folder)), suffixes, follow)


def name_reasons(skipped: Sequence[Skipped]) -> str:
    """What was passed over, in a few words: the reasons that hold for most."""
    if not skipped:
        return "it is empty"
    counts = Counter(one.reason for one in skipped)
    examples = {one.reason: one.path.name for one in reversed(skipped)}
    named = [
        f"{examples[reason]}: {reason}" + (f" (and {count - 1:,} more)" if count > 1 else "")
        for reason, count in counts.most_common(_NAMED)
    ]
    return "; ".join(named) + ("; ..." if len(counts) > _NAMED else "")


def _walk(folder: Path, root: Path, suffixes: frozenset[str], follow: bool) -> Iterator[Path | Skipped]:
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        yield Skipped(folder, error.strerror or str(error))
        return
    for entry in entries:
        if entry.name.startswith("."):
            yield Skipped(entry, "is hidden")
        elif os.path.isdir(entry):  # `is_dir` raises in a folder that may be listed but not entered
            if entry.is_symlink():  # it may lead back here
                yield Skipped(entry, "is a link to a folder")
            else:
                yield from _walk(entry, root, suffixes, follow)
        elif entry.suffix.lower() not in suffixes:
            yield Skipped(entry, f"has the unsupported suffix {entry.suffix!r}")
        elif not follow and entry.is_symlink() and not _target(entry).is_relative_to(root):
            yield Skipped(entry, "is a link to a file outside of the folder: name that file, or give --follow")
        else:
            yield entry


def _target(link: Path) -> Path:
    return Path(os.path.realpath(link))  # unlike `resolve`, at ease with links in a circle
