"""Documents as a client of an MCP server names them and sees them.

A client names ids, never paths: no name is looked up in the file system. Text that a client sees is neutral (see
`language.fences`): it opens no tag and no turn of a conversation. Ordinary text stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tomewise.errors import UnknownName, UsageError, suggest
from tomewise.language.fences import neutralise, oneline
from tomewise.types import Scope

if TYPE_CHECKING:
    from tomewise.store.contract import Store
    from tomewise.store.records import DocumentRecord
    from tomewise.tome.tome import Tome
    from tomewise.types import DocumentId, Passage

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


def find_document(name: str, book: Tome) -> DocumentRecord:
    """The document with this name, as it is or as it was shown, this title, or this part of its name.

    Its id is accepted too (see `tome.document_names`). Raises UnknownName for no match and for several.
    """
    if not name.strip():
        raise UsageError("the name of the document is empty: list_documents lists them")
    names = book.document_names.read()
    if document := names.find(name):
        return book.store.record(document)
    records = [(names.name(record.id), record) for record in book.documents()]
    for matches in (
        [(own, record) for own, record in records if name in (show_name(own), show_name(record.id))],
        [(own, record) for own, record in records if name in (record.title, show_name(record.title))],
        [(own, record) for own, record in records if own.endswith("/" + name)],
        [(own, record) for own, record in records if name in own],
    ):
        if len(matches) == 1:
            return matches[0][1]
        if matches:
            examples = ", ".join(repr(show_name(own)) for own, _ in matches[:3])
            raise UnknownName(f"{show_name(name)!r} fits {len(matches)} documents ({examples}): give the whole id")
    near = suggest(show_name(name), {show_name(own) for own, _ in records})
    raise UnknownName(f"no document {show_name(name)!r}: {near}list_documents lists them")


def find_own_scope(documents: Sequence[str], where: Sequence[str], book: Tome) -> Scope | None:
    """The scope that a client states; see `tome.scopes.find_scope`, which looks up paths, as this does not."""
    from tomewise.tome.scopes import find_scope, parse_condition

    ids: frozenset[DocumentId] = frozenset(find_document(name, book).id for name in documents)
    conditions = tuple(parse_condition(text) for text in where)
    return find_scope(book.store, within=Scope(documents=ids if documents else None, where=conditions))


def find_passage(passage: str, store: Store) -> tuple[int, Passage]:
    """The key of the passage with this id, and the passage. Raises UnknownName."""
    for key, found in store.passages(store.keys_of([passage]).values()).items():
        return key, found
    raise UnknownName(f"no passage {show_name(passage)!r}: take the id from a citation or from search")


def find_span(key: int, distance: int, store: Store) -> tuple[int, int]:
    """Where the passage with its neighbours at most `distance` away begins and ends in its document."""
    keys = [key, *store.find_neighbours([key], distance)[key]] if distance else [key]
    near = store.passages(keys).values()
    return min(passage.start for passage in near), max(passage.end for passage in near)
