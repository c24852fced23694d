"""The whole content of a tome in SQLite, at one moment."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from sqlalchemy import Connection, select

from tomewise.store.sqlite.node_rows import make_node, make_passage
from tomewise.store.sqlite.row_values import Misfit
from tomewise.store.sqlite.schema import documents, edges, intake, meta, nodes, sessions, vectors
from tomewise.types import Document, Node, NodeId, Passage


class StoredSnapshot:
    """See `store.contract.Snapshot`. All is read in the transaction of one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def settings(self) -> Iterator[tuple[str, str]]:
        """All but the random identity of the file."""
        query = select(meta.c.key, meta.c.value).where(meta.c.key != "identity")
        yield from ((row.key, row.value) for row in self._connection.execute(query))

    def documents(self) -> Iterator[tuple[Document, str]]:
        """Documents with their digests."""
        columns = (documents.c.id, documents.c.title, documents.c.source, documents.c.text, documents.c.metadata)
        for row in self._connection.execute(select(*columns, documents.c.digest)):
            id, title, source, text, metadata, digest = row
            yield Document(id=id, title=title, source=source, text=text, metadata=metadata), digest

    def passages(self) -> Iterator[Passage]:
        """Passages with the titles of their documents."""
        columns = (nodes.c.id, nodes.c.position, nodes.c.start, nodes.c.end, nodes.c.text)
        query = select(*columns, nodes.c.data, documents.c.id.label("document"), documents.c.title)
        for found in self._connection.execute(query.join(documents, documents.c.key == nodes.c.document)).mappings():
            row = dict(found)
            yield make_passage(row)

    def nodes(self) -> Iterator[Node]:
        """Nodes without a document."""
        columns = (nodes.c.id, nodes.c.layer, nodes.c.level, nodes.c.position, nodes.c.text, nodes.c.data)
        for row in self._connection.execute(select(*columns).where(nodes.c.document.is_(None))).mappings():
            yield make_node(dict(row))

    def edges(self) -> Iterator[tuple[str, NodeId, NodeId, float]]:
        """Edges between the ids of nodes."""
        query = select(edges.c.space, edges.c.a, edges.c.b, edges.c.weight)
        for space, a, b, weight in self._connection.execute(query):
            yield space, self._find_id(a, "edges"), self._find_id(b, "edges"), weight

    def vectors(self) -> Iterator[tuple[str, NodeId]]:
        """The nodes that have vectors."""
        for space, key in self._connection.execute(select(vectors.c.space, vectors.c.key)):
            yield space, self._find_id(key, "vectors")

    def intake(self) -> Iterator[tuple[str, NodeId, str]]:
        """What the layers have processed."""
        for layer, key, failure in self._connection.execute(select(intake.c.layer, intake.c.node, intake.c.failure)):
            yield layer, self._find_id(key, "intake"), failure

    def sessions(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """The sessions with their records."""
        for row in self._connection.execute(select(sessions.c.name, sessions.c.record)):
            yield row.name, row.record

    def _find_id(self, key: int, table: str) -> NodeId:
        if key not in self._ids:
            raise Misfit(table, f"the key {key} of a node that is not there")
        return self._ids[key]

    @cached_property
    def _ids(self) -> dict[int, NodeId]:
        return {row.key: row.id for row in self._connection.execute(select(nodes.c.key, nodes.c.id))}
