"""Read the sources that a caller names as documents."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tomewise.errors import MissingDependency, ReadingError, UsageError
from tomewise.memory.passages import LostDocuments
from tomewise.reading.fetching import is_address
from tomewise.reading.folder import Skipped
from tomewise.reading.json_lines import add_prefix
from tomewise.reading.lengths import ID, PATH, cut_document
from tomewise.reading.metadata import UNSTORABLE, find_unstorable, select_plain
from tomewise.reading.read import STDIN, NamedFile, Source, SourceReader
from tomewise.tome.inputs import check_type
from tomewise.types import Document, DocumentId

if TYPE_CHECKING:
    from tomewise.store.contract import Store

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


class Claims:
    """The source of each document in a tome. A document must not replace one from another source."""

    def __init__(self, origins: Mapping[DocumentId, str]) -> None:
        self._origins = dict(origins)
        self._ids: dict[str, set[DocumentId]] = defaultdict(set)  # by source
        for document, source in origins.items():
            self._ids[source].add(document)

    def check(self, source: Source) -> None:
        """Raise ReadingError if an id of this source belongs to a document of another source."""
        for document in source.ids:
            owner = self._origins.get(document, source.name)
            if owner != source.name:
                raise ReadingError(
                    f"{source.name}: the id {document!r} is that of a document from {owner}: put a name before the ids "
                    f"of rows with --prefix NAME (`prefix=` from Python), or remove the other document first"
                )

    def take(self, source: Source) -> frozenset[DocumentId]:
        """Record the ids of a source. Returns the ids that it had before and no longer has."""
        ids = self._ids[source.name]
        lost = frozenset(ids.difference(source.ids)) if source.is_file else frozenset[DocumentId]()
        for document in lost:
            del self._origins[document]
        ids -= lost
        ids.update(source.ids)
        self._origins.update(dict.fromkeys(source.ids, source.name))
        return lost


def read_sources(
    sources: Sequence[str | os.PathLike[str] | Document | NamedFile],
) -> list[str | Path | Document | NamedFile]:
    """The sources, with a Path for each object that is one. Raises UsageError for what cannot be added, or nothing."""
    if not sources:
        raise UsageError("nothing to add: name a file, a folder, or - for standard input")
    for source in sources:
        check_type(
            "a source", source, str | os.PathLike | Document | NamedFile, "a path or a Document(id=..., text=...)"
        )
    return [Path(source) if isinstance(source, os.PathLike) else source for source in sources]


def check_prefix(prefix: str) -> None:
    """Raise UsageError for a prefix with outer blanks or with characters that cannot be stored."""
    check_type("prefix", prefix, str, "a text")
    if prefix and (prefix != prefix.strip() or UNSTORABLE.search(prefix)):
        raise UsageError(f"the prefix {prefix!a} begins or ends with a blank, or cannot be stored: give a plain name")


def read_documents(
    sources: Iterable[str | Path | Document | NamedFile],
    reader: SourceReader,
    claims: Claims,
    skipped: dict[str, str],
    failed: dict[str, str] | None,
    folders: dict[DocumentId, str],
    prefix: str,
) -> Iterator[Document | LostDocuments]:
    """The documents of all sources. `LostDocuments`, the ids that a file no longer has, come before those of the
    file.

    Puts the path of each entry that was skipped into `skipped`, with the reason. A source that cannot be read raises
    ReadingError or MissingDependency; with a dict `failed` it is put there instead, and the others go on. `folders`
    gets the folder of each document of a file: the one that was named, or that of the file that was named.
    """
    seen: set[Path] = set()
    for item in sorted(sources, key=lambda item: not isinstance(item, Document)):
        try:
            if isinstance(item, Document):
                yield _take_document(item, claims, prefix)
            else:
                folder = _find_folder(item)
                for document in _read_source(item, reader, claims, skipped, seen):
                    if folder and isinstance(document, Document):
                        folders[document.id] = folder
                    yield document
        except (ReadingError, MissingDependency) as error:
            if failed is None:
                raise
            failed[_name_source(item)] = str(error)


def _take_document(item: Document, claims: Claims, prefix: str) -> Document:
    document = replace(item, id=add_prefix(prefix, item.id))
    _check_document(document)
    document = cut_document(replace(document, metadata=select_plain(document.metadata)))
    source = Source(document.source, (document.id,), (document,), is_file=False)
    claims.check(source)
    claims.take(source)
    return document


def _check_document(document: Document) -> None:
    """Raise ReadingError for a document without id or text, or with characters that a file could not hold."""
    for name in ("id", "text", "title", "source"):
        check_type(f"the {name} of a document", getattr(document, name), str, "a text")
    if not document.id.strip() or not document.text.strip():
        raise ReadingError(f"the document {document.id!r} has no id or no text: give it both, or leave it out")
    for name, longest in (("id", ID), ("source", PATH)):
        if (length := len(getattr(document, name))) > longest:
            what = f"the {name} of the document {document.id[:80]!a} has {length:,} characters"
            raise ReadingError(f"{what}: give it at most {longest:,}")
    for name in ("id", "title", "text", "source"):
        found = UNSTORABLE.search(getattr(document, name))
        if found:
            where = f"the {name} of the document {document.id!a} holds the character {found[0]!a} at {found.start()}"
            raise ReadingError(f"{where}: replace it")
    if len(select_plain(document.metadata)) < len(document.metadata):
        raise ReadingError(
            f"the metadata of the document {document.id!a} is not plain: give strings, numbers of 64 bits, booleans, "
            "or lists of these, under names that are strings"
        )
    if field := find_unstorable(document.metadata):
        where = f"the field {field!a} of the document {document.id!a}"
        raise ReadingError(f"{where} holds a character that a text cannot hold: replace it")


def _find_folder(source: str | Path | NamedFile) -> str:
    """The full path of a folder, or of the folder of a file; empty for what has none or is read under another name."""
    if isinstance(source, NamedFile) or str(source) == STDIN or is_address(str(source)):
        return ""
    try:
        path = Path(os.path.realpath(source))
        return (path if path.is_dir() else path.parent).as_posix()
    except (OSError, ValueError):  # the path is too long, or not allowed: reading says so
        return ""


def remember_folders(store: Store, folders: Mapping[DocumentId, str]) -> None:
    """Record the folders of documents where they differ from those in the store: the last addition counts."""
    known = {record.id: record.folder for record in store.documents(folders)} if folders else {}
    changed = {document: folder for document, folder in folders.items() if known.get(document, folder) != folder}
    if changed:
        with store.write() as change:
            change.set_folders(changed)


def _name_source(source: str | Path | Document | NamedFile) -> str:
    if isinstance(source, Document):
        return source.id
    return source.name if isinstance(source, NamedFile) else str(source)


def _read_source(
    source: str | Path | NamedFile, reader: SourceReader, claims: Claims, skipped: dict[str, str], seen: set[Path]
) -> Iterator[Document | LostDocuments]:
    if isinstance(source, NamedFile):
        entries: Iterable[Source | Skipped] = [reader.read(source.path, name=source.name)]
    elif isinstance(source, str) and is_address(source):
        entries = [reader.read_address(source)]
    else:
        entries = reader.read_all([_refuse_text(source)], seen)
    for entry in entries:
        if isinstance(entry, Skipped):
            skipped[str(entry.path)] = entry.reason
            continue
        if lost := claims.take(entry):
            yield LostDocuments(tuple(sorted(lost)))
        try:
            yield from entry.documents
        except ReadingError as error:  # rows that were changed since they were checked: the other files are read
            if isinstance(source, NamedFile) or not os.path.isdir(source):
                raise
            skipped[entry.name] = str(error)


def _refuse_text(source: str | Path) -> str | Path:
    """The source. Raises ReadingError for an address, which as a path would lose one of its slashes, and for a text."""
    if isinstance(source, str) and _ADDRESS.match(source):
        raise ReadingError(
            f"{source} is an address of another kind than http:// and https://: save what is there, then add that file"
        )
    if isinstance(source, str) and any(map(str.isspace, source)) and not os.path.lexists(source):
        what = f"{source[:80]}{'...' if len(source) > 80 else ''} does not exist"
        raise ReadingError(f"{what}: check the path, or pass a text as Document(id=..., text=...)")
    return source
