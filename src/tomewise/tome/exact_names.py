"""Documents by exact names, as a removal needs them: what fits a name only in part is suggested, and not found.

A question or a search is narrowed by the same names.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from glob import escape, has_magic
from itertools import takewhile
from typing import TYPE_CHECKING

from tomewise.errors import UnknownName, UsageError, suggest
from tomewise.reading.folder import resolve_path

if TYPE_CHECKING:
    from tomewise.store.contract import Store
    from tomewise.store.records import DocumentRecord

_LISTED = 10  # documents that an error names
_SUGGESTED = 3
_LONGEST = 1_000  # characters of a pattern: one of brackets takes time that grows with the square


@dataclass(frozen=True, slots=True)
class NamedDocuments:
    """The documents that a name stands for. `single` says that it is the id, the path or the title of one."""

    records: tuple[DocumentRecord, ...]
    single: bool


def find_exactly(name: str, store: Store) -> NamedDocuments:
    """The documents with this id, path or title, from this file or folder, or that fit this pattern.

    A path, a folder or a pattern may be relative to the current folder. A pattern holds `*`, `?` or `[...]`, which
    stand for `/` too, and fits ids, titles, file names and paths. Raises UsageError for an empty name, and UnknownName
    for a title that several documents have, for a name that means two things, and for one that fits nothing, or a part.
    """
    path, exact = _find_id(name, store)
    if exact:
        return NamedDocuments((exact,), single=True)
    records = store.documents()
    files = [record for record in records if path in (record.id, record.source) or record.source == name]
    files = files or [record for record in records if record.source.startswith(path.rstrip("/") + "/")]
    titled = [record for record in records if name in (record.id, record.title)]
    if len(titled) > 1 or (titled and files and titled != files):
        raise UnknownName(f"{name!r} fits {_list_ids(titled + files)}: give the whole id of one")
    if found := titled or files:
        is_whole = found == titled or not {name, path}.isdisjoint(_names(found[0]))
        return NamedDocuments(tuple(found), single=len(found) == 1 and is_whole)
    if has_magic(name) and len(name) > _LONGEST:
        raise UsageError(f"a pattern of {len(name):,} characters is too long: use {_LONGEST:,} at most")
    if has_magic(name) and (found := _fit_pattern(name, records)):
        return NamedDocuments(tuple(found), single=False)
    raise UnknownName(f"no document {name!r} in {store.address}: {_suggest(name, records, store)}")


def _find_id(name: str, store: Store) -> tuple[str, DocumentRecord | None]:
    """The path that a name would be, and the document with this id, unless the path is the id of another one.

    Most callers know the id: the records of all documents are not read for it. Raises UsageError for an empty name.
    """
    if not name.strip():
        raise UsageError("the name of the document is empty: `tome show` lists the documents")
    path = resolve_path(name)
    exact = {record.id: record for record in store.documents([name, path])}
    return path, exact.get(name) if len(exact) == 1 else None


def _names(record: DocumentRecord) -> tuple[str, str]:
    return record.id, record.source


def _fit_pattern(pattern: str, records: Sequence[DocumentRecord]) -> list[DocumentRecord]:
    parts = pattern.replace(os.sep, "/").split("/")
    fixed = list(takewhile(lambda part: not has_magic(part), parts))
    here = resolve_path("/".join(fixed) + "/" if fixed else ".").rstrip("/")
    whole = "/".join([escape(here), *parts[len(fixed) :]])
    return [
        record
        for record in records
        if any(fnmatchcase(text, pattern) for text in (record.id, record.title, record.id.rsplit("/", 1)[-1]))
        or any(fnmatchcase(text, whole) for text in _names(record))
    ]


def _suggest(name: str, records: Sequence[DocumentRecord], store: Store) -> str:
    """What may be meant: ids that hold the name, as a removal takes them, or the nearest name."""
    near = [record.id for record in records if name in record.id][:_SUGGESTED]
    if not near:
        return suggest_document(name, store)
    here = resolve_path(".") + "/"
    words = " or ".join(repr(id.removeprefix(here)) for id in near)
    return f"did you mean {words}? a part of a name removes nothing"


def _list_ids(records: Sequence[DocumentRecord]) -> str:
    ids = sorted({record.id for record in records})
    more = ", ..." if len(ids) > _LISTED else ""
    return f"{len(ids)} documents ({', '.join(map(repr, ids[:_LISTED]))}{more})"


def find_document(name: str, store: Store) -> DocumentRecord:
    """The document with this id, title, source or part of its id. Raises UnknownName for no match and for several."""
    path, exact = _find_id(name, store)
    if exact:
        return exact
    records = store.documents()
    for matches in (
        [record for record in records if record.id in (name, path)],
        [record for record in records if record.title == name],
        [record for record in records if record.source in (name, path)],
        [record for record in records if record.id.endswith("/" + name)],
        [record for record in records if name in record.id],
    ):
        if len(matches) == 1:
            return matches[0]
        if matches:
            examples = ", ".join(repr(record.id) for record in matches[:3]) + (", ..." if len(matches) > 3 else "")
            raise UnknownName(f"{name!r} fits {len(matches)} documents ({examples}): give the whole id")
    raise UnknownName(f"no document {name!r} in {store.address}: {suggest_document(name, store)}")


def suggest_document(name: str, store: Store) -> str:
    """The remedy for a document that does not exist: the nearest id, title or file name, and where all are listed."""
    records = store.documents()
    known = {spelling for record in records for spelling in (record.id, record.id.rsplit("/", 1)[-1], record.title)}
    return f"{suggest(name, known - {''})}`tome show` lists the documents"
