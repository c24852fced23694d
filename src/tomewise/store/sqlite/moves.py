"""The ids of a document's nodes after it has moved: after its file has another path."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, Select, func, select

from tomewise.store.sqlite.schema import edges, nodes
from tomewise.types import DocumentId, content_id


def find_moved_ids(connection: Connection, key: int, name: DocumentId) -> dict[int, str]:
    """The ids, by node key, that passages of the document with this key, and what was made from them, get with its
    new name."""
    columns = (nodes.c.key, nodes.c.start, nodes.c.end, nodes.c.text)
    passages = connection.execute(select(*columns).where(nodes.c.document == key)).all()
    ids = {row.key: content_id("p", name, row.start, row.end, row.text) for row in passages}
    query = select(nodes.c.key, nodes.c.id).where(nodes.c.key.in_(_list_values(_find_made_of(connection, ids))))
    return ids | {row.key: content_id(row.id[:1], "moved", name, row.id) for row in connection.execute(query)}


def _find_made_of(connection: Connection, keys: Iterable[int]) -> set[int]:
    """The nodes that were made from these, directly or not, by links of the spaces `made-of`."""
    found: set[int] = set()
    front = set(keys)
    while front:
        links = edges.c.space.startswith("made-of:", autoescape=True)
        made = connection.scalars(select(edges.c.a).where(edges.c.b.in_(_list_values(front)), links))
        front = set(made) - found
        found |= front
    return found


def _list_values(keys: Iterable[int]) -> Select[tuple[Any]]:
    return select(func.json_each(json.dumps(list(keys))).table_valued("value").c.value)
