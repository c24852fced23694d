"""Documents, passages and nodes of a tome, and the search for words."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

from tomewise.errors import UnknownName
from tomewise.store.records import PASSAGES, DocumentRecord, Found
from tomewise.store.sql.dialects import Transaction
from tomewise.store.sql.mirror import Keys
from tomewise.store.sql.node_rows import find_exact, find_terms, make_node, make_passage, make_phrase
from tomewise.store.sql.row_values import Misfit, decode_plain
from tomewise.store.sql.scope import ScopeKeys, write_document_tests
from tomewise.store.sql.stored_records import StoredPart, reads
from tomewise.types import Document, DocumentId, Node, NodeId, Passage, Scope

T = TypeVar("T")
_RECORDS = """SELECT documents.id, documents.title, documents.source, documents.folder, documents.digest,
documents.characters, documents.metadata, (SELECT count(*) FROM nodes WHERE nodes.document = documents.key) AS passages
FROM documents {} ORDER BY documents.id"""
_DOCUMENT = """SELECT documents.id, documents.title, documents.source, documents.text, documents.metadata
FROM documents WHERE documents.id = :document"""
_PIECE = "SELECT substr(text, CAST(:first AS integer), CAST(:size AS integer)) FROM documents WHERE id = :document"
_NODES = """SELECT nodes.key, nodes.id, nodes.layer, nodes.level, nodes.position, nodes.text, nodes.data
FROM nodes"""
_BY_PLACE = "ORDER BY nodes.level, nodes.position, nodes.id"
_NODE_KEYS = f"SELECT nodes.key\nFROM nodes WHERE nodes.layer = :layer {_BY_PLACE}"
_PASSAGE_KEYS = """SELECT nodes.key
FROM nodes JOIN documents ON documents.key = nodes.document
WHERE nodes.layer = :layer ORDER BY documents.id, nodes.level, nodes.position, nodes.id"""
_PASSAGES = """SELECT nodes.key, nodes.id, nodes.position, nodes.start, nodes."end", nodes.text, nodes.data,
documents.id AS document, documents.title
FROM nodes JOIN documents ON documents.key = nodes.document"""
_FOUND = """
SELECT nodes.id, nodes.key, nodes.layer, documents.id, nodes.position FROM nodes
LEFT JOIN documents ON documents.key = nodes.document WHERE nodes.id IN :ids
"""
_ORDERED = """
SELECT nodes.key, nodes.document, nodes.position FROM nodes JOIN documents ON documents.key = nodes.document
ORDER BY documents.id, nodes.position
"""
_NEIGHBOURS = """SELECT nodes.key, near.key
FROM nodes JOIN nodes AS near ON near.document = nodes.document
WHERE nodes.key IN :keys AND near.position - nodes.position BETWEEN -:distance AND :distance
  AND near.position <> nodes.position
