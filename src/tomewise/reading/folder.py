"""List the files of a folder, and the entries that are skipped."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from pathspec import GitIgnoreSpec

from tomewise.errors import UsageError

_BELONGS = "belongs to a tome"
_OUTSIDE = "is a link to a file outside of the folder: name that file, or give --follow"
_UNSUPPORTED = "has the unsupported suffix"
_INSTALLED = frozenset(("node_modules", "bower_components", "site-packages", "__pycache__"))  # folders that tools fill
_FILLED = "holds what a tool put there: name it, or give --all"
_MAX_REASONS = 3  # in one error message
_REPOSITORY = ".git"
_TOME = b"SQLite format 3\x00"  # a tome begins so
_BESIDE_TOME = re.compile(r"(.+)-(?:cache|jobs|wal|shm|journal)", re.DOTALL)  # what lies beside a tome
_LONGEST_IGNORE = 1 << 18  # bytes of a .gitignore
_MOST_PATTERNS = 1_000  # lines of it that count
_MOST_DEEP = 2  # wildcards `**` in one line; each multiplies the time by the depth of a path


def resolve_path(path: str | Path) -> str:
    """The full path without links, in the form that documents and folders have in a tome: with slashes."""
    return Path(os.path.realpath(path)).as_posix()


@dataclass(frozen=True, slots=True)
class Skipped:
    """An entry of a folder that was not read, and the reason."""

    path: Path
    reason: str
    is_lost: bool = False
    """Whether it may hold text that nobody chose to leave out."""
    is_empty: bool = False
    """Whether it is a file without text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderRules:
    """Which files of a folder are read.

    `include` and `exclude` are patterns as in .gitignore, relative to the folder: with `include` only files that one of
    them fits, without those, and folders, that `exclude` fits. What files named .gitignore leave out is left out too,
    and folders that tools fill, such as node_modules, unless `ignored` is set. With `follow`, links to files outside
    the folder are followed. Otherwise a folder from a stranger could make us read any file on this machine.
    """

    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    ignored: bool = False
    follow: bool = False


def list_files(folder: Path, suffixes: frozenset[str], rules: FolderRules) -> Iterator[Path | Skipped]:
    """The files under a folder that have one of these suffixes, sorted by name, and the entries that are skipped."""
    root = Path(os.path.realpath(folder))
    walk = _Walk(root, suffixes, rules, _read_patterns(rules.include), _read_patterns(rules.exclude))
    return walk.list_entries(folder)


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


@dataclass(frozen=True, slots=True)
class _Ignored:
    """The patterns of a .gitignore. `inside` is its folder in the one that is read, `above` the way down to that."""

    patterns: GitIgnoreSpec
    inside: str = ""
    above: str = ""

    def check(self, path: str) -> bool | None:
        """Whether the file ignores a path, relative to the folder that is read; None if it says nothing of it."""
        return self.patterns.check_file(self.above + path.removeprefix(self.inside)).include


def _is_ignored(path: str, files: Sequence[_Ignored]) -> bool:
    """Whether these files ignore a path; the last one that says anything of it counts."""
    return next((found for each in reversed(files) if (found := each.check(path)) is not None), False)


# The entries of a folder, its path below the first one, and the files .gitignore that count in it.
_Level: TypeAlias = tuple[Iterator[Path | Skipped], str, tuple[_Ignored, ...]]


