"""The names under which documents go out to clients of a server, who must not learn the paths of files.

An id that is an absolute path goes out as the path relative to the folder that was given to `add`. Every other id is
its own name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from hashlib import sha256
from threading import Lock
from typing import TYPE_CHECKING, Any

from tomewise.errors import TomewiseError
from tomewise.types import DocumentId

if TYPE_CHECKING:
    from tomewise.store.contract import Store

_ABSOLUTE = re.compile(r"/|\\\\|[A-Za-z]:[/\\]")  # how an absolute path begins, on Windows too
_NO_NAME = re.compile(rf"{_ABSOLUTE.pattern}|\\|\.\.(?:[/\\]|$)|$")  # how no name begins
_PATH_START = re.compile(rf"(?<![\w.-])(?:{_ABSOLUTE.pattern})[\w.-]*")
_GOES_ON = re.compile(r"[\w-]")  # after a folder: it was another one
_BELOW = re.compile(r"[/\\]+(?=[\w.])")
_DIGITS = 12  # of a digest
_HOLD_IDS = frozenset({"document", "documents"})  # keys of plain data


class DocumentNames:
    """The names of the documents of a tome at one moment. They are unique, and do not depend on the order of adding.

    `sources` and `folders` are those of each document by its id (see `Texts.origins` and `Texts.folders`). A document
    without a folder takes that of its file. Where two paths give one name, each gets the shortest ending of its path
    that no other path has.
    """

    def __init__(self, sources: Mapping[DocumentId, str], folders: Mapping[DocumentId, str]) -> None:
        self._sources = sources
        self._folders = folders
        self._names = self._choose_names()
        self._ids = {name: document for document, name in self._names.items()}

    def name(self, document: DocumentId) -> str:
        """The name of a document. A path that is not in the tome, as an old trace may hold it, loses its folders."""
        if document in self._names or document in self._sources or not _ABSOLUTE.match(document):
            return self._names.get(document, document)
        name = next(_list_endings(document), "")
        return name if name and self.find(name) is None else _add_digest(name, document)

    def find(self, name: str) -> DocumentId | None:
        """The id of the document with this name or this id; None if no document has it."""
        return name if name in self._sources else self._ids.get(name)

    def rename(self, value: Any) -> Any:
        """Plain data in which the name takes the place of each text that is the id of a document. Keys stay."""
        if isinstance(value, str):
            return self._names.get(value, value)
        if isinstance(value, Mapping):
            return {
                key: self._rename_ids(item) if key in _HOLD_IDS else self.rename(item) for key, item in value.items()
            }
        return [self.rename(item) for item in value] if isinstance(value, list | tuple) else value

    def _rename_ids(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.name(value)
        return list(map(self._rename_ids, value)) if isinstance(value, list | tuple) else self.rename(value)

    def clean(self, message: str) -> str:
        """A message with names in place of the ids that are paths, and without the paths of their folders."""
        pieces, end = [], 0
        for found in _PATH_START.finditer(message):
            if found.start() >= end and found[0] in self._starts:
                pieces.append(message[end : found.start()])
                end, name = self._shorten_path(message, found.start())
                pieces.append(name)
        return "".join([*pieces, message[end:]])

    def _choose_names(self) -> dict[DocumentId, str]:
        """The names of the ids that are absolute paths."""
        paths = [document for document in self._sources if _ABSOLUTE.match(document)]
        taken = self._sources.keys() - paths if paths else set()
        names = {path: self._find_relative(path) for path in paths}
        counts = Counter(names.values())
        equal = [path for path, name in names.items() if counts[name] > 1 or name in taken or not name]
        if not equal:
            return names
        endings = Counter(ending for path in paths for ending in self._list_endings(path))
        for path in equal:
            own = self._list_endings(path)
            names[path] = next((ending for ending in own if endings[ending] == 1 and ending not in taken), "")
        taken |= set(names.values())
        # A path that is itself the ending of another one has no ending of its own.
        whole = {path: ["", *self._list_endings(path)][-1] for path in equal if not names[path]}
        counts = Counter(whole.values())
        for path, name in whole.items():
            if name in taken or counts[name] > 1:
                while name in taken or name in counts:
                    name = _add_digest(name, path)
            names[path] = name
        return names

    def _find_relative(self, path: DocumentId) -> str:
        """The path relative to its folder, or to that of its file; empty if neither is a name."""
        folder = self._folders.get(path, "")
        start = len(folder.rstrip("/")) + 1
        if folder and path.startswith(folder) and path[start - 1 : start] == "/" and start <= self._measure_file(path):
            inside = path[start:]
            if not _NO_NAME.match(inside):
                return inside
        return next(self._list_endings(path), "")

    def _measure_file(self, path: DocumentId) -> int:
        """The length of the path of the file. What follows it, such as the number of a row, may hold a slash too."""
        source = self._sources[path]
        return len(source) if source and path.startswith(source) else len(path)

    def _list_endings(self, path: DocumentId) -> Iterator[str]:
        return _list_endings(path, self._measure_file(path))

    def _shorten_path(self, message: str, start: int) -> tuple[int, str]:
        """Where the longest known path that begins here ends, and what takes its place."""
        for end in range(min(len(message), start + self._longest), start, -1):
            path = message[start:end]
            if name := self._names.get(path):
                return end, name
            if path in self._outermost and not _GOES_ON.match(message, end):
                below = _BELOW.match(message, end)
                return (below.end(), "") if below else (end, re.split(r"[/\\]", path)[-1])
        return start, ""

    @cached_property
    def _outermost(self) -> frozenset[str]:
        """The folders of all documents that are in none of the others, as they are written in messages."""
        paths = {path for path in (*self._sources, *self._sources.values()) if _ABSOLUTE.match(path)}
        folders = {re.split(r"[/\\][^/\\]*$", path)[0] or path for path in paths} | set(self._folders.values())
        outermost: list[str] = []
        for folder in sorted(folders - {"", "/"}):
            if not outermost or not folder.startswith(outermost[-1] + "/"):
                outermost.append(folder)
        return frozenset(spelled for path in outermost for spelled in (path, ascii(path)[1:-1], repr(path)[1:-1]))

    @cached_property
    def _starts(self) -> frozenset[str]:
        found = (_PATH_START.match(path) for path in (*self._names, *self._outermost))
        return frozenset(start[0] for start in found if start)

    @cached_property
    def _longest(self) -> int:
        return max(map(len, (*self._names, *self._outermost)), default=0)


class KeptNames:
    """The names of the documents of a store, chosen again when its documents change. Several threads may read them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = Lock()
        self._kept: tuple[object, DocumentNames] | None = None

    def read(self) -> DocumentNames:
        """The names as they are now. Raises StoreError."""
        version = self._store.versions(["documents"])
        with self._lock:
            if self._kept is None or self._kept[0] != version:
                records = self._store.documents()
                sources = {record.id: record.source for record in records}
                self._kept = version, DocumentNames(sources, {record.id: record.folder for record in records})
            return self._kept[1]


def hide_paths(message: str, kept: Iterable[KeptNames]) -> str:
    """The message without paths of documents: see `DocumentNames.clean`. A store that cannot be read is left out."""
    if "/" in message or "\\" in message:
        for names in kept:
            with suppress(TomewiseError):
                message = names.read().clean(message)
    return message


def _list_endings(path: str, length: int | None = None) -> Iterator[str]:
    """The endings of a path that can be names, the shortest first. Each begins after a slash in its first `length`
    characters."""
    separators = r"/" if path.startswith("/") else r"[/\\]"
    for found in reversed(list(re.finditer(separators, path[:length]))):
        if not _NO_NAME.match(path, found.end()):
            yield path[found.end() :]


def _add_digest(name: str, path: str) -> str:
    return f"{name or 'document'}~{sha256((name + path).encode()).hexdigest()[:_DIGITS]}"