ORDER BY nodes.key, abs(near.position - nodes.position), near.position DESC"""
_ORPHANS = """SELECT nodes.key
FROM nodes WHERE nodes.key IN :keys AND NOT EXISTS (
  SELECT 1 FROM edges WHERE edges.a = nodes.key AND edges.space = :space AND edges.b NOT IN :keys_gone)"""


class StoredTexts(StoredPart):
    """See `store.contract.Texts`."""

    @reads
    def holds_documents(self, transaction: Transaction) -> bool:
        """Whether the tome holds at least one document."""
        return transaction.ask("SELECT key FROM documents LIMIT 1").fetchone() is not None

    @reads
    def documents(
        self, transaction: Transaction, wanted: Scope | Iterable[DocumentId] | None = None
    ) -> list[DocumentRecord]:
        """All documents, those of these ids, or those that the documents and conditions of a scope leave, by id."""
        where, values = "", dict[str, Any]()
        if isinstance(wanted, Scope):
            tests, values = write_document_tests(wanted, transaction)
            where = f"WHERE {' AND '.join(tests)}" if tests else ""
        elif wanted is not None:
            where, values = "WHERE documents.id IN :ids", {"ids": list(wanted)}
        return [DocumentRecord(**row) for row in transaction.fetch_rows(_RECORDS.format(where), **values)]

    @reads
    def document(self, transaction: Transaction, document: DocumentId) -> Document:
        """A document with its text. Raises UnknownName."""
        for row in transaction.fetch_rows(_DOCUMENT, document=document):
            return Document(**row)
        raise _refuse(transaction, document)

    @reads
    def text_between(self, transaction: Transaction, document: DocumentId, start: int, end: int) -> str:
        """The characters of a document from `start` to before `end`, fewer where the text ends. Raises UnknownName."""
        # SQL counts characters from 1.
        found = transaction.ask(_PIECE, first=start + 1, size=max(0, end - start), document=document).fetchone()
        if found is None:
            raise _refuse(transaction, document)
        if not isinstance(found[0], str):
            raise Misfit("documents")
        return found[0]

    def passages(
        self,
        keys: Iterable[int] | None = None,
        *,
        documents: Iterable[DocumentId] | None = None,
        between: tuple[int, int] | None = None,
    ) -> dict[int, Passage]:
        """Passages by node key, in the order of `keys`, else in document order: all, or those of some documents."""
        tests, values = list[str](), dict[str, Any]()
        if keys is not None:
            tests.append("nodes.key IN :keys")
        if documents is not None:
            tests.append("documents.id IN :documents")
            values["documents"] = list(documents)
        if between is not None:
            tests.append('nodes.start < :before AND nodes."end" > :after')
            values["after"], values["before"] = between
        query = f"{_PASSAGES} WHERE {' AND '.join(tests)}" if tests else _PASSAGES
        order = "ORDER BY documents.id, nodes.position" if keys is None else ""
        return self._read_by_key(f"{query} {order}", make_passage, keys, **values)

    def nodes(self, layer: str) -> dict[int, Node]:
        """All nodes of a layer by key, ordered by level, position and id, without their sources."""
        return self._read_by_key(f"{_NODES} WHERE nodes.layer = :layer {_BY_PLACE}", make_node, layer=layer)

    def nodes_at(self, keys: Iterable[int]) -> dict[int, Node]:
        """Nodes by key, in the order of the keys, without their sources."""
        return self._read_by_key(f"{_NODES} WHERE nodes.key IN :keys", make_node, keys)

    @reads
    def count_passages(self, transaction: Transaction) -> int:
        """How many passages the tome has."""
        ((count,),) = transaction.fetch("SELECT count(*)\nFROM nodes WHERE nodes.layer = :layer", layer=PASSAGES)
        return int(count)

    @reads
    def node_keys(self, transaction: Transaction, layer: str) -> list[int]:
        """Keys of the nodes of a layer; passages in document order, others by level, position and id."""
        query = _PASSAGE_KEYS if layer == PASSAGES else _NODE_KEYS
        return [key for (key,) in transaction.fetch(query, layer=layer)]

    @reads
    def find(self, transaction: Transaction, ids: Iterable[NodeId]) -> dict[NodeId, Found]:
        """Where the nodes are that exist among these ids."""
        # Rows as they are: there may be many.
        found = {name: Found(*place) for name, *place in transaction.ask(_FOUND, ids=list(ids))}
        if not all(type(each.key) is type(each.position) is int for each in found.values()):
            raise Misfit("nodes")
        return found

    @reads
    def find_dependants(self, transaction: Transaction, keys: Iterable[int]) -> dict[str, int]:
        """How many nodes of each layer would go with these nodes."""
        wanted = sorted(set(keys))
        gone = find_dependants(transaction, wanted)[len(wanted) :]
        query = "SELECT nodes.layer, count(*)\nFROM nodes WHERE nodes.key IN :keys GROUP BY nodes.layer ORDER BY 1"
        return dict(transaction.fetch(query, keys=gone))

    @reads
    def passage_order(self, transaction: Transaction) -> tuple[Keys, Keys, Keys]:
        """Keys (n,) of all passages in document order, a number for the document of each, and its position there."""
        with decode_plain("nodes"):  # rows as they are: a tome may have many passages
            table = np.array(transaction.ask(_ORDERED).fetchall(), np.int64).reshape(-1, 3)
        return table[:, 0], table[:, 1], table[:, 2]

    @reads
    def find_neighbours(self, transaction: Transaction, keys: Iterable[int], distance: int) -> dict[int, list[int]]:
        """Keys of the passages at most `distance` before or after each passage: the nearest first, then the later."""
        around: dict[int, list[int]] = {}
        for key, neighbour in transaction.fetch(_NEIGHBOURS, keys=list(keys), distance=distance):
            around.setdefault(key, []).append(neighbour)
        return around

    @reads
    def _read_by_key(
        self,
        transaction: Transaction,
        /,
        query: str,
        make: Callable[[dict[str, Any]], T],
        keys: Iterable[int] | None = None,
        **values: Any,
    ) -> dict[int, T]:
        if keys is not None:
            values["keys"] = list(dict.fromkeys(map(int, keys)))
        made = {row.pop("key"): make(row) for row in transaction.fetch_rows(query, **values)}
        return made if keys is None else {key: made[key] for key in values["keys"] if key in made}


class StoredWords(StoredPart):
    """See `store.contract.Words`, and `keys_within` of `Texts`."""

    _scopes: ScopeKeys

    def keys_within(self, scope: Scope | None, layer: str = PASSAGES) -> Keys | None:
        """The keys of the nodes of a layer within a scope. They are cached until what decides about them changes."""
        return None if scope is None or scope == Scope() else self._find_keys(scope, layer)

    @reads
    def _find_keys(self, transaction: Transaction, scope: Scope, layer: str) -> Keys:
        return self._scopes.find(scope, layer, transaction)

    @reads
    def lexical(
        self, transaction: Transaction, query: str, limit: int, *, within: Scope | None = None
    ) -> list[tuple[int, float]]:
        """Passage keys with their BM25 scores, best first. A passage needs to hold only one of the words."""
        terms = find_terms(query)
        keys = None if within in (None, Scope()) else self._scopes.find(within, PASSAGES, transaction)
        return transaction.search_words(terms, limit, keys) if terms else []

    @reads
    def exact(self, transaction: Transaction, query: str, most: int, *, within: Scope | None = None) -> dict[int, int]:
        """See `store.contract.Words`."""
        if not (named := find_exact(query)):
            return {}
        keys = None if within in (None, Scope()) else self._scopes.find(within, PASSAGES, transaction)
        found = [transaction.search_words(forms, most + 1, keys) for forms in named]
        return Counter(key for holders in found if len(holders) <= most for key, _ in holders)

    @reads
    def find_holders(self, transaction: Transaction, words: Iterable[str], among: Keys) -> list[tuple[int, Keys]]:
        """For each word, how many passages hold it, and those of `among` that do."""
        phrases = [make_phrase(word) for word in words]
        return [transaction.find_holders(phrase, among) if phrase else (0, np.empty(0, np.int64)) for phrase in phrases]


def _refuse(transaction: Transaction, document: DocumentId) -> UnknownName:
    return UnknownName(f"no document {document!r} in {transaction.address}: `tome show` lists them")


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
    query = "SELECT edges.a, edges.space\nFROM edges WHERE edges.b IN :keys AND edges.space NOT IN :spaces"
    for a, space in transaction.fetch(query, keys=list(front), spaces=list(except_spaces)):
        if space.startswith("made-of:"):
            orphans.add(a)
        elif space.startswith("seen-in:"):
            seen[space].add(a)
    for space, candidates in seen.items():
        # EXISTS, since one source that stays is enough, and a common name has thousands of sources.
        found = transaction.fetch(_ORPHANS, keys=sorted(candidates), space=space, keys_gone=list(gone))
        orphans.update(key for (key,) in found)
    return orphans
