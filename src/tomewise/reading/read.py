"""Sources to documents: files, folders, standard input."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from tomewise.errors import MissingDependency, ReadingError
from tomewise.reading.decode import decoded
from tomewise.reading.folder import Skipped, list_files, name_reasons
from tomewise.reading.formats import FORMATS
from tomewise.reading.json_lines import rows
from tomewise.reading.process import ReaderProcess
from tomewise.types import Document, DocumentId

STDIN = "-"
_TEXT = frozenset({".txt", ".text", ".md", ".markdown", ".rst"})
_ROWS = frozenset({".jsonl", ".ndjson"})
SUFFIXES = _TEXT | _ROWS | frozenset(FORMATS)


@dataclass(frozen=True, slots=True)
class Source:
    """What was found at one place: the documents, to be iterated over once, and the ids of all of them.

    `name` is the absolute path of a file. `is_file` is False for what has no place that could be read again.
    """

    name: str
    ids: tuple[DocumentId, ...]
    documents: Iterable[Document]
    is_file: bool = True


Check = Callable[[Source], None]


class SourceReader:
    """Reads files, folders and standard input.

    Texts have `\\n` for every newline and no byte order mark: citations count characters of that text. `check` may
    refuse a source before anything of it is taken, by raising `ReadingError`. `prefix` is put before the ids that rows
    state. `follow` reads files to which links in a folder lead out of it.
    """

    def __init__(
        self, process: ReaderProcess, *, check: Check | None = None, prefix: str = "", follow: bool = False
    ) -> None:
        self._process = process
        self._check = check or (lambda _: None)
        self._prefix = prefix
        self._follow = follow

    def read(self, path: Path | str) -> Source:
        """One file, or standard input for `-`; each row of a JSON Lines file is a document.

        A file's id is its resolved absolute path, standard input's comes from its text. A file of another suffix than
        `SUFFIXES` is read as plain text. Raises `ReadingError` for whatever cannot be read as text,
        `MissingDependency` for PDF and DOCX without the extra `documents`.
        """
        source = _standard_input() if str(path) == STDIN else self._file(Path(path))
        self._check(source)
        return source

    def read_all(self, paths: Iterable[Path | str]) -> Iterator[Source | Skipped]:
        """Files, folders (recursive, sorted by name) and standard input.

        A file that is named itself must be readable, or `ReadingError` is raised. In a folder, whatever cannot be
        read, is hidden, is a link that leads out of it, or has no suffix of `SUFFIXES` is passed over and reported as
        `Skipped`, as is a file met before. A folder in which nothing can be read raises `ReadingError`.
        """
        seen: set[Path] = set()
        for path in paths:
            if str(path) == STDIN or not stat.S_ISDIR(_mode(Path(path))):
                key = Path(path) if str(path) == STDIN else Path(path).resolve()
                if key in seen:
                    yield Skipped(Path(path), "was already read")
                    continue
                seen.add(key)
                yield self.read(path)
            else:
                yield from self._folder(Path(path), seen)

    def _folder(self, folder: Path, seen: set[Path]) -> Iterator[Source | Skipped]:
        found = False
        skipped: list[Skipped] = []
        for entry in list_files(folder, SUFFIXES, follow=self._follow):
            source = entry if isinstance(entry, Skipped) else self._entry(entry, seen)
            if isinstance(source, Skipped):
                skipped.append(source)
            found = found or isinstance(source, Source) or Path(os.path.realpath(source.path)) in seen
            yield source
        if not found:
            kinds = ", ".join(sorted(SUFFIXES))
            raise ReadingError(
                f"nothing in the folder {folder} can be read: {name_reasons(skipped)}: give one with {kinds}"
            )

    def _entry(self, path: Path, seen: set[Path]) -> Source | Skipped:
        key = Path(os.path.realpath(path))
        if key in seen:
            return Skipped(path, "was already read")
        try:
            source = self.read(path)
        except (ReadingError, MissingDependency) as error:
            return Skipped(path, str(error))
        seen.add(key)
        return source

    def _file(self, path: Path) -> Source:
        if stat.S_ISDIR(_mode(path)):
            raise ReadingError(f"{path} is a folder: name a file in it, or read it with `read_all`")
        name = _name(path)
        suffix = path.suffix.lower()
        try:
            if suffix in _ROWS:
                # Read twice, so that a fault in the last row is found before the first is taken.
                ids = tuple(document.id for document in rows(path, name, self._prefix))
                return Source(name, ids, self._rows(path, name))
            documents = self._converted(path, name) if suffix in FORMATS else (_text(path, name),)
        except OSError as error:
            raise _unreadable(path, error) from error
        return Source(name, tuple(document.id for document in documents), documents)

    def _rows(self, path: Path, name: str) -> Iterator[Document]:
        try:
            yield from rows(path, name, self._prefix)
        except OSError as error:
            raise _unreadable(path, error) from error

    def _converted(self, path: Path, name: str) -> tuple[Document, ...]:
        with path.open("rb") as file:
            if not file.read(1):
                raise ReadingError(f"{path} is empty: give a source with text, or leave it out")
        documents = self._process.read(Path(name), FORMATS[path.suffix.lower()])
        found = tuple(document for document in documents if document.text.strip())
        if not found:
            raise ReadingError(f"{path} holds no text (is it scanned, or made by scripts?): save its text to a file")
        return found


def _text(path: Path, name: str) -> Document:
    return Document(id=name, text=decoded(path.read_bytes(), str(path)), source=name)


def _standard_input() -> Source:
    if sys.stdin is None:
        raise ReadingError("standard input is closed: pipe text into the command, or name a file")
    text = decoded(sys.stdin.buffer.read(), "standard input")
    document = Document(id=f"stdin-{sha256(text.encode()).hexdigest()[:12]}", text=text, source="stdin")
    return Source(document.source, (document.id,), (document,), is_file=False)


def _mode(path: Path) -> int:
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise ReadingError(f"{path} does not exist: check the path") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise _unreadable(path, error) from error
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise ReadingError(f"{path} is neither a file nor a folder: pipe it in and name it `{STDIN}`")
    return mode


def _name(path: Path) -> str:
    name = path.resolve().as_posix()
    try:
        name.encode()
    except UnicodeEncodeError:
        raise ReadingError(f"the path {name!a} is not UTF-8: rename the file") from None
    return name


def _unreadable(path: Path, error: OSError | ValueError) -> ReadingError:
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return ReadingError(f"{path} cannot be read ({reason}): check its permissions, or leave it out")
