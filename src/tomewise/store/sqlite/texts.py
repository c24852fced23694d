"""Documents, passages and nodes of a tome in SQLite."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
from sqlalchemy import func, select

from tomewise.errors import UnknownName
from tomewise.store.lifetimes import list_source_spaces
from tomewise.store.records import PASSAGES, DocumentRecord
from tomewise.store.sqlite.connections import Session
from tomewise.store.sqlite.mirror import Keys
from tomewise.store.sqlite.node_rows import make_node, make_passage
from tomewise.store.sqlite.row_values import Misfit, decode_plain
from tomewise.store.sqlite.schema import documents, edges, nodes
from tomewise.store.sqlite.scope import find_documents
from tomewise.store.sqlite.write import select_values
from tomewise.types import Document, DocumentId, Metadata, Node, NodeId, Passage, PassageId, Scope

T = TypeVar("T")
_COUNT = select(func.count()).where(nodes.c.document == documents.c.key).scalar_subquery()
_RECORDS = select(
    documents.c.id,
    documents.c.title,
    documents.c.source,
    documents.c.digest,
    documents.c.characters,
    documents.c.metadata,
    _COUNT.label("passages"),
)


class StoredTexts(Session):
    """See `store.contract.Texts`."""

    def holds_documents(self) -> bool:
        """Whether the tome holds at least one document."""
        with self.read() as connection:
            return connection.execute(select(documents.c.key).limit(1)).first() is not None

    def documents(self, within: Scope | None = None) -> list[DocumentRecord]:
        """All documents, or those that the documents and conditions of a scope leave, ordered by id."""
        query = _RECORDS.order_by(documents.c.id)
        with self.read() as connection:
            if within is not None:
                query = query.where(documents.c.key.in_(select_values(find_documents(connection, within))))
            rows = connection.execute(query).all()
        return [_make_record(*row) for row in rows]

    def origins(self) -> dict[DocumentId, str]:
        """The source that each document came from, by the document's id."""
        with self.read() as connection:
            found = connection.execute(select(documents.c.id, documents.c.source)).all()
        return {row[0]: row[1] for row in found}

    def folders(self) -> dict[DocumentId, str]:
        """The folder that each document was added with, by the document's id; empty where there was none."""
        with self.read() as connection:
            found = connection.execute(select(documents.c.id, documents.c.folder)).all()
        return {row[0]: row[1] for row in found}

    def digest(self, document: DocumentId) -> str | None:
        """The digest of the document's content when it was added, or None if it does not exist."""
        with self.read() as connection:
            return connection.scalar(select(documents.c.digest).where(documents.c.id == document))

    def document(self, document: DocumentId) -> Document:
        """A document with its text. Raises UnknownName."""
        columns = (documents.c.id, documents.c.title, documents.c.source, documents.c.text, documents.c.metadata)
        query = select(*columns)
        with self.read() as connection:
            row = connection.execute(query.where(documents.c.id == document)).mappings().one_or_none()
        if row is None:
            raise self._make_unknown_error(document)
        return Document(**row)

    def record(self, document: DocumentId) -> DocumentRecord:
        """A document without its text. Raises UnknownName."""
        with self.read() as connection:
            row = connection.execute(_RECORDS.where(documents.c.id == document)).one_or_none()
        if row is None:
            raise self._make_unknown_error(document)
        return _make_record(*row)

    def read_metadata(self, wanted: Iterable[DocumentId]) -> dict[DocumentId, Metadata]:
        """The metadata of each of the documents that exist."""
        query = select(documents.c.id, documents.c.metadata).where(documents.c.id.in_(select_values(wanted)))
        with self.read() as connection:
            return {row[0]: row[1] for row in connection.execute(query)}

    def text_between(self, document: DocumentId, start: int, end: int) -> str:
        """The characters of a document from `start` to before `end`, fewer where the text ends. Raises UnknownName."""
        # SQLite counts characters from 1.
        piece = func.substr(documents.c.text, start + 1, max(0, end - start), type_=documents.c.text.type)
        with self.read() as connection:
            text: str | None = connection.scalar(select(piece).where(documents.c.id == document))
        if text is None:
            raise self._make_unknown_error(document)
        return text

    def _make_unknown_error(self, document: DocumentId) -> UnknownName:
        return UnknownName(f"no document {document!r} in {self.path}: `tome show` lists them")

    def passages(self, keys: Iterable[int] | None = None) -> dict[int, Passage]:
        """Passages by node key, in the order of `keys`, or all in document order."""
        columns = (nodes.c.key, nodes.c.id, documents.c.id.label("document"), nodes.c.position, nodes.c.start)
        query = select(*columns, nodes.c.end, nodes.c.text, nodes.c.data, documents.c.title).join(
            documents, documents.c.key == nodes.c.document
        )
        return self._read_by_key(query, keys, (documents.c.id, nodes.c.position), make_passage)

    def passages_of(self, wanted: Iterable[DocumentId]) -> dict[int, Passage]:
        """All passages of the documents `wanted`, in document order."""
        query = select(nodes.c.key).join(documents, documents.c.key == nodes.c.document)
        query = query.where(documents.c.id.in_(select_values(wanted))).order_by(documents.c.id, nodes.c.position)
        with self.read() as connection:
            keys = list(connection.scalars(query))
        return self.passages(keys)

    def passages_between(self, document: DocumentId, start: int, end: int) -> dict[int, Passage]:
        """The passages of a document that hold a character from `start` to before `end`, in document order."""
        query = select(nodes.c.key).join(documents, documents.c.key == nodes.c.document)
        query = query.where(documents.c.id == document, nodes.c.start < end, nodes.c.end > start)
        with self.read() as connection:
            keys = list(connection.scalars(query.order_by(nodes.c.position)))
        return self.passages(keys)

    def nodes(self, layer: str) -> dict[int, Node]:
        """All nodes of a layer by key, ordered by level, position and id, without their sources."""
        query = select(
            nodes.c.key, nodes.c.id, nodes.c.layer, nodes.c.level, nodes.c.position, nodes.c.text, nodes.c.data
        )
        order = (nodes.c.level, nodes.c.position, nodes.c.id)
        return self._read_by_key(query.where(nodes.c.layer == layer), None, order, make_node)

    def node_field(self, layer: str, field: str) -> dict[int, str]:
        """One text of the data of all nodes of a layer, by key; empty for a node without this field."""
        query = "SELECT key, coalesce(json_extract(data, '$.' || ?), '') FROM nodes WHERE layer = ?"
        with self.read() as connection:
            # Bare rows, as a layer may have many nodes.
            cursor: Any = connection.exec_driver_sql(query, (field, layer)).cursor
            fields = dict(cursor.fetchall())
            if not all(type(value) is str for value in fields.values()):
                raise Misfit("nodes", f"no text as its {field!r}")
            return fields

    def nodes_at(self, keys: Iterable[int]) -> dict[int, Node]:
        """Nodes by key, in the order of the keys, without their sources."""
        query = select(
            nodes.c.key, nodes.c.id, nodes.c.layer, nodes.c.level, nodes.c.position, nodes.c.text, nodes.c.data
        )
        return self._read_by_key(query, keys, (), make_node)

    def node_keys(self, layer: str) -> list[int]:
        """Keys of the nodes of a layer; passages in document order, others by level, position and id."""
        query = select(nodes.c.key).where(nodes.c.layer == layer)
        if layer == PASSAGES:
            query = query.join(documents, documents.c.key == nodes.c.document).order_by(documents.c.id)
        with self.read() as connection:
            return list(connection.scalars(query.order_by(nodes.c.level, nodes.c.position, nodes.c.id)))

    def keys_of(self, ids: Iterable[NodeId]) -> dict[NodeId, int]:
        """Keys of the nodes that exist among these ids."""
        query = select(nodes.c.id, nodes.c.key).where(nodes.c.id.in_(select_values(ids)))
        with self.read() as connection:
            return {row[0]: row[1] for row in connection.execute(query)}

    def places(self, passages: Iterable[PassageId]) -> dict[PassageId, tuple[DocumentId, int]]:
        """The document and the position of each of the passages that exists."""
        query = select(nodes.c.id, documents.c.id, nodes.c.position).join(
            documents, documents.c.key == nodes.c.document
        )
        with self.read() as connection:
            found = connection.execute(query.where(nodes.c.id.in_(select_values(passages))))
            return {passage: (document, position) for passage, document, position in found}

    def passage_order(self) -> tuple[Keys, Keys, Keys]:
        """Keys (n,) of all passages in document order, a number for the document of each, and its position there."""
        query = """SELECT nodes.key, nodes.document, nodes.position FROM nodes
        JOIN documents ON documents.key = nodes.document ORDER BY documents.id, nodes.position"""
        with self.read() as connection:
            cursor: Any = connection.exec_driver_sql(query).cursor  # bare rows: a tome may have many passages
            with decode_plain("nodes"):
                table = np.array(cursor.fetchall(), np.int64).reshape(-1, 3)
        return table[:, 0], table[:, 1], table[:, 2]

    def count_passages(self, wanted: Iterable[DocumentId]) -> dict[DocumentId, int]:
        """How many passages each of the documents has."""
        query = select(documents.c.id, func.count()).join(nodes, documents.c.key == nodes.c.document)
        with self.read() as connection:
            found = connection.execute(query.where(documents.c.id.in_(select_values(wanted))).group_by(documents.c.id))
            return {row[0]: row[1] for row in found}

    def find_neighbours(self, keys: Iterable[int], distance: int) -> dict[int, list[int]]:
        """Keys of the passages at most `distance` before or after each passage: the nearest first, then the later."""
        near = nodes.alias()
        gap = near.c.position - nodes.c.position
        query = select(nodes.c.key, near.c.key).join(near, near.c.document == nodes.c.document)
        query = query.where(nodes.c.key.in_(select_values(keys)), gap.between(-distance, distance), gap != 0)
        around: dict[int, list[int]] = {}
        with self.read() as connection:
            for key, neighbour in connection.execute(query.order_by(nodes.c.key, func.abs(gap), gap.desc())):
                around.setdefault(key, []).append(neighbour)
        return around

    def sources(self, keys: Iterable[int], layer: str) -> dict[int, list[int]]:
        """For each node of a layer, the keys of the nodes that it was made from, in document order."""
        wanted = list(keys)
        found: dict[int, list[int]] = {key: [] for key in wanted}
        query = (
            select(edges.c.a, edges.c.b)
            .join(nodes, nodes.c.key == edges.c.b)
            .outerjoin(documents, documents.c.key == nodes.c.document)
            .where(edges.c.a.in_(select_values(wanted)), edges.c.space.in_(list_source_spaces(layer)))
            .order_by(documents.c.id, nodes.c.level, nodes.c.position, nodes.c.id)
        )
        with self.read() as connection:
            for a, b in connection.execute(query):
                found[a].append(b)
        return found

    def find_derived(self, keys: Iterable[int], space: str) -> dict[int, list[int]]:
        """For each node, the keys of the nodes that were made from it; `space` is such as `made-of:gists`."""
        wanted = list(keys)
        found: dict[int, list[int]] = {key: [] for key in wanted}
        query = select(edges.c.a, edges.c.b).where(edges.c.b.in_(select_values(wanted)), edges.c.space == space)
        with self.read() as connection:
            for a, b in connection.execute(query):
                found[b].append(a)
        return found

    def _read_by_key(
        self, query: Any, keys: Iterable[int] | None, order: Sequence[Any], make: Callable[[dict[str, Any]], T]
    ) -> dict[int, T]:
        wanted = None if keys is None else list(dict.fromkeys(map(int, keys)))
        chosen = query.order_by(*order) if wanted is None else query.where(nodes.c.key.in_(select_values(wanted)))
        with self.read() as connection:
            found = connection.execute(chosen)
            columns = list(found.keys())
            rows = (dict(zip(columns, row, strict=True)) for row in found)  # four times as fast as `mappings`
            made = {row.pop("key"): make(row) for row in rows}
        return made if wanted is None else {key: made[key] for key in wanted if key in made}


def _make_record(
    id: str, title: str, source: str, digest: str, characters: int, metadata: Metadata, passages: int
) -> DocumentRecord:
    """The record of a row of `_RECORDS`, in the order of its columns."""
    return DocumentRecord(
        id=id,
        title=title,
        source=source,
        digest=digest,
        characters=characters,
        passages=passages,
        metadata=metadata,
    )
