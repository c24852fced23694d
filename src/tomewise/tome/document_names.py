"""The names of documents: those by which they are found, and those under which they go out.

In Python and on the command line a document is found by its id, its title or its path. The clients of a server must not
learn the paths of files: to them an id that is an absolute path goes out as the path relative to the folder that was
given to `add`, and no name of theirs is looked up in the file system. Every other id is its own name.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from glob import escape, has_magic
from hashlib import sha256
from itertools import takewhile
from pathlib import PurePath
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from tomewise.errors import TomewiseError, UnknownName, UsageError, suggest
from tomewise.language.fences import oneline
from tomewise.reading.folder import resolve_path
from tomewise.store.contract import Store
from tomewise.store.lookups import read_record
from tomewise.store.records import BUILDS, DocumentRecord
from tomewise.tome.arguments import check_type
from tomewise.types import Document, DocumentId, Scope, write_plain
from tomewise.types.plain import map_texts

if TYPE_CHECKING:
    from tomewise.recall.outline import Outline
    from tomewise.tome.reports import Foresight, Slice

T = TypeVar("T")
_LISTED = 10  # documents that an error names
_EXAMPLES = 3
_LONGEST = 1_000  # characters of a pattern: one of brackets takes time that grows with the square


@dataclass(frozen=True, slots=True)
class NamedDocuments:
    """The documents that a name stands for. `single` says that it is the id, the path or the title of one."""

    records: tuple[DocumentRecord, ...]
    single: bool


def find_exactly(name: str, store: Store) -> NamedDocuments:
    """The documents with this id, path or title, from this file or folder, or that fit this pattern.

    This is what a removal needs: what fits a name only in part is suggested, and not found. A path, a folder or a
    pattern may be relative to the current folder. A pattern holds `*`, `?` or `[...]`, which stand for `/` too, and
    fits ids, titles, file names and paths. Raises UsageError for an empty name, and UnknownName for a title that
    several documents have, for a name that means two things, and for one that fits nothing, or a part.
    """
    path, exact = _find_id(name, store)
    if exact:
        return NamedDocuments((exact,), single=True)
    records = store.documents()
    files = [record for record in records if path in (record.id, record.source) or record.source == name]
    files = files or [record for record in records if record.source.startswith(path.rstrip("/") + "/")]
    titled = [record for record in records if name in (record.id, record.title)]
    if len(titled) > 1 or (titled and files and titled != files):
        raise UnknownName(f"{name!r} fits {_list_ids(titled + files, _LISTED)}: give the whole id of one")
    if found := titled or files:
        is_whole = found == titled or not {name, path}.isdisjoint((found[0].id, found[0].source))
        return NamedDocuments(tuple(found), single=len(found) == 1 and is_whole)
    if has_magic(name) and len(name) > _LONGEST:
        raise UsageError(f"a pattern of {len(name):,} characters is too long: use {_LONGEST:,} at most")
    if has_magic(name) and (found := _fit_pattern(name, records)):
        return NamedDocuments(tuple(found), single=False)
    here = resolve_path(".") + "/"
    near = " or ".join([repr(record.id.removeprefix(here)) for record in records if name in record.id][:_EXAMPLES])
    hint = f"did you mean {near}? a part of a name removes nothing" if near else suggest_document(name, store)
    raise UnknownName(f"no document {name!r} in {store.address}: {hint}")


def find_document(name: str, store: Store, within: Scope | None = None) -> DocumentRecord:
    """The document within a scope with this id, title, source or part of its id.

    Raises UnknownName for no match and for several.
    """
    path, exact = _find_id(name, store)
    if exact and within is None:
        return exact
    records = store.documents(within)
    found = _take_first(
        [record for record in records if record.id in (name, path)],
        [record for record in records if record.title == name],
        [record for record in records if record.source in (name, path)],
        [record for record in records if record.id.endswith("/" + name)],
        [record for record in records if name in record.id],
    )
    if not found:
        raise UnknownName(f"no document {name!r} in {store.address}: {suggest_document(name, store)}")
    if len(found) > 1:
        raise UnknownName(f"{name!r} fits {_list_ids(found, _EXAMPLES)}: give the whole id")
    return found[0]


def suggest_document(name: str, store: Store) -> str:
    """The remedy for a name of nothing: the nearest id, title, file name or folder, and where all are listed."""
    parts = len(PurePath(name).parts)
    known = {""}
    for each in store.documents():
        folder = "/".join(PurePath(each.id).parts[:-1][-parts:])  # of as many parts as the name
        known |= {each.id, _name_file(each), each.title, folder}
    return f"{suggest(name, known - {''})}`tome show` lists the documents"


def _find_id(name: str, store: Store) -> tuple[str, DocumentRecord | None]:
    """The path that a name would be, and the document with this id, unless the path is the id of another one.

    Most callers know the id: the records of all documents are not read for it. Raises UsageError for an empty name.
    """
    if not name.strip():
        raise UsageError("the name of the document is empty: `tome show` lists the documents")
    path = resolve_path(name)
    exact = {record.id: record for record in store.documents([name, path])}
    return path, exact.get(name) if len(exact) == 1 else None


def _fit_pattern(pattern: str, records: Sequence[DocumentRecord]) -> list[DocumentRecord]:
    parts = pattern.replace(os.sep, "/").split("/")
    fixed = list(takewhile(lambda part: not has_magic(part), parts))
    here = resolve_path("/".join(fixed) + "/" if fixed else ".").rstrip("/")
    whole = "/".join([escape(here), *parts[len(fixed) :]])
    return [
        record
        for record in records
        if any(fnmatchcase(text, pattern) for text in (record.id, record.title, _name_file(record)))
        or any(fnmatchcase(text, whole) for text in (record.id, record.source))
    ]


def _list_ids(records: Iterable[DocumentRecord], most: int) -> str:
    ids = sorted({record.id for record in records})
    more = ", ..." if len(ids) > most else ""
    return f"{len(ids)} documents ({', '.join(map(repr, ids[:most]))}{more})"


def _take_first(*matches: list[T]) -> list[T]:
    """The first of these lists that is not empty, if there is one."""
    return next(filter(None, matches), [])


def _name_file(record: DocumentRecord) -> str:
    """The last part of an id."""
    return record.id.rsplit("/", 1)[-1]


# ---------------------------------------------------------------- the names that clients of a server see

_ABSOLUTE = re.compile(r"/|\\\\|[A-Za-z]:[/\\]")  # how an absolute path begins, on Windows too
_NO_NAME = re.compile(rf"{_ABSOLUTE.pattern}|\\|\.\.(?:[/\\]|$)|$")  # how no name begins
_PATH_START = re.compile(rf"(?<![\w.-])(?:{_ABSOLUTE.pattern})[\w.-]*")
_GOES_ON = re.compile(r"[\w-]")  # after a folder: it was another one
_BELOW = re.compile(r"[/\\]+(?=[\w.])")
_DIGITS = 12  # of a digest
# Keys of plain data, by what is under them.
_HOLD_IDS = frozenset({"document", "documents", "added", "replaced", "unchanged", "removed", "moved"})
_STAYS = frozenset({"text", "before", "after", "metadata"})  # what documents and people say


class DocumentNames:
    """The names of the documents of a tome at one moment. They are unique, and do not depend on the order of adding.

    `sources` and `folders` are those of each document by its id (see `Texts.origins` and `Texts.folders`). A document
    without a folder takes that of its file. Where two paths give one name, each gets the shortest ending of its path
    that no other path has.
    """

    def __init__(self, sources: Mapping[DocumentId, str], folders: Mapping[DocumentId, str]) -> None:
        self._sources = sources
        self._folders = folders
        self._all_sources = frozenset(sources.values())
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

    def hide(self, thing: Any) -> Any:
        """A noun, or plain data, as JSON for those who must not see paths: the name takes the place of each id.

        Of a source only the name of the file stays. Words of documents, metadata and keys stay as they are.
        """
        return map_texts(write_plain(thing), self._hide, as_it_is=_STAYS)

    def _hide(self, text: str, key: str) -> str:
        if key == "source" and text in self._all_sources:
            return PurePath(text).name
        if key in ("summary", "names", "remark"):
            return self.clean(text)
        return self.name(text) if key in _HOLD_IDS else self._names.get(text, text)

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


class Documents:
    """The documents of a tome, or those `within` a scope: called or iterated, their records, sorted by id."""

    def __init__(
        self,
        store: Store,
        within: Scope | None = None,
        note_read: Callable[[Slice], None] = lambda _: None,
    ) -> None:
        self._store = store
        self._within = within
        self._note_read = note_read
        self.names = KeptNames(store)
        """The names under which a server shows the documents, and finds them."""

    def __call__(self) -> list[DocumentRecord]:
        return self._store.documents(self._within)

    def __iter__(self) -> Iterator[DocumentRecord]:
        return iter(self())

    def __len__(self) -> int:
        return len(self())

    def __getitem__(self, name: str) -> Document:
        """One document with its text, by its id, title, path or a part of its id. Raises UnknownName."""
        check_type("document", name, str, "an id, a title or a path")
        return self._store.document(find_document(name, self._store, self._within).id)

    def outline(self, name: str) -> Outline:
        """How a document is laid out: headings, pages, speakers, lengths. Raises UnknownName."""
        from tomewise.recall.outline import make_outline

        return make_outline(find_document(name, self._store, self._within), self._store)

    def read(self, name: str, part: str) -> Slice:
        """A part of a document: "page 3", "pages 3-5", "chapter The Lamp", "lines 10-20", "characters 0-500".

        A chapter is named by its heading, by words of it, or by its number; "parts 2-4" are passages. Raises
        UsageError, UnknownName.
        """
        from tomewise.recall.outline import find_part
        from tomewise.tome.reports import read_slice

        check_type("part", part, str, "a text")
        record = find_document(name, self._store, self._within)
        read = read_slice(record, *find_part(part, record, self._store), self._store)
        self._note_read(read)
        return read

    def __contains__(self, name: object) -> bool:
        return any(name in (record, record.id) for record in self())

    def foresee_removal(self, *documents: str | DocumentRecord) -> Foresight:
        """What `Tome.remove` would take with these documents. Raises UnknownName."""
        from tomewise.tome.reports import Foresight

        found = [find_exactly(each, self._store).records if isinstance(each, str) else (each,) for each in documents]
        passages = list(self._store.passages(documents={record.id for records in found for record in records}))
        layers = self._store.find_dependants(passages)
        models = _find_models(self._store.notes(BUILDS))
        paid: Counter[str] = Counter()
        for layer, count in layers.items():
            if names := models.get(layer):
                paid[names] += count
        return Foresight(len(passages), layers, dict(paid))


def _find_models(builds: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """The models that made each node layer, but for the free one; those of earlier builds too."""
    from tomewise.language.choose_model import EXTRACTIVE

    models: dict[str, str] = {}
    for layer, record in builds.items():
        recorded = ", ".join((str(record.get("model", "")), *map(str, record.get("former_models", ()))))
        names = ", ".join(sorted(set(recorded.split(", ")) - {"", EXTRACTIVE}))
        models |= dict.fromkeys(record.get("writes", (layer,)), names)
    return models


class KeptNames:
    """The names of the documents of a store, chosen again when its documents change, and how clients find by them.

    Several threads may use them.
    """

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

    def hide(self, thing: Any) -> Any:
        """See `DocumentNames.hide`."""
        return self.read().hide(thing)

    def list_all(self) -> dict[str, DocumentRecord]:
        """The documents by their names."""
        naming = self.read().name
        return {naming(record.id): record for record in self._store.documents()}

    def find(self, name: str) -> DocumentRecord:
        """The document that goes out under this name, or has this id. Raises UnknownName with the nearest."""
        document = self.read().find(name)
        if document is not None:
            return read_record(self._store, document)
        named = self.list_all()
        known = {record.title: own for own, record in named.items() if record.title}
        known |= {_name_file(record): own for own, record in named.items()}
        near = f"did you mean {known[name]!r}? " if name in known else suggest(name, named)
        raise UnknownName(f"no document {name!a} in {self._store.address}: {near}GET .../documents lists the ids")

    def find_all(self, names: Sequence[str]) -> list[DocumentRecord]:
        """The documents that `find` finds; of names that end with a slash, those in this folder and below it."""
        folders = [name for name in names if name.endswith("/")]
        found = [self.find(name) for name in names if not name.endswith("/")]
        named = self.list_all() if folders else {}
        listed = sorted(named)
        for folder in folders:
            start = bisect_left(listed, folder)
            end = bisect_right(listed, folder, key=lambda name: name[: len(folder)])
            found += [named[name] for name in listed[start:end]] or [self.find(folder)]
        return found

    def match(self, name: str) -> DocumentRecord:
        """The document with this name, as it is or as it was shown, this id, this title, or this part of its name.

        Raises UnknownName for no match and for several.
        """
        return self.match_all([name])[0]

    def match_all(self, names: Sequence[str]) -> list[DocumentRecord]:
        """The documents that `match` finds. They are listed at most once for all names."""
        if not all(name.strip() for name in names):
            raise UsageError("the name of the document is empty: list_documents lists them")
        exact = list(map(self.read().find, names))
        named = self.list_all() if None in exact else {}
        return [
            _match_name(name, named) if document is None else read_record(self._store, document)
            for name, document in zip(names, exact, strict=True)
        ]


def _match_name(name: str, named: Mapping[str, DocumentRecord]) -> DocumentRecord:
    found = _take_first(
        [own for own, record in named.items() if name in (show_name(own), show_name(record.id))],
        [own for own, record in named.items() if name in (record.title, show_name(record.title))],
        [own for own in named if own.endswith("/" + name)],
        [own for own in named if name in own],
    )
    shown = show_name(name)
    if not found:
        near = suggest(shown, map(show_name, named))
        raise UnknownName(f"no document {shown!r}: {near}list_documents lists them")
    if len(found) > 1:
        examples = ", ".join(repr(show_name(own)) for own in found[:_EXAMPLES])
        raise UnknownName(f"{shown!r} fits {len(found)} documents ({examples}): give the whole id")
    return named[found[0]]


_LONGEST_NAME = 300  # characters of an id or a title


def show_name(name: str) -> str:
    """An id or a title on one line; a long one is cut. `KeptNames.match` accepts a name in this form."""
    line = oneline(name)
    return line if len(line) <= _LONGEST_NAME else line[: _LONGEST_NAME - 1] + "…"


def hide_paths(message: str, places: Mapping[str, str], kept: Iterable[KeptNames]) -> str:
    """The message with what `places` says in place of each of them, and without paths of documents.

    See `DocumentNames.clean`; the names of a store that cannot be read are left out.
    """
    for place in sorted(places, key=len, reverse=True):
        message = message.replace(place, places[place])
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
