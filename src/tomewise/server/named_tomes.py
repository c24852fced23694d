"""Tomes, passages and events as clients name and see them; for documents see `tome.documents.names`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from itertools import chain
from typing import TypeAlias

from tomewise.errors import UnknownName, UsageError, suggest
from tomewise.store.lookups import find_keys, read_record
from tomewise.store.records import DocumentRecord
from tomewise.tome.document_names import hide_paths, show_name
from tomewise.tome.outline import find_part as find_named_part
from tomewise.tome.tome import Tome
from tomewise.tome.view import TomeView

Admit = Callable[[], AbstractAsyncContextManager[object]]  # a question runs inside: a queue, a time limit, a budget

LEFT = "tomewise.left"  # in the ASGI scope of a request of MCP: the event that its client has left
_SHOWN = 20  # names of tomes in a message


def find_tome(name: str, tomes: Mapping[str, Tome]) -> tuple[str, Tome]:
    """The name and the tome; an empty name stands for the only one. Raises UnknownName, UsageError."""
    if name in tomes:
        return name, tomes[name]
    known = ", ".join(sorted(tomes)[:_SHOWN]) + (", ..." if len(tomes) > _SHOWN else "")
    if name:
        raise UnknownName(f"no tome {name[:200]!r}: {suggest(name, tomes)}this server has {known or 'none'}")
    if len(tomes) == 1:
        return next(iter(tomes.items()))
    raise UsageError(f"name the tome: this server has {known or 'none'}")


def hide_addresses(message: str, tomes: Mapping[str, Tome]) -> str:
    """The message with the names of tomes and of documents instead of the places where they are kept."""
    known = dict(tomes)  # they may change in another thread
    addresses = {tome.store.address: name for name, tome in known.items()}
    return hide_paths(message, addresses, (tome.documents.names for tome in known.values()))


Stretch: TypeAlias = tuple[int, int | None]  # characters of a document; without an end, up to that of the document


def find_part(
    document: str,
    span: Stretch,
    passage: str,
    neighbours: int,
    view: TomeView,
    find: Callable[[str], DocumentRecord],
    part: str,
) -> tuple[DocumentRecord, Stretch]:
    """What to read in a view: a span or a named part of a document that `find` finds, or a passage and its neighbours.

    Raises UsageError, UnknownName.
    """
    if bool(document) == bool(passage):
        raise UsageError("name either a document or a passage to read")
    if part and (passage or span != (0, None)):
        raise UsageError("name either a part, or characters, or a passage to read")
    store = view.store
    if document:
        record = find(document)
        span = find_named_part(part, record, store) if part else span
    else:
        keys = [*store.passages(find_keys(store, [passage]).values())]
        if not keys:
            raise UnknownName(f"no passage {show_name(passage)!r}: take the id from a quote or from search")
        near = store.passages(chain(keys, *store.find_neighbours(keys, neighbours).values())).values()
        span = min(each.start for each in near), max(each.end for each in near)
        record = read_record(store, next(iter(near)).document)
    if view.scope and record.id not in view.documents:
        raise UsageError(f"{show_name(record.title or document)} is not in this scope: leave it out to read there")
    return record, span
