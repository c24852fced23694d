"""What lies in the scope of a question and was not read when it was added: scanned pages, and files of folders.

The scanned pages of a document are in its metadata. The files are kept in the tome with their reasons, by the nearest
folder above that has documents, until they are read or it has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from tomewise.events import shorten
from tomewise.reading.folder import Skipped, resolve_path
from tomewise.store.contract import Store
from tomewise.store.records import DocumentRecord
from tomewise.tome.stated_fields import LEFT_OUT, is_below, read_by_path, write_by_path
from tomewise.types import Condition, Scope, Unread
from tomewise.types.place import name_document

_MOST = 10_000  # files
_NAMED = 3
_LONGEST = 100  # characters of a name with its reason
_SCANNED = Condition("scanned_pages", ">=", 1)


def keep_left_out(store: Store, read: Sequence[str], skipped: Iterable[Skipped]) -> None:
    """Keep the files that were lost while these full paths were read, in place of what is known of these paths."""
    known = read_by_path(store, LEFT_OUT)
    by_folder = {
        folder: {name: why for name, why in files.items() if not any(is_below(f"{folder}/{name}", own) for own in read)}
        for folder, files in known.items()
    }
    if lost := [entry for entry in skipped if entry.is_lost][:_MOST]:
        holders = _list_folders(store.documents())
        for entry in lost:
            path = PurePosixPath(resolve_path(entry.path.parent), entry.path.name)
            folder = next(each for each in map(str, path.parents) if each in holders)
            reason = entry.reason.partition(": ")[0].rpartition("/")[2]  # without its path and its remedy
            name = str(path.relative_to(folder))
            by_folder.setdefault(folder, {})[name] = reason.removeprefix(path.name).strip()
    if by_folder != known:
        write_by_path(store, LEFT_OUT, by_folder)


def list_unread(store: Store, within: Scope | None = None) -> Iterator[Unread]:
    """What of a scope was not read when it was added: files beside documents that are all in it, and scanned pages."""
    scope = within or Scope()
    files = read_by_path(store, LEFT_OUT)
    if files and within:
        inside = {record.id for record in store.documents(within)}
        outside = _list_folders(record for record in store.documents() if record.id not in inside)
        files = {folder: own for folder, own in files.items() if folder not in outside}
    scanned = [
        f"{name_document(record.id)}: p. {str(record.metadata[_SCANNED.field]).strip('[]')}"
        for record in store.documents(replace(scope, where=(*scope.where, _SCANNED)))
    ]
    lost = [f"{name}: {why}" for own in files.values() for name, why in own.items()]
    for what, names, mend in (
        ("partly scanned document", scanned, "recognise the text of these pages (OCR), then `tome add` it again"),
        ("unread file", lost, "`tome add` its folder when it is mended, or `--exclude` it"),
    ):
        if names:
            first = tuple(shorten(name, _LONGEST) for name in names[:_NAMED])
            yield Unread(what=what, count=len(names), names=first, mend=mend)


def _list_folders(records: Iterable[DocumentRecord]) -> set[str]:
    """The folders that hold the files of these documents, and those above."""
    return {str(folder) for record in records for folder in PurePosixPath(record.source).parents}
