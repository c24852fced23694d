"""Fields that the user states of documents, beside those that their sources state.

They are kept in the tome by the path that they were stated with, a file or a folder, and belong to every document from
there, whenever it is read: what is added later, too. The field `title` is the title of a document.

Files of folders that could not be read are kept with their reasons, by the nearest folder above that has documents.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from tomewise.addresses import is_address
from tomewise.errors import ReadingError, UsageError
from tomewise.reading.folder import Skipped, resolve_path
from tomewise.reading.metadata import UNSTORABLE, cut_document, find_unstorable, select_plain
from tomewise.reading.read import STDIN, NamedFile, ReadSource
from tomewise.store.contract import Store
from tomewise.store.lookups import read_by_path
from tomewise.store.records import LEFT_OUT, SETTINGS
from tomewise.types import Document, Metadata

_KEY = "fields"  # the setting of a tome that holds them
_MOST_LEFT_OUT = 10_000  # files
_TITLE = "title"


class StatedFields:
    """The fields of a tome by path, and those that are `given` for the documents of this addition from `sources`.

    An empty value takes a field back, for its path, from this path and from the folders above. What is given is kept
    once a source from its path is accepted.
    """

    def __init__(
        self, store: Store, given: Metadata, sources: Iterable[str | Path | Document | NamedFile] = ()
    ) -> None:
        self._store = store
        self._given = given
        self._kept = read_by_path(store, _KEY)
        self._by_path = dict(self._kept)
        self._plural: set[str] = set()  # sources of several documents, to which no title belongs
        for source in sources if given else ():
            if isinstance(source, str | Path) and str(source) != STDIN:
                path = str(source) if is_address(str(source)) else resolve_path(source)
                self._by_path[path] = {**self._by_path.get(path, {}), **given}
        self._pending = {path for path, fields in self._by_path.items() if fields != self._kept.get(path)}

    def accept(self, source: ReadSource) -> None:
        """Keep what is given for the path of a source. Raises ReadingError for a title of several documents."""
        if len(source.ids) > 1:
            if self._given.get(_TITLE):
                raise ReadingError(
                    f"{source.name} holds {len(source.ids)} documents, and one title is given: leave the title out"
                )
            self._plural.add(source.name)
        self._keep({path for path in self._pending if _is_below(source.name, path)})

    def describe(self, document: Document, before: str = "") -> Document:
        """The document with the fields of its path, those of the longest path before others, and with those given.

        Those of `before`, the path that its file had, are its own too.
        """
        fields: dict[str, Any] = {}
        folders = [path for path in self._by_path if _is_below(document.source, path) and path != document.source]
        for path in (*sorted(folders), before, document.source):
            fields |= self._by_path.get(path, {})
        fields |= {name: value for name, value in self._given.items() if value != ""}
        fields = {name: value for name, value in fields.items() if value != ""}
        stated = " ".join(str(fields.pop(_TITLE, "")).split())
        title = document.title if document.source in self._plural else stated or document.title
        if not fields and title == document.title:
            return document
        # What is stated comes first, since what does not fit is cut from the end.
        return cut_document(replace(document, title=title, metadata={**fields, **document.metadata, **fields}))

    def move(self, before: str, path: str) -> None:
        """Give the fields of the path that a file had to the path that it has."""
        if before in self._by_path:
            self._by_path[path] = {**self._by_path[before], **self._by_path.get(path, {})}
            self._keep({path})

    def _keep(self, paths: Set[str]) -> None:
        if paths:
            self._pending -= paths
            self._kept |= {path: self._by_path[path] for path in paths}
            _write(self._store, _KEY, self._kept)


def keep_left_out(store: Store, read: Iterable[str], skipped: Iterable[Skipped]) -> None:
    """Keep the files that were lost below these full paths, which were read, in place of what is known of these."""

    above = set(read)

    def is_read(path: str) -> bool:
        return path in above or any(str(folder) in above for folder in PurePosixPath(path).parents)

    known = read_by_path(store, LEFT_OUT)
    by_folder = {
        folder: {name: why for name, why in files.items() if not is_read(f"{folder}/{name}")}
        for folder, files in known.items()
    }
    lost = {f"{resolve_path(each.path.parent)}/{each.path.name}": each.reason for each in skipped if each.is_lost}
    sources = [record.source for record in store.documents()] if lost else []
    holders = {str(folder) for source in sources for folder in PurePosixPath(source).parents}
    for path in list(filter(is_read, lost))[:_MOST_LEFT_OUT]:
        folder = next((str(each) for each in PurePosixPath(path).parents if str(each) in holders), "/")
        name = UNSTORABLE.sub("?", path.removeprefix(folder).lstrip("/"))
        reason = lost[path].partition(": ")[0].rpartition("/")[2]  # without its path and its remedy
        by_folder.setdefault(folder, {})[name] = reason.removeprefix(path.rpartition("/")[2]).strip()
    if by_folder != known:
        _write(store, LEFT_OUT, by_folder)


def forget_unused(store: Store) -> None:
    """Forget the fields, and the files that could not be read, of paths from which no document is left."""
    for key in (_KEY, LEFT_OUT):
        if by_path := read_by_path(store, key):
            sources = {record.source for record in store.documents()}
            used = {path: each for path, each in by_path.items() if any(_is_below(source, path) for source in sources)}
            if used != by_path:
                _write(store, key, used)


def check_fields(fields: Metadata, sources: Sequence[object]) -> None:
    """Raise UsageError for fields that metadata cannot have, and for one title of several sources or of a folder."""
    if not isinstance(fields, Mapping) or len(select_plain(fields)) < len(fields):
        raise UsageError(f"metadata must be names with texts, numbers, booleans or lists of these, not {fields!r:.200}")
    if (unstorable := find_unstorable(fields)) is not None or "" in fields:
        raise UsageError(
            f"the field {unstorable or ''!a} of the metadata cannot be stored: give it a plain name and value"
        )

    is_folder = isinstance(sources[0], str | Path) and os.path.isdir(sources[0])
    if fields.get(_TITLE) and (len(sources) > 1 or is_folder):
        raise UsageError("one title cannot be that of several documents: add the file alone, or leave the title out")


def _is_below(source: str, path: str) -> bool:
    return source == path or source.startswith(path.rstrip("/") + "/")


def _write(store: Store, key: str, by_path: Mapping[str, Metadata]) -> None:
    """Keep fields by path under a setting of the tome."""
    with store.write() as change:
        stated = {path: fields for path, fields in by_path.items() if fields}
        change.put_note(SETTINGS, key, json.dumps(stated, ensure_ascii=False, sort_keys=True))
