"""Tomes, documents and passages as clients name them, and the texts that clients see.

A client names ids, never paths: no name is looked up in the file system. Text for a model is neutral (see
`language.fences`): it opens no tag and no turn of a conversation. Ordinary text stays as it is.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

from tomewise.errors import UnknownName, UsageError, suggest
from tomewise.language.fences import neutralise, oneline
from tomewise.store.lookups import find_keys, read_record
from tomewise.tome.document_names import hide_paths
from tomewise.types import Scope

if TYPE_CHECKING:
    from tomewise.outgoing.answer_models import Event as EventModel
    from tomewise.store.records import DocumentRecord
    from tomewise.tome.tome import Tome
    from tomewise.types import DocumentId


Admit = Callable[[], AbstractAsyncContextManager[object]]  # a question runs inside: a queue, a time limit, a budget

LEFT = "tomewise.left"  # in the ASGI scope of a request of MCP: the event that its client has left
_SHOWN = 20  # names of tomes in a message


class Library(Protocol):
    """Open tomes by name. The mapping may change while a server runs."""

    @property
    def tomes(self) -> Mapping[str, Tome]: ...


@dataclass(frozen=True, slots=True)
class FixedLibrary:
    """The same tomes from start to end."""

    tomes: Mapping[str, Tome]


def find_tome(name: str, library: Library) -> tuple[str, Tome]:
    """The name and the tome; an empty name stands for the only one. Raises UnknownName, UsageError."""
    tomes = library.tomes
    if name in tomes:
        return name, tomes[name]
    known = ", ".join(sorted(tomes)[:_SHOWN]) + (", ..." if len(tomes) > _SHOWN else "")
    if name:
        raise UnknownName(f"no tome {name[:200]!r}: {suggest(name, tomes)}this server has {known or 'none'}")
    if len(tomes) == 1:
        return next(iter(tomes.items()))
    raise UsageError(f"name the tome: this server has {known or 'none'}")


def hide_addresses(message: str, library: Library) -> str:
    """The message with the names of tomes and of documents instead of the places where they are kept."""
    addresses = {book.store.address: name for name, book in library.tomes.items()}
    for address in sorted(addresses, key=len, reverse=True):
        message = message.replace(address, addresses[address])
    return hide_paths(message, (book.document_names for book in library.tomes.values()))


_LONGEST_NAME = 300  # characters of an id or a title


def show_name(name: str) -> str:
    """An id or a title on one line; a long one is cut. `find_document` accepts an id in this form."""
    line = oneline(name)
    return line if len(line) <= _LONGEST_NAME else line[: _LONGEST_NAME - 1] + "…"


def cut_text(text: str, most_bytes: int) -> str:
    """Neutral text of at most `most_bytes` bytes of UTF-8; a cut shows as an ellipsis."""
    encoded = neutralise(text).encode()
    if len(encoded) <= most_bytes:
        return encoded.decode()
    return encoded[: most_bytes - 3].decode(errors="ignore") + "…"


def find_record(id: str, book: Tome) -> DocumentRecord:
    """The record of the document that goes out under this id, or that has it. Raises UnknownName with the nearest."""
    document = book.document_names.read().find(id)
    if document is None:
        raise UnknownName(f"no document {id!a} in {book.store.address}: {_suggest(id, book)}")
    return read_record(book.store, document)


def _suggest(name: str, book: Tome) -> str:
    """As `tome.inputs.suggest_document`, but here only an id finds a document: a title or file name does not."""
    records, naming = book.documents(), book.document_names.read().name
    ids = {record.title: naming(record.id) for record in records if record.title}
    ids |= {record.id.rsplit("/", 1)[-1]: naming(record.id) for record in records}
    near = ids.get(name)
    hint = f"did you mean {near!r}? " if near else suggest(name, {naming(record.id) for record in records})
    return f"{hint}GET .../documents lists the ids"


def find_document(name: str, book: Tome) -> DocumentRecord:
    """The document with this name, as it is or as it was shown, this title, or this part of its name.

    Its id is accepted too (see `tome.document_names`). Raises UnknownName for no match and for several.
    """
    return find_documents([name], book)[0]


def find_documents(names: Sequence[str], book: Tome) -> list[DocumentRecord]:
    """The documents that `find_document` finds. They are listed at most once for all names."""
    if not all(name.strip() for name in names):
        raise UsageError("the name of the document is empty: list_documents lists them")
    known = book.document_names.read()
    exact = [known.find(name) for name in names]
    listed = {known.name(record.id): record for record in book.documents()} if None in exact else {}
    return [
        _match_name(name, listed) if document is None else read_record(book.store, document)
        for name, document in zip(names, exact, strict=True)
    ]


def _match_name(name: str, listed: Mapping[str, DocumentRecord]) -> DocumentRecord:
    """The document of this name among those `listed` by their own names."""
    for matches in (
        [own for own, record in listed.items() if name in (show_name(own), show_name(record.id))],
        [own for own, record in listed.items() if name in (record.title, show_name(record.title))],
        [own for own in listed if own.endswith("/" + name)],
        [own for own in listed if name in own],
    ):
        if len(matches) == 1:
            return listed[matches[0]]
        if matches:
            examples = ", ".join(repr(show_name(own)) for own in matches[:3])
            raise UnknownName(f"{show_name(name)!r} fits {len(matches)} documents ({examples}): give the whole id")
    near = suggest(show_name(name), set(map(show_name, listed)))
    raise UnknownName(f"no document {show_name(name)!r}: {near}list_documents lists them")


def find_exact_scope(documents: Sequence[str], where: Sequence[str], book: Tome) -> Scope | None:
    """The scope that a client states with exact names or ids of documents, or folders. Raises UnknownName."""
    folders = [name for name in documents if name.endswith("/")]
    records = [find_record(name, book) for name in documents if not name.endswith("/")]
    return _make_scope([*records, *(_find_inside(folders, book) if folders else ())], where, book)


def _find_inside(folders: Sequence[str], book: Tome) -> Iterator[DocumentRecord]:
    """The documents in these folders, whose names end with a slash, and below them. Raises UnknownName."""
    naming = book.document_names.read().name
    records = {naming(record.id): record for record in book.documents()}
    names = sorted(records)
    for folder in folders:
        start = bisect_left(names, folder)
        end = bisect_right(names, folder, key=lambda name: name[: len(folder)])
        yield from [records[name] for name in names[start:end]] or [find_record(folder, book)]


def find_named_scope(documents: Sequence[str], where: Sequence[str], book: Tome) -> Scope | None:
    """The scope that a client states with names as `find_document` finds them."""
    return _make_scope(find_documents(documents, book), where, book)


def _make_scope(records: Sequence[DocumentRecord], where: Sequence[str], book: Tome) -> Scope | None:
    """See `tome.scopes.find_scope`, which looks up paths, as this does not."""
    from tomewise.tome.scopes import find_scope, parse_condition

    ids: frozenset[DocumentId] = frozenset(record.id for record in records)
    conditions = tuple(parse_condition(text) for text in where)
    return find_scope(book.store, within=Scope(documents=ids if records else None, where=conditions))


def name_event(event: EventModel, book: Tome) -> EventModel:
    """The event with names of documents in place of ids that are paths, in its detail and its summary."""
    names = book.document_names.read()
    return event.model_copy(update={"detail": names.rename(event.detail), "summary": names.clean(event.summary)})


Span: TypeAlias = tuple[int, int | None]  # characters of a document; without an end, up to that of the document


def find_part(
    document: str,
    span: Span,
    passage: str,
    neighbours: int,
    book: Tome,
    find: Callable[[str, Tome], DocumentRecord],
) -> tuple[DocumentRecord, Span]:
    """What to read: a span of a document that `find` finds, or the passage of this id with so many on either side.

    Raises UsageError, UnknownName.
    """
    if bool(document) == bool(passage):
        raise UsageError("name either a document or a passage to read")
    if document:
        return find(document, book), span
    store = book.store
    for key, found in store.passages(find_keys(store, [passage]).values()).items():
        keys = [key, *store.find_neighbours([key], neighbours).get(key, ())] if neighbours else [key]
        near = store.passages(keys).values()
        span = min(each.start for each in near), max(each.end for each in near)
        return read_record(store, found.document), span
    raise UnknownName(f"no passage {show_name(passage)!r}: take the id from a citation or from search")
