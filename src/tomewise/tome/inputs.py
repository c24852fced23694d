"""From what a caller names to documents: sources to be read, and documents that a tome holds."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tomewise.errors import ReadingError, UnknownName, UsageError
from tomewise.memory.passages import Lost
from tomewise.reading.folder import Skipped
from tomewise.reading.json_lines import add_prefix
from tomewise.reading.read import Source, SourceReader
from tomewise.types import Document, DocumentId

if TYPE_CHECKING:
    from tomewise.store.sqlite.store import DocumentRecord, SqliteStore

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


class Claims:
    """Which source each document of a tome is from, so that none takes the place of another's."""

    def __init__(self, origins: Mapping[DocumentId, str]) -> None:
        self._origins = dict(origins)
        self._held: dict[str, set[DocumentId]] = defaultdict(set)
        for document, source in origins.items():
            self._held[source].add(document)

    def check(self, source: Source) -> None:
        """Raise ReadingError when a document of another source has an id of this one."""
        for document in source.ids:
            other = self._origins.get(document, source.name)
            if other != source.name:
                raise ReadingError(
                    f"{source.name}: the id {document!r} is that of a document from {other}: put a name before the ids "
                    f"of rows with --prefix NAME (`prefix=` from Python), or remove the other document first"
                )

    def take(self, source: Source) -> frozenset[DocumentId]:
        """Note what a source has. Returns the documents that it had before, and has no more."""
        held = self._held[source.name]
        lost = frozenset(held.difference(source.ids)) if source.is_file else frozenset[DocumentId]()
        for document in lost:
            del self._origins[document]
        held -= lost
        held.update(source.ids)
        self._origins.update(dict.fromkeys(source.ids, source.name))
        return lost


def documents(
    sources: Iterable[str | Path | Document],
    reader: SourceReader,
    claims: Claims,
    skipped: dict[str, str],
    *,
    prefix: str = "",
) -> Iterator[Document | Lost]:
    """The documents of all sources, and before those of a file what it has no more since it was added last.

    What is passed over in folders goes to `skipped`, by path with the reason. Raises ReadingError.
    """
    for given in sources:
        if isinstance(given, Document):
            document = _storable(replace(given, id=add_prefix(prefix, given.id)))
            one = Source(document.source, (document.id,), (document,), is_file=False)
            claims.check(one)
            claims.take(one)
            yield document
    for source in reader.read_all(source for source in sources if not isinstance(source, Document)):
        if isinstance(source, Skipped):
            skipped[str(source.path)] = source.reason
            continue
        if lost := claims.take(source):
            yield Lost(tuple(sorted(lost)))
        yield from source.documents


def check_prefix(prefix: str) -> None:
    """Raise UsageError for a name that nothing could be found under."""
    if prefix and (prefix != prefix.strip() or _UNSTORABLE.search(prefix)):
        raise UsageError(f"the prefix {prefix!a} begins or ends with a blank, or cannot be stored: give a plain name")


def _storable(document: Document) -> Document:
    """A document as it came from a program. Raises ReadingError for what no file could hold either."""
    if not document.id.strip() or not document.text.strip():
        raise ReadingError(f"the document {document.id!r} has no id or no text: give it both, or leave it out")
    for name in ("id", "title", "text", "source"):
        found = _UNSTORABLE.search(getattr(document, name))
        if found:
            where = f"the {name} of the document {document.id!a} holds the character {found[0]!a} at {found.start()}"
            raise ReadingError(f"{where}: replace it")
    return document


def the_one(name: str, store: SqliteStore) -> DocumentRecord:
    """The document that `name` names. Raises UnknownName when there is none, or more than one."""
    if not name.strip():
        raise UsageError("the name of the document is empty: `tome show` lists what there is")
    records = store.documents()
    path = os.path.realpath(name)
    for found in (
        [record for record in records if record.id in (name, path)],
        [record for record in records if record.title == name],
        [record for record in records if record.source in (name, path)],
        [record for record in records if record.id.endswith("/" + name)],
        [record for record in records if name in record.id],
    ):
        if len(found) == 1:
            return found[0]
        if found:
            some = ", ".join(repr(record.id) for record in found[:3]) + (", ..." if len(found) > 3 else "")
            raise UnknownName(f"{name!r} fits {len(found)} documents ({some}): give the whole id")
    raise UnknownName(f"no document {name!r} in {store.path}: `tome show` lists what there is")
