"""Documents, passages and nodes of a tome, and the search for words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, TypeVar

import numpy as np
from sqlalchemy import Select, bindparam, exists, func, select

from tomewise.errors import UnknownName
from tomewise.store.records import PASSAGES, DocumentRecord, Found
from tomewise.store.sql.dialects import Transaction
from tomewise.store.sql.mirror import Keys
from tomewise.store.sql.node_rows import find_terms, make_node, make_passage, make_phrase
from tomewise.store.sql.row_values import Misfit, bind_keys, bind_names, decode_plain, list_keys
from tomewise.store.sql.schema import documents, edges, nodes
from tomewise.store.sql.scope import ScopeKeys, list_document_tests
from tomewise.store.sql.stored_records import Reading, reads
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
    def holds_documents(self, transaction: Transaction) -> bool:
        """Whether the tome holds at least one document."""
        return any(True for _ in transaction.fetch(_FIRST))

    @reads
    def documents(
        self, transaction: Transaction, wanted: Scope | Iterable[DocumentId] | None = None
    ) -> list[DocumentRecord]:
        """All documents, those of these ids, or those that the documents and conditions of a scope leave, by id."""
        rows: Iterable[Any]
        if wanted is None:
            rows = transaction.fetch(_BY_ID)
        elif isinstance(wanted, Scope):
            rows = transaction.execute(_BY_ID.where(*list_document_tests(wanted, transaction)))
        else:
            rows = transaction.fetch(_OF_IDS, ids=list(wanted))
        return [DocumentRecord(**dict(zip(_RECORDS.selected_columns.keys(), row, strict=True))) for row in rows]

    @reads
    def document(self, transaction: Transaction, document: DocumentId) -> Document:
        """A document with its text. Raises UnknownName."""
        query = select(*documents.c["id", "title", "source", "text", "metadata"]).where(documents.c.id == document)
        row = transaction.execute(query).mappings().one_or_none()
        if row is None:
            raise _refuse(transaction, document)
        return Document(**row)

    @reads
    def text_between(self, transaction: Transaction, document: DocumentId, start: int, end: int) -> str:
        """The characters of a document from `start` to before `end`, fewer where the text ends. Raises UnknownName."""
        # SQLite counts characters from 1.
        piece = func.substr(documents.c.text, start + 1, max(0, end - start), type_=documents.c.text.type)
        text: str | None = transaction.scalar(select(piece).where(documents.c.id == document))
        if text is None:
            raise _refuse(transaction, document)
        return text

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
    def node_keys(self, transaction: Transaction, layer: str) -> list[int]:
        """Keys of the nodes of a layer; passages in document order, others by level, position and id."""
        query = select(nodes.c.key).where(nodes.c.layer == layer)
        if layer == PASSAGES:
            query = query.join(documents, documents.c.key == nodes.c.document).order_by(_DOCUMENT)
        return list(transaction.scalars(query.order_by(*_ORDER)))

    @reads
    def find(self, transaction: Transaction, ids: Iterable[NodeId]) -> dict[NodeId, Found]:
        """Where the nodes are that exist among these ids."""
        rows = transaction.fetch_bare(_FOUND, ids=list(ids))  # there may be many
        found = {row[0]: Found._make(row[1:]) for row in rows}
        if not all(type(each.key) is type(each.position) is int for each in found.values()):
            raise Misfit("nodes", "a value of another type")
        return found

    @reads
    def find_dependants(self, transaction: Transaction, keys: Iterable[int]) -> dict[str, int]:
        """How many nodes of each layer would go with these nodes."""
        wanted = sorted(set(keys))
        gone = find_dependants(transaction, wanted)[len(wanted) :]
        query = select(nodes.c.layer, func.count()).where(nodes.c.key.in_(list_keys(gone)))
        return {row[0]: row[1] for row in transaction.execute(query.group_by(nodes.c.layer).order_by(nodes.c.layer))}

    @reads
    def passage_order(self, transaction: Transaction) -> tuple[Keys, Keys, Keys]:
        """Keys (n,) of all passages in document order, a number for the document of each, and its position there."""
        query = select(*nodes.c["key", "document", "position"])
        query = query.join(documents, documents.c.key == nodes.c.document).order_by(_DOCUMENT, nodes.c.position)
        cursor: Any = transaction.execute(query).cursor  # bare rows: a tome may have many passages
        with decode_plain("nodes"):
            table = np.array(cursor.fetchall(), np.int64).reshape(-1, 3)
        return table[:, 0], table[:, 1], table[:, 2]

    @reads
    def find_neighbours(self, transaction: Transaction, keys: Iterable[int], distance: int) -> dict[int, list[int]]:
        """Keys of the passages at most `distance` before or after each passage: the nearest first, then the later."""
        around: dict[int, list[int]] = {}
        found = transaction.fetch(_NEIGHBOURS, keys=list(keys), before=-distance, after=distance)
        for key, neighbour in found:
            around.setdefault(key, []).append(neighbour)
        return around

    @reads
    def _read_by_key(
        self,
        transaction: Transaction,
        /,
        query: Select[Any],
        make: Callable[[dict[str, Any]], T],
        keys: Iterable[int] | None = None,
        **values: Any,
    ) -> dict[int, T]:
        wanted = None if keys is None else list(dict.fromkeys(map(int, keys)))
        columns = query.selected_columns.keys()
        found = transaction.fetch(query, keys=wanted, **values)
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
    def _find_keys(self, transaction: Transaction, scope: Scope, layer: str) -> Keys:
        return self._scopes.find(scope, layer, transaction)

    def lexical(self, query: str, limit: int, *, within: Scope | None = None) -> list[tuple[int, float]]:
        """Passage keys with their BM25 scores, best first. A passage needs to hold only one of the words."""
        terms = find_terms(query)
        return self._search_words(terms, limit, self.keys_within(within)) if terms else []

    @reads
    def _search_words(
        self, transaction: Transaction, terms: Sequence[str], limit: int, keys: Keys | None
    ) -> list[tuple[int, float]]:
        return transaction.search_words(terms, limit, keys)

    @reads
    def find_holders(self, transaction: Transaction, words: Iterable[str], among: Keys) -> list[tuple[int, Keys]]:
        """For each word, how many passages hold it, and those of `among` that do."""
        phrases = [make_phrase(word) for word in words]
        return [transaction.find_holders(phrase, among) if phrase else (0, np.empty(0, np.int64)) for phrase in phrases]


def _refuse(transaction: Transaction, document: DocumentId) -> UnknownName:
    return UnknownName(f"no document {document!r} in {transaction.address}: `tome show` lists them")


@cache
def _select_passages(*, by_key: bool, by_document: bool, by_place: bool) -> Select[Any]:
    query = _PASSAGES.where(_AT_KEYS) if by_key else _PASSAGES.order_by(_DOCUMENT, nodes.c.position)
    if by_document:
        query = query.where(_DOCUMENT.in_(bind_names("documents")))
    if by_place:
        query = query.where(nodes.c.start < bindparam("before"), nodes.c.end > bindparam("after"))
    return query


def find_dependants(transaction: Transaction, keys: Iterable[int]) -> list[int]:
    """These nodes in ascending order, then the nodes that go with them, level by level."""
    gone: dict[int, None] = {}
    front = sorted(set(keys))
    while front:
        gone |= dict.fromkeys(front)
        front = sorted(find_orphans(transaction, front, gone) - gone.keys())
    return list(gone)


def find_orphans(
    transaction: Transaction,
    front: Iterable[int],
    gone: Iterable[int],
    except_spaces: Sequence[str] = (),
) -> set[int]:
    """The nodes that go with those of `front`, by their lifetimes, once all in `gone` are removed.

    Links of the spaces `except_spaces` do not count.
    """
    orphans: set[int] = set()
    seen: dict[str, set[int]] = defaultdict(set)
    query = select(*edges.c["a", "space"]).where(edges.c.b.in_(list_keys(front)), edges.c.space.not_in(except_spaces))
    for a, space in transaction.execute(query):
        if space.startswith("made-of:"):
            orphans.add(a)
        elif space.startswith("seen-in:"):
            seen[space].add(a)
    for space, candidates in seen.items():
        at = list_keys(sorted(candidates)).subquery().c.value
        # EXISTS, since one source that stays is enough, and a common name has thousands of sources.
        stays = exists().where(edges.c.a == at, edges.c.space == space, edges.c.b.not_in(list_keys(gone)))
        orphans.update(transaction.scalars(select(at).where(~stays)))
    return orphans
