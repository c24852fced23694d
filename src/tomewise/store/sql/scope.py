"""Which nodes lie within a scope: conditions on documents and entities in SQL, derived layers as arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from sqlalchemy import ColumnElement, Select, TextClause, and_, exists, not_, or_, select

from tomewise.store.nearest import Keys
from tomewise.store.records import PASSAGES, PREFIXES, list_source_spaces, name_source_space
from tomewise.store.sql.arrays import Arrays
from tomewise.store.sql.dialects import Transaction
from tomewise.store.sql.row_values import list_keys, list_names
from tomewise.store.sql.schema import documents, edges, nodes, spaces
from tomewise.types import Scope

_MOST_CACHED = 32  # scopes and layers whose keys are cached in memory
# Whatever decides about a scope changes one of these; `documents` changes with the metadata.
_VERSIONS = select(spaces).where(
    or_(
        spaces.c.space.in_(["documents", "vectors/passages"]),
        *(spaces.c.space.startswith(f"edges/{prefix}:", autoescape=True) for prefix in PREFIXES.values()),
    )
)


class ScopeKeys:
    """Finds the keys of the nodes of a layer within a scope. They are cached until their spaces change."""

    def __init__(self, arrays: Arrays) -> None:
        self._arrays = arrays
        # For each scope and layer a list: empty at first, then with the versions of the spaces and the keys.
        self._find_cached: Callable[..., list[tuple[dict[str, int], Keys]]] = lru_cache(_MOST_CACHED)(lambda *_: [])

    def find(self, scope: Scope, layer: str, transaction: Transaction) -> Keys:
        """The keys, ascending. See `store.contract.Texts`."""
        versions: dict[str, int] = dict(transaction.fetch(_VERSIONS))
        kinds = tuple(type(condition.value) for condition in scope.where)  # for Python, True equals 1
        cached = self._find_cached(scope, kinds, layer)
        for known, keys in cached:
            if known == versions:
                return keys
        if layer == PASSAGES:
            query = select_passages(transaction, scope).order_by(nodes.c.key)
            cursor: Any = transaction.execute(query).cursor
            keys = np.fromiter((row[0] for row in cursor), np.int64)
        else:
            below = [self.find(scope, name, transaction) for name in _list_layers_below(transaction, layer)]
            keys = self._find_derived(layer, below, transaction)
        keys.setflags(write=False)  # callers share it
        cached[:] = [(versions, keys)]
        return keys

    def _find_derived(self, layer: str, known: Sequence[Keys], transaction: Transaction) -> Keys:
        """The nodes of a layer within the scope; `known` are those of the layers from which it was made."""
        made_of, seen_in, drawn_from = (
            self._arrays.columns(f"edges/{space}", transaction).rows.reshape(-1, 3)[:, :2].astype(np.int64)
            for space in list_source_spaces(layer)
        )
        made_of = np.concatenate((made_of, drawn_from))
        size = 1 + max((int(pairs.max(initial=0)) for pairs in (made_of, seen_in, *known)), default=0)
        is_within = np.zeros(size, np.bool_)
        for keys in known:
            is_within[keys] = True
        is_within[made_of[:, 0]] = True
        # One round for each level of the layer: a node outside takes out the nodes made from it.
        while (outside := made_of[is_within[made_of[:, 0]] & ~is_within[made_of[:, 1]], 0]).size:
            is_within[outside] = False
        is_of_layer = np.zeros(size, np.bool_)
        is_of_layer[made_of[:, 0]] = is_within[made_of[:, 0]]
        is_of_layer[seen_in[is_within[seen_in[:, 1]], 0]] = True
        return np.flatnonzero(is_of_layer)


def select_passages(transaction: Transaction, scope: Scope) -> Select[tuple[int]]:
    """A query for the keys of the passages within a scope."""
    query = select(nodes.c.key).where(nodes.c.layer == PASSAGES)
    if tests := list_document_tests(scope, transaction):  # each document is tested once
        query = query.where(nodes.c.document.in_(select(documents.c.key).where(*tests)))
    return query.where(*_list_entity_tests(transaction, scope))


def list_document_tests(scope: Scope, transaction: Transaction) -> list[ColumnElement[bool] | TextClause]:
    """The tests of a document by the documents and conditions of a scope."""
    tests: list[ColumnElement[bool] | TextClause] = [transaction.passes(condition) for condition in scope.where]
    if scope.documents is not None:
        tests.append(documents.c.id.in_(list_names(sorted(scope.documents))))
    return tests


def _list_entity_tests(transaction: Transaction, scope: Scope) -> Iterator[ColumnElement[bool]]:
    """The tests of the entities that a passage sees."""
    if scope.entities is not None:
        seen, keys = _find_entities(transaction, scope.entities)
        yield nodes.c.key.in_(select(edges.c.b).where(seen, edges.c.a.in_(keys)))
    if scope.without_entities:
        seen, keys = _find_entities(transaction, scope.without_entities)
        sees = nodes.c.key.in_(select(edges.c.b).where(seen, edges.c.a.in_(keys)))
        yield not_(and_(sees, not_(exists().where(edges.c.b == nodes.c.key, seen, edges.c.a.not_in(keys)))))


def _find_entities(transaction: Transaction, entities: frozenset[str]) -> tuple[ColumnElement[bool], Select[Any]]:
    """Which edges go from such entities to the passages that see them, and the keys of these entities."""
    query = select(*nodes.c["key", "layer"]).where(nodes.c.id.in_(list_names(sorted(entities))))
    found = transaction.execute(query).all()
    spaces_seen = sorted({name_source_space(layer, "any") for _, layer in found})
    return edges.c.space.in_(spaces_seen), list_keys(key for key, _ in found)


def _list_layers_below(transaction: Transaction, layer: str) -> list[str]:
    """The layers from whose nodes a layer was made, without itself; passages always."""
    query = select(nodes.c.layer).distinct().join(edges, nodes.c.key == edges.c.b)
    query = query.where(edges.c.space.in_(list_source_spaces(layer)), nodes.c.layer.not_in((layer, PASSAGES)))
    return [PASSAGES, *sorted(transaction.scalars(query))]
