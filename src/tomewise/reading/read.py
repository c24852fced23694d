"""Read files, folders and standard input as documents."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

from tomewise.errors import MissingDependency, ReadingError, TomewiseError, describe_fault
from tomewise.reading.decode import EmptySource, decode, join_words
from tomewise.reading.folder import FolderRules, Skipped, list_files, summarise_reasons
from tomewise.reading.formats import CODE, CORPUS, MARKDOWN, TEXT, find_format, list_suffixes
from tomewise.reading.json_lines import read_rows
from tomewise.reading.metadata import UNSTORABLE, cut_document, find_unstorable, read_front_matter
from tomewise.reading.places import mark_headings, mark_speakers
from tomewise.reading.process import Bounds, ReaderProcess, make_bound_error, open_within
from tomewise.types import Document, DocumentId, Metadata, Progress, Report

STDIN = "-"
_ALL_RULES = FolderRules()


@dataclass(frozen=True, slots=True)
class ReadSource:
    """One source: its documents, which can be iterated over once, and the ids of all of them.

    `name` is the absolute path of a file. `is_file` is False for a source that cannot be read again, such as standard
    input.
    """

    name: str
    ids: tuple[DocumentId, ...]
    documents: Iterable[Document]
    is_file: bool = True


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A file that is to be read under another name than its path, such as an upload.

    The name replaces the path: in the ids of documents and as their source.
    """

    path: Path
    name: str


@dataclass(frozen=True, slots=True)
class SourceReader:
    """Reads files, folders and standard input.

    In the texts every newline is `\\n` and a byte order mark is dropped: citations count the characters of that text.
    `check` may raise `ReadingError` to refuse a source before any of its documents is used. `prefix` is put before the
    ids that rows state. `rules` say which files of a folder are read; how many are done is reported.
    """

    process: ReaderProcess
    _: KW_ONLY
    check: Callable[[ReadSource], None] | None = None
    prefix: str = ""
    rules: FolderRules = _ALL_RULES
    report: Report = lambda _: None

    def read(self, path: Path | str, *, name: str = "") -> ReadSource:
        """Read one file, or standard input for `-`; each row of a JSON Lines file is a document.

        The id of a file is its resolved absolute path, or the `name` that it is read under; the id of standard input is
        a digest of its text. A file whose suffix is not in `formats.list_suffixes` is read as plain text. Raises
        `ReadingError` for a source that cannot be read as text, `MissingDependency` for a format that needs the extra
        `documents` without it, and for a broken plugin.
        """
        with _report_errors(path):
            source = _read_stdin(self.process.bounds) if str(path) == STDIN else self._read_file(Path(path), name)
        return self._check(source)

    def read_address(self, address: str) -> ReadSource:
        """Read the page at an address, which is its id, see `reading.fetching`. Raises `ReadingError`."""
        from tomewise.reading.fetching import fetch  # late: few sources are addresses

        with _report_errors(address), fetch(address, self.process.bounds) as file:
            try:
                source = self._read_file(file, address)
            except ReadingError as error:
                raise ReadingError(
                    str(error).replace(_resolve_name(file), address).replace(str(file), address)
                ) from None
            source = replace(source, documents=tuple(source.documents))  # while the file is there
        return self._check(source)

    def read_all(self, paths: Iterable[Path | str], seen: set[Path] | None = None) -> Iterator[ReadSource | Skipped]:
        """Read files, folders (recursively, sorted by name) and standard input.

        A file that is named directly must be readable, or `ReadingError` is raised. In a folder, an entry is skipped
        and reported as `Skipped` if it cannot be read, is hidden, is a link that leads out of the folder, is left out
        by the rules or a .gitignore, or has a suffix that is not in `formats.list_suffixes`. A file that was already
        read is skipped too. A folder in which nothing can be read raises `ReadingError`. `seen` holds what earlier
        calls have read.
        """
        seen = set() if seen is None else seen
        for named in paths:
            path = Path(named)
            if str(named) != STDIN:
                if _is_folder(path):
                    yield from self._read_folder(path, seen)
                    continue
                path = path.resolve()
            if path in seen:
                yield Skipped(Path(named), "was already read")
            else:
                seen.add(path)
                yield self.read(named)

    def _check(self, source: ReadSource) -> ReadSource:
        if self.check:
            self.check(source)
        return source

    def _read_folder(self, folder: Path, seen: set[Path]) -> Iterator[ReadSource | Skipped]:
        has_files = False
        skipped: list[Skipped] = []
        entries = list(list_files(folder, list_suffixes(), self.rules))
        for done, entry in enumerate(entries):
            self.report(Progress(label="files of the folder", done=done, total=len(entries)))
            source = entry if isinstance(entry, Skipped) else self._read_entry(entry, seen)
            if isinstance(source, Skipped):
                skipped.append(source)
                has_files = has_files or Path(os.path.realpath(source.path)) in seen
            else:
                has_files = True
            yield source
        self.report(Progress(label="files of the folder", done=len(entries), total=len(entries)))
        if not has_files:
            reasons = summarise_reasons(skipped)
            raise ReadingError(
                f"nothing in the folder {folder} can be read: {reasons}: `tome add --list-formats` says what can be"
            )

    def _read_entry(self, path: Path, seen: set[Path]) -> ReadSource | Skipped:
        key = Path(os.path.realpath(path))
        if key in seen:
            return Skipped(path, "was already read")
        try:
            source = self.read(path)
        except (ReadingError, MissingDependency) as error:
            return Skipped(path, str(error), is_lost=True, is_empty=isinstance(error, EmptySource))
        seen.add(key)
        return source

    def _read_file(self, path: Path, name: str) -> ReadSource:
        if _is_folder(path):
            raise ReadingError(f"{path} is a folder: name a file in it")
        name = name or _resolve_name(path)
        format = find_format(path.suffix.lower())
        if format == CORPUS:
            # The file is read twice, so that an error in the last row is found before the first row is used.
            ids = tuple(document.id for document in read_rows(path, name, self.prefix, self.process.bounds))
            return ReadSource(name, ids, self._read_rows(path, name))
        if format in (TEXT, MARKDOWN, CODE):
            documents: tuple[Document, ...] = (_read_text(path, name, format, self.process.bounds),)
        else:
            documents = self._convert(path, name, format)
        return ReadSource(name, tuple(document.id for document in documents), documents)

    def _read_rows(self, path: Path, name: str) -> Iterator[Document]:
        with _report_errors(path):
            yield from read_rows(path, name, self.prefix, self.process.bounds)

    def _convert(self, path: Path, name: str, format: str) -> tuple[Document, ...]:
        with path.open("rb") as file:
            if not file.read(1):
                raise EmptySource(f"{path} is empty: give a source with text, or leave it out")
        full_path = _resolve_name(path)
        converted = self.process.read(Path(full_path), format)
        # The source of a document is its file, whatever its reader says.
        documents = tuple(
            replace(
                document,
                id=name + document.id[len(full_path) :] if document.id.startswith(full_path) else document.id,
                source=name,
            )
            for document in converted
            if document.text.strip()
        )
        if any(UNSTORABLE.search(document.id) for document in documents):
            raise ReadingError(
                f"{path}: its reader gives an id with a character that cannot be stored: update its package"
            )
        if not documents:
            kind = ReadingError if any("left_out" in each.metadata for each in converted) else EmptySource
            raise kind(f"{path} holds no text (is it drawn, or made by scripts?): save its text to a file")
        return documents


