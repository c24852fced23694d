"""Documents by their exact ids, as HTTP clients name them."""

from __future__ import annotations

from tomewise.errors import UnknownName
from tomewise.names import suggest
from tomewise.store.contract import Store
from tomewise.store.records import DocumentRecord


def find_record(id: str, store: Store) -> DocumentRecord:
    """The record of the document with this id. Raises UnknownName, which suggests the id of the nearest name."""
    try:
        return store.record(id)
    except UnknownName:
        raise UnknownName(f"no document {id!a} in {store.address}: {_suggest(id, store)}") from None


def _suggest(name: str, store: Store) -> str:
    """As `tome.inputs.suggest_document`, but here only an id finds a document: a title or file name does not."""
    records = store.documents()
    ids = {record.title: record.id for record in records if record.title}
    ids |= {record.id.rsplit("/", 1)[-1]: record.id for record in records}
    near = ids.get(name)
    hint = f"did you mean {near!r}? " if near else suggest(name, {record.id for record in records})
    return f"{hint}GET .../documents lists the ids"