@dataclass(frozen=True, slots=True)
class _Walk:
    """Lists what is below a folder, which is `root` without links."""

    root: Path
    suffixes: frozenset[str]
    rules: FolderRules
    include: GitIgnoreSpec
    exclude: GitIgnoreSpec

    def list_entries(self, folder: Path) -> Iterator[Path | Skipped]:
        """The files, and the entries that are skipped."""
        above = () if self.rules.ignored else _find_ignored_above(self.root)
        waiting = [self._open(folder, "", above)]  # in place of recursion: folders may be nested 2,000 deep
        while waiting:
            entries, inside, ignored = waiting[-1]
            entry = next(entries, None)
            if entry is None:
                waiting.pop()
            elif isinstance(entry, Skipped):
                yield entry
            elif reason := self._find_reason(entry, inside, ignored):
                yield Skipped(entry, reason, is_lost=reason.startswith((_UNSUPPORTED, _OUTSIDE)))
            elif os.path.isdir(entry):
                waiting.append(self._open(entry, f"{inside}{entry.name}/", ignored))
            else:
                yield entry

    def _open(self, folder: Path, inside: str, ignored: tuple[_Ignored, ...]) -> _Level:
        """A folder to list. The one entry of a folder that cannot be listed is that folder, skipped."""
        try:
            entries = sorted(folder.iterdir())
        except OSError as error:
            return iter([Skipped(folder, error.strerror or str(error), is_lost=True)]), inside, ignored
        own = None if self.rules.ignored else _read_ignored(folder)
        return iter(entries), inside, (*ignored, _Ignored(own, inside)) if own else ignored

    def _find_reason(self, entry: Path, inside: str, ignored: tuple[_Ignored, ...]) -> str:
        """Why an entry is skipped; empty if it is a file to read, or a folder to enter."""
        if entry.name.startswith("."):
            return "is hidden"
        is_folder = os.path.isdir(entry)  # `entry.is_dir` raises an error if we may list its folder but not enter it
        if is_folder and os.path.islink(entry):  # the link may lead back to this folder
            return "is a link to a folder"
        path = f"{inside}{entry.name}{'/' if is_folder else ''}"
        if _is_ignored(path, ignored):
            return "is left out by .gitignore: name it, or give --all"
        if self.rules.exclude and self.exclude.match_file(path):
            return "is excluded"
        if is_folder and not self.rules.ignored and _is_filled(entry):
            return _FILLED
        if is_folder:
            return _BELONGS if _belongs_to_tome(entry) else ""
        if self.rules.include and not self.include.match_file(path):
            return "is not included"
        if entry.suffix.lower() not in self.suffixes:
            return _BELONGS if _belongs_to_tome(entry) else f"{_UNSUPPORTED} {entry.suffix!r}"
        # Not `Path.resolve`: it raises an error if links point to each other in a circle.
        is_inside = self.rules.follow or not os.path.islink(entry)
        if not (is_inside or Path(os.path.realpath(entry)).is_relative_to(self.root)):
            return _OUTSIDE
        return ""


def _is_filled(folder: Path) -> bool:
    """Whether a tool put into a folder what is there: packages, an environment of Python, a cache."""
    marks = ("pyvenv.cfg", "CACHEDIR.TAG")
    return folder.name in _INSTALLED or any(os.path.isfile(folder / mark) for mark in marks)


def _belongs_to_tome(entry: Path) -> bool:
    """Whether an entry is a tome, or a folder or a file that one has beside it: its cache, jobs or log."""
    found = _BESIDE_TOME.fullmatch(entry.name)
    if not found and entry.suffix != ".tome":  # most files: they need not be opened
        return False
    tome = entry.with_name(found[1]) if found else entry
    with suppress(OSError):
        if tome.is_file():  # not a pipe, which might never end
            with tome.open("rb") as file:
                return file.read(len(_TOME)) == _TOME
    return False


def _read_patterns(patterns: Sequence[str]) -> GitIgnoreSpec:
    try:
        return GitIgnoreSpec.from_lines(patterns)
    except (ValueError, re.error) as error:
        raise UsageError(
            f"cannot read the patterns {list(patterns)!r} ({error}): write them as in .gitignore"
        ) from None


def _find_ignored_above(root: Path) -> tuple[_Ignored, ...]:
    """What the files .gitignore above a folder leave out, in the repository that it is in.

    They do not count if they leave out the folder itself: it was named.
    """
    folders = [root, *root.parents]
    depth = next((depth for depth, folder in enumerate(folders) if (folder / _REPOSITORY).exists()), 0)
    found = tuple(
        _Ignored(patterns, above=f"{root.relative_to(parent).as_posix()}/")
        for parent in reversed(folders[1 : depth + 1])
        if (patterns := _read_ignored(parent))
    )
    return () if _is_ignored("", found) else found


def _read_ignored(folder: Path) -> GitIgnoreSpec | None:
    """The patterns of the .gitignore of a folder; None if it has none that can be read.

    The file may be a stranger's. A line that can take very long to compare is left out.
    """
    path = folder / ".gitignore"
    try:
        if not path.is_file() or path.stat().st_size > _LONGEST_IGNORE:
            return None
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    patterns = []
    for line in lines[:_MOST_PATTERNS]:
        if _is_quick(line):
            with suppress(ValueError, re.error):  # no pattern, such as a single `!`
                GitIgnoreSpec.from_lines([line])
                patterns.append(line)
    return GitIgnoreSpec.from_lines(patterns)


def _is_quick(pattern: str) -> bool:
    """Whether a pattern has at most one wildcard within a segment: each more multiplies the time by a name's length.

    At the end one costs nothing, as in `*secret*`.
    """
    segments = pattern.strip().removeprefix("!").rstrip("*").split("/")
    return segments.count("**") <= _MOST_DEEP and all(
        segment == "**" or segment.count("*") <= 1 for segment in segments
    )
