"""Keep a memory in step with folders: documents whose files are gone, and those whose files only have another path."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path, PurePosixPath

from tomewise.errors import UsageError
from tomewise.memory.passages import LostDocuments, digest_document
from tomewise.reading.folder import Skipped, resolve_path
from tomewise.store.contract import Store
from tomewise.tome.stated_fields import StatedFields
from tomewise.types import Document, DocumentId


class MovedFiles:
    """Documents of a tome whose files are no longer below some folders. `moved` has the new ids of those found again.

    Until a file with the same content is read, they count as gone. `kept` are documents whose files cannot be read any
    more, with the reasons. `forgets` is the setting `sync_forgets`.
    """

    def __init__(self, store: Store, folders: Iterable[str | Path | Document], forgets: str = "emptied") -> None:
        self.moved: list[DocumentId] = []
        self.kept: dict[DocumentId, str] = {}
        self._forgets = forgets
        self._store = store
        self._folders = [_check_folder(folder) for folder in folders]
        self._origins = {record.id: record.source for record in store.documents()} if self._folders else {}
        self.gone = {
            name
            for name, source in self._origins.items()
            if any(source.startswith(folder) for folder in self._folders) and not _exists(source)
        }
        self._ids: dict[str, list[DocumentId]] = {}  # of the documents that are gone, by content
        for name in sorted(self.gone):
            self._ids.setdefault(_digest_content(store.document(name)), []).append(name)

    def follow(
        self, documents: Iterable[Document | LostDocuments], fields: StatedFields, skipped: Sequence[Skipped]
    ) -> Iterator[Document | LostDocuments]:
        """The documents with the stated fields; each that has moved gets its new id and source before it is passed on.

        At the end come the documents that were not found again, as lost, with those whose files were `skipped` and
        are to be forgotten.
        """
        for item in documents:
            if isinstance(item, Document):
                found = self._follow_one(item, fields)
                self.gone.discard(item.id)
                yield found
            else:
                yield item
        self._judge_unread({resolve_path(each.path): each for each in skipped if each.is_lost})
        if self.gone:
            yield LostDocuments(tuple(sorted(self.gone)))

    def _judge_unread(self, lost: Mapping[str, Skipped]) -> None:
        """Let the documents of these files, or of files in these folders, be gone or kept."""
        for name, source in self._origins.items():
            paths = (source, *map(str, PurePosixPath(source).parents))
            entry = next((lost[path] for path in paths if path in lost), None) if lost else None
            if entry is None:
                continue
            if self._forgets == "unreadable" or (self._forgets == "emptied" and entry.is_empty):
                self.gone.add(name)
            else:
                self.kept[name] = entry.reason

    def _follow_one(self, document: Document, fields: StatedFields) -> Document:
        candidates = {
            name: found
            for name in self._ids.get(_digest_content(document), ())
            if name in self.gone
            and (found := fields.describe(document, self._origins[name])).title == self._store.document(name).title
        }
        if not candidates or (document.id not in candidates and self._store.documents([document.id])):
            return fields.describe(document)
        # Of several equal files, the one that kept its id or its name is the likeliest.
        name = min(candidates, key=lambda name: (name != document.id, Path(name).name != Path(document.id).name, name))
        moved = candidates[name]
        with self._store.write() as change:
            change.move_document(name, moved, digest_document(moved))
        fields.move(self._origins[name], document.source)
        self.gone.discard(name)
        self.moved.append(document.id)
        return moved


def _check_folder(folder: str | Path | Document) -> str:
    """The full path of a folder with a slash. Raises UsageError for anything else."""
    if isinstance(folder, Document) or not os.path.isdir(folder):
        name = folder.id if isinstance(folder, Document) else folder
        raise UsageError(f"{name} is not a folder, so it cannot be synced: leave --sync out, or name its folder")
    return resolve_path(folder).rstrip("/") + "/"


def _exists(path: str) -> bool:
    """Whether there is such a file; also if it may not be read, since then it is not known to be gone."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def _digest_content(document: Document) -> str:
    """A digest of the text, wherever it comes from; a title or metadata may be stated apart from it."""
    return sha256(document.text.encode()).hexdigest()