def _read_text(path: Path, name: str, format: str, bounds: Bounds) -> Document:
    with open_within(path, bounds) as file:
        text, origin = _decode_within(file, path, bounds)
    fields, body = read_front_matter(text) if format == MARKDOWN else ({}, 0)
    if field := find_unstorable(fields):
        raise ReadingError(
            f"{path}: {field!a} in its front matter holds a character that a text cannot hold: replace it"
        )
    title = join_words(str(fields.pop("title", "")))
    marks = mark_headings(text) if format == MARKDOWN else mark_speakers(text) if format == TEXT else ()
    marks = tuple(mark for mark in marks if mark[0] >= body)  # a comment in front matter looks like a heading
    # The front matter stays in the text, so that places in the text are places in the file.
    body = body if text[body:].strip() else 0
    return cut_document(
        Document(id=name, text=text, title=title, source=name, metadata={**origin, **fields}, marks=marks, body=body)
    )


def _read_stdin(bounds: Bounds) -> ReadSource:
    if sys.stdin is None:
        raise ReadingError("standard input is closed: pipe text into the command, or name a file")
    text, origin = _decode_within(sys.stdin.buffer, "standard input", bounds)
    id = f"stdin-{sha256(text.encode()).hexdigest()[:12]}"
    document = cut_document(Document(id=id, text=text, source="stdin", metadata=origin, marks=mark_speakers(text)))
    return ReadSource(document.source, (document.id,), (document,), is_file=False)


def _decode_within(file: BinaryIO, name: Path | str, bounds: Bounds) -> tuple[str, Metadata]:
    """The text of an open file, and its encoding if guessed. Raises `ReadingError` if it is too long, or not text."""
    raw = file.read(bounds.bytes + 1)  # a file may grow while it is read
    if len(raw) <= bounds.bytes:
        text, origin = decode(raw, str(name), bounds.encoding or None)
        if len(text) <= bounds.characters:
            return text, origin
    raise make_bound_error(name, bounds, "characters")


def _is_folder(path: Path) -> bool:
    """Whether a path is that of a folder, and not of a file. Raises `ReadingError` if it is neither."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise ReadingError(f"{path} does not exist: check the path") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise _make_access_error(path, error) from error
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise ReadingError(f"{path} is neither a file nor a folder: pipe it in and name it `{STDIN}`")
    return stat.S_ISDIR(mode)


def _resolve_name(path: Path) -> str:
    name = path.resolve().as_posix()
    try:
        name.encode()
    except UnicodeEncodeError:
        raise ReadingError(f"the path {name!a} is not UTF-8: rename the file") from None
    return name


@contextmanager
def _report_errors(path: Path | str) -> Iterator[None]:
    """Raise `ReadingError` for whatever error a file causes inside this context, so that the other files are read."""
    try:
        yield
    except TomewiseError:
        raise
    except OSError as error:
        raise _make_access_error(path, error) from error
    except Exception as error:
        raise ReadingError(f"{path} could not be read ({describe_fault(error)}): repair it, or leave it out") from error


def _make_access_error(path: Path | str, error: OSError | ValueError) -> ReadingError:
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return ReadingError(f"{path} cannot be read ({reason}): check its permissions, or leave it out")
