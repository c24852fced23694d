"""Documents, passages and nodes of a tome, and the search for words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, TypeVar

import numpy as np
from sqlalchemy import Connection, Select, bindparam, func, select

from tomewise.errors import UnknownName
from tomewise.store.records import PASSAGES, DocumentRecord, Found
from tomewise.store.sql.dependants import find_dependants
from tomewise.store.sql.lexical import find_terms, make_phrase
from tomewise.store.sql.lists import bind_keys, bind_names, list_keys
from tomewise.store.sql.mirror import Keys
from tomewise.store.sql.node_rows import make_node, make_passage
from tomewise.store.sql.row_values import Misfit, decode_plain
from tomewise.store.sql.schema import documents, nodes
from tomewise.store.sql.scope import ScopeKeys, list_document_tests
from tomewise.store.sql.stored_notes import Reading, reads
from tomewise.types import Document, DocumentId, Node, NodeId, Passage, Scope

T = TypeVar("T")
_DOCUMENT = documents.c.id
_ORDER = nodes.c["level", "position", "id"]
_RECORDS = select(
    *documents.c["id", "title", "source", "folder", "digest", "characters", "metadata"],
    select(func.count()).where(nodes.c.document == documents.c.key).scalar_subquery().label("passages"),
)
_BY_ID = _RECORDS.order_by(_DOCUMENT)
_OF_IDS = _BY_ID.where(_DOCUMENT.in_(bind_names("ids")))
_FIRST = select(documents.c.key).limit(1)
_FOUND = (
    select(*nodes.c["id", "key", "layer"], _DOCUMENT, nodes.c.position)
    .outerjoin(documents, documents.c.key == nodes.c.document)
    .where(nodes.c.id.in_(bind_names("ids")))
)
_NODES = select(*nodes.c["key", "id", "layer", "level", "position", "text", "data"])
_PASSAGES = select(
    *nodes.c["key", "id", "position", "start", "end", "text", "data"],
    _DOCUMENT.label("document"),
    documents.c.title,
).join(documents, documents.c.key == nodes.c.document)
_AT_KEYS = nodes.c.key.in_(bind_keys("keys"))
_NODES_AT = _NODES.where(_AT_KEYS)
_NEAR = nodes.alias()
_GAP = _NEAR.c.position - nodes.c.position
_NEIGHBOURS = (
    select(nodes.c.key, _NEAR.c.key)
    .join(_NEAR, _NEAR.c.document == nodes.c.document)
    .where(_AT_KEYS, _GAP.between(bindparam("before"), bindparam("after")), _GAP != 0)
    .order_by(nodes.c.key, func.abs(_GAP), _GAP.desc())
)
_NODES_OF = _NODES.where(nodes.c.layer == bindparam("of")).order_by(*_ORDER)


class StoredTexts(Reading):
    """See `store.contract.Texts`."""

    @reads
    def holds_documents(self, connection: Connection) -> bool:
        """Whether the tome holds at least one document."""
        return any(True for _ in self.dialect.fetch(connection, _FIRST))

    @reads
    def documents(
        self, connection: Connection, wanted: Scope | Iterable[DocumentId] | None = None
    ) -> list[DocumentRecord]:
        """All documents, those of these ids, or those that the documents and conditions of a scope leave, by id."""
        rows: Iterable[Any]
        if wanted is None:
            rows = self.dialect.fetch(connection, _BY_ID)
        elif isinstance(wanted, Scope):
            rows = connection.execute(_BY_ID.where(*list_document_tests(wanted, self.dialect)))
        else:
            rows = self.dialect.fetch(connection, _OF_IDS, ids=list(wanted))
        return [DocumentRecord(**dict(zip(_RECORDS.selected_columns.keys(), row, strict=True))) for row in rows]

    @reads
    def document(self, connection: Connection, document: DocumentId) -> Document:
        """A document with its text. Raises UnknownName."""
        query = select(*documents.c["id", "title", "source", "text", "metadata"]).where(documents.c.id == document)
        row = connection.execute(query).mappings().one_or_none()
        if row is None:
            raise self._refuse(document)
        return Document(**row)

    @reads
    def text_between(self, connection: Connection, document: DocumentId, start: int, end: int) -> str:
        """The characters of a document from `start` to before `end`, fewer where the text ends. Raises UnknownName."""
        # SQLite counts characters from 1.
        piece = func.substr(documents.c.text, start + 1, max(0, end - start), type_=documents.c.text.type)
        text: str | None = connection.scalar(select(piece).where(documents.c.id == document))
        if text is None:
            raise self._refuse(document)
        return text

    def _refuse(self, document: DocumentId) -> UnknownName:
        return UnknownName(f"no document {document!r} in {self.dialect.address}: `tome show` lists them")

    def passages(
        self,
        keys: Iterable[int] | None = None,
        *,
        documents: Iterable[DocumentId] | None = None,
        between: tuple[int, int] | None = None,
    ) -> dict[int, Passage]:
        """Passages by node key, in the order of `keys`, else in document order: all, or those of some documents."""
        query = _select_passages(
            by_key=keys is not None, by_document=documents is not None, by_place=between is not None
        )
        after, before = between or (None, None)
        chosen = None if documents is None else list(documents)
        return self._read_by_key(query, make_passage, keys, documents=chosen, after=after, before=before)

    def nodes(self, layer: str) -> dict[int, Node]:
        """All nodes of a layer by key, ordered by level, position and id, without their sources."""
        return self._read_by_key(_NODES_OF, make_node, of=layer)

    def nodes_at(self, keys: Iterable[int]) -> dict[int, Node]:
        """Nodes by key, in the order of the keys, without their sources."""
        return self._read_by_key(_NODES_AT, make_node, keys)

    @reads
    def count_passages(self, connection: Connection) -> int:
        """How many passages the tome has."""
        return connection.scalar(select(func.count()).select_from(nodes).where(nodes.c.layer == PASSAGES)) or 0

    @reads
    def node_keys(self, connection: Connection, layer: str) -> list[int]:
        """Keys of the nodes of a layer; passages in document order, others by level, position and id."""
        query = select(nodes.c.key).where(nodes.c.layer == layer)
        if layer == PASSAGES:
            query = query.join(documents, documents.c.key == nodes.c.document).order_by(_DOCUMENT)
        return list(connection.scalars(query.order_by(*_ORDER)))

    @reads
    def find(self, connection: Connection, ids: Iterable[NodeId]) -> dict[NodeId, Found]:
        """Where the nodes are that exist among these ids."""
        rows = self.dialect.fetch_bare(connection, _FOUND, ids=list(ids))  # there may be many
        found = {row[0]: Found._make(row[1:]) for row in rows}
        if not all(type(each.key) is type(each.position) is int for each in found.values()):
            raise Misfit("nodes", "a value of another type")
        return found

    @reads
    def find_dependants(self, connection: Connection, keys: Iterable[int]) -> dict[str, int]:
        """How many nodes of each layer would go with these nodes."""
        wanted = sorted(set(keys))
        gone = find_dependants(connection, self.dialect, wanted)[len(wanted) :]
        query = select(nodes.c.layer, func.count()).where(nodes.c.key.in_(list_keys(gone)))
        return {row[0]: row[1] for row in connection.execute(query.group_by(nodes.c.layer).order_by(nodes.c.layer))}

    @reads
    def passage_order(self, connection: Connection) -> tuple[Keys, Keys, Keys]:
        """Keys (n,) of all passages in document order, a number for the document of each, and its position there."""
        query = select(*nodes.c["key", "document", "position"])
        query = query.join(documents, documents.c.key == nodes.c.document).order_by(_DOCUMENT, nodes.c.position)
        cursor: Any = connection.execute(query).cursor  # bare rows: a tome may have many passages
        with decode_plain("nodes"):
            table = np.array(cursor.fetchall(), np.int64).reshape(-1, 3)
        return table[:, 0], table[:, 1], table[:, 2]

    @reads
    def find_neighbours(self, connection: Connection, keys: Iterable[int], distance: int) -> dict[int, list[int]]:
        """Keys of the passages at most `distance` before or after each passage: the nearest first, then the later."""
        around: dict[int, list[int]] = {}
        found = self.dialect.fetch(connection, _NEIGHBOURS, keys=list(keys), before=-distance, after=distance)
        for key, neighbour in found:
            around.setdefault(key, []).append(neighbour)
        return around

    @reads
    def _read_by_key(
        self,
        connection: Connection,
        /,
        query: Select[Any],
        make: Callable[[dict[str, Any]], T],
        keys: Iterable[int] | None = None,
        **values: Any,
    ) -> dict[int, T]:
        wanted = None if keys is None else list(dict.fromkeys(map(int, keys)))
        columns = query.selected_columns.keys()
        found = self.dialect.fetch(connection, query, keys=wanted, **values)
        rows = (dict(zip(columns, row, strict=True)) for row in found)
        made = {row.pop("key"): make(row) for row in rows}
        return made if wanted is None else {key: made[key] for key in wanted if key in made}


class StoredWords(Reading):
    """See `store.contract.Words`, and `keys_within` of `Texts`."""

    _scopes: ScopeKeys

    def keys_within(self, scope: Scope | None, layer: str = PASSAGES) -> Keys | None:
        """The keys of the nodes of a layer within a scope. They are cached until what decides about them changes."""
        return None if scope is None or scope == Scope() else self._find_keys(scope, layer)

    @reads
    def _find_keys(self, connection: Connection, scope: Scope, layer: str) -> Keys:
        return self._scopes.find(scope, layer, connection)

    def lexical(self, query: str, limit: int, *, within: Scope | None = None) -> list[tuple[int, float]]:
        """Passage keys with their BM25 scores, best first. A passage needs to hold only one of the words."""
        terms = find_terms(query)
        return self._search_words(terms, limit, self.keys_within(within)) if terms else []

    @reads
    def _search_words(
        self, connection: Connection, terms: Sequence[str], limit: int, keys: Keys | None
    ) -> list[tuple[int, float]]:
        return self.dialect.search_words(connection, terms, limit, keys)

    @reads
    def find_holders(self, connection: Connection, words: Iterable[str], among: Keys) -> list[tuple[int, Keys]]:
        """For each word, how many passages hold it, and those of `among` that do."""
        phrases = [make_phrase(word) for word in words]
        return [
            self.dialect.find_holders(connection, phrase, among) if phrase else (0, np.empty(0, np.int64))
            for phrase in phrases
        ]


@cache
def _select_passages(*, by_key: bool, by_document: bool, by_place: bool) -> Select[Any]:
    query = _PASSAGES.where(_AT_KEYS) if by_key else _PASSAGES.order_by(_DOCUMENT, nodes.c.position)
    if by_document:
        query = query.where(_DOCUMENT.in_(bind_names("documents")))
    if by_place:
        query = query.where(nodes.c.start < bindparam("before"), nodes.c.end > bindparam("after"))
    return query
